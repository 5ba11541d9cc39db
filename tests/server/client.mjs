// client.mjs PORT - the official JavaScript client against a running server; prints one line for each check.
import OpenAI from "openai";
import assert from "node:assert/strict";

const client = new OpenAI({ apiKey: "sk-test", baseURL: `http://127.0.0.1:${process.argv[2]}/v1`, maxRetries: 0 });
const ask = { model: "nugget", messages: [{ role: "user", content: "What is 5 plus 6? Think briefly." }], temperature: 0, max_tokens: 120 };
const weather = [{ role: "user", content: "What is the weather in Paris?" }];
const tool = { type: "function", function: { name: "get_weather", description: "Weather of a city", parameters: {
    type: "object", properties: { city: { type: "string" } }, required: ["city"] } } };

const checks = {
    async "chat and its stream agree"() {
        const whole = await client.chat.completions.create(ask);
        let text = "", reasoning = "", usage;
        for await (const chunk of await client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } })) {
            text += chunk.choices[0]?.delta.content ?? "";
            reasoning += chunk.choices[0]?.delta.reasoning_content ?? "";
            usage = chunk.usage ?? usage;
        }
        assert.equal(text, whole.choices[0].message.content);
        assert.equal(reasoning, whole.choices[0].message.reasoning_content);
        assert.equal(usage.total_tokens, whole.usage.total_tokens);
    },
    async "stream helper and tools"() {
        const stream = client.chat.completions.stream({ ...ask, messages: weather, tools: [tool], reasoning_effort: "none" });
        const final = await stream.finalChatCompletion();
        assert.equal(final.choices[0].finish_reason, "tool_calls");
        assert.ok("city" in JSON.parse(final.choices[0].message.tool_calls[0].function.arguments));
    },
    async "structured output is enforced or refused"() {
        const schema = { type: "object", properties: { answer: { type: "boolean" } }, required: ["answer"], additionalProperties: false };
        const format = (more) => ({ type: "json_schema", json_schema: { name: "answer", strict: true, schema: { ...schema, ...more } } });
        const reply = await client.chat.completions.create({ ...ask, reasoning_effort: "none", response_format: format() });
        assert.equal(typeof JSON.parse(reply.choices[0].message.content).answer, "boolean");
        await assert.rejects(client.chat.completions.create({ ...ask, response_format: format({ not: {} }) }), OpenAI.BadRequestError);
    },
    async "logprobs"() {
        const reply = await client.chat.completions.create({ ...ask, logprobs: true, top_logprobs: 2, reasoning_effort: "none" });
        const bytes = reply.choices[0].logprobs.content.flatMap((e) => e.bytes);
        assert.equal(Buffer.from(bytes).toString(), reply.choices[0].message.content);
    },
    async "responses"() {
        const body = { model: "nugget", input: "What is 5 plus 6?", temperature: 0, max_output_tokens: 120 };
        const whole = await client.responses.create(body);
        const final = await client.responses.stream(body).finalResponse();
        assert.equal(final.output_text, whole.output_text);
        assert.deepEqual(final.output.map((o) => o.type), ["reasoning", "message"]);
    },
    async "errors"() {
        await assert.rejects(client.chat.completions.create({ ...ask, temperature: 5 }), (e) => e.status === 400 && e.param === "temperature");
        await assert.rejects(client.chat.completions.create({ ...ask, max_tokens: 5000 }), (e) => e.code === "context_length_exceeded");
        await assert.rejects(client.models.retrieve("nope"), OpenAI.NotFoundError);
        const stranger = new OpenAI({ apiKey: "no", baseURL: client.baseURL, maxRetries: 0 });
        await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
    },
    async "abort"() {
        const stream = await client.chat.completions.create({ ...ask, stream: true, max_tokens: 3500, logit_bias: { 4066: -100, 4064: -100 } });
        for await (const _ of stream) break;
        for (let i = 0; i < 100; i++) {
            const metrics = await fetch(client.baseURL.replace("/v1", "/metrics"), { headers: { "x-api-key": "sk-test" } });
            if ((await metrics.text()).includes("ingot_requests_running 0")) return;
            await new Promise((done) => setTimeout(done, 50));
        }
        assert.fail("still running");
    },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
    try {
        await check();
        console.log(`ok ${name}`);
    } catch (e) {
        failed++;
        console.log(`FAILED ${name}: ${e.stack}`);
    }
}
process.exit(failed ? 1 : 0);
