// A streamed conversation of two turns with the official client: npm install openai; node chat.mjs.
// INGOT_URL names the server (default http://127.0.0.1:8080).
import OpenAI from 'openai';

const client = new OpenAI({
    baseURL: (process.env.INGOT_URL ?? 'http://127.0.0.1:8080') + '/v1',
    apiKey: process.env.INGOT_API_KEY ?? 'none',
});
const messages = [];
for (const question of ['Please sort these words by the alphabet: pear, apple, fig, cherry, banana, plum.', 'And now backwards?']) {
    messages.push({ role: 'user', content: question });
    const stream = await client.chat.completions.create({
        model: 'ingot', messages, stream: true, max_tokens: 200, stream_options: { include_usage: true },
    });
    let answer = '';
    for await (const part of stream) {
        answer += part.choices[0]?.delta?.content ?? '';
        if (part.usage) console.log(`> ${question}\n${answer}\n  (${part.usage.prompt_tokens_details.cached_tokens} tokens of the prompt were cached)`);
    }
    messages.push({ role: 'assistant', content: answer });
}
