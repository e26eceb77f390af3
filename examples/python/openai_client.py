"""The official client; only the address and the key are hermes'."""

import os

from openai import OpenAI

client = OpenAI(base_url=os.environ.get("HERMES_URL", "http://127.0.0.1:8080") + "/v1", api_key=os.environ["HERMES_KEY"])

answer = client.chat.completions.create(
    model="auto",
    messages=[{"role": "user", "content": "Where is my order 20240515?"}],
    extra_body={"session_id": "user-7", "user_level": "vip"},
)
print(answer.choices[0].message.content)

stream = client.chat.completions.create(model="auto", messages=[{"role": "user", "content": "Tell me more."}], stream=True, extra_body={"session_id": "user-7"})
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)
print()
