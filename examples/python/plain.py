"""A chat with hermes by the standard library: the article's short body, then what came of it."""

import json
import os
import urllib.request

URL = os.environ.get("HERMES_URL", "http://127.0.0.1:8080")
KEY = os.environ["HERMES_KEY"]


def chat(body):
    request = urllib.request.Request(
        f"{URL}/v1/chat",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers, json.load(response)


headers, answer = chat(
    {
        "session_id": "user-3421",
        "messages": [{"role": "user", "content": "帮我查一下订单20240515的状态"}],
        "tools": ["order.query"],
        "timeout": 30,
    }
)
print("route:", headers["x-hermes-route"], "model:", headers["x-hermes-model"])
print("tools:", [call["tool"] for call in answer["hermes"]["tool_calls"]])
print(answer["choices"][0]["message"]["content"])

headers, answer = chat({"session_id": "user-3421", "messages": [{"role": "user", "content": "谢谢"}]})
print("remembered messages:", headers["x-hermes-session-messages"])
