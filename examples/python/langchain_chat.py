"""LangChain: an address and a key; what is hermes' own goes into extra_body."""

import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def parcel_weight(order_id: str) -> str:
    """Weight of a parcel, in kilograms."""
    return "2.5"


chat = ChatOpenAI(
    base_url=os.environ.get("HERMES_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["HERMES_KEY"],
    model="auto",
    extra_body={"session_id": "langchain-1"},
)
answer = chat.invoke("帮我查一下订单20240515的状态")
print("answered:", answer.content)
print("tokens:", answer.usage_metadata["total_tokens"])

print("streamed:", end=" ")
for chunk in chat.stream("And in a few words?"):
    print(chunk.content, end="", flush=True)
print()

# A tool of the caller's own passes through: the call comes back here, whatever model answers.
asked = ChatOpenAI(base_url=str(chat.openai_api_base), api_key=os.environ["HERMES_KEY"], model="auto").bind_tools([parcel_weight], tool_choice="parcel_weight")
for call in asked.invoke("How heavy is order 20240515?").tool_calls:
    print("tool:", call["name"], parcel_weight.invoke(call["args"]))
