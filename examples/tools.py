"""A tool call and its answer, with the official client: pip install openai; python tools.py.

INGOT_URL names the server (default http://127.0.0.1:8080)."""
import json
import os

from openai import OpenAI

client = OpenAI(base_url=os.environ.get("INGOT_URL", "http://127.0.0.1:8080") + "/v1",
                api_key=os.environ.get("INGOT_API_KEY", "none"))
tools = [{"type": "function", "function": {
    "name": "get_weather", "description": "the weather of a city now",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
messages = [{"role": "user", "content": "What is the weather in Paris?"}]

reply = client.chat.completions.create(model="ingot", messages=messages, tools=tools,
                                       tool_choice={"type": "function", "function": {"name": "get_weather"}})
call = reply.choices[0].message.tool_calls[0]
print("call:", call.function.name, call.function.arguments)

messages.append(reply.choices[0].message.model_dump(exclude_none=True))
messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"sky": "clear", "celsius": 21})})
stream = client.chat.completions.create(model="ingot", messages=messages, tools=tools, stream=True, max_tokens=200)
for part in stream:
    if part.choices:
        print(part.choices[0].delta.content or "", end="", flush=True)
print()
