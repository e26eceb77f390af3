"""OpenAI Agents SDK: an agent whose model is whatever hermes chooses."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

# Traces are hermes' own; the SDK would send them to OpenAI.
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=os.environ.get("HERMES_URL", "http://127.0.0.1:8080") + "/v1", api_key=os.environ["HERMES_KEY"])
agent = Agent(name="support", instructions="You help customers of a shop.", model=OpenAIChatCompletionsModel(model="auto", openai_client=client))


async def main() -> None:
    result = await Runner.run(agent, "Where is my order 20240515?")
    print("answered:", result.final_output)
    streamed = Runner.run_streamed(agent, result.to_input_list() + [{"role": "user", "content": "And in a few words?"}])
    pieces = 0
    async for event in streamed.stream_events():
        pieces += event.type == "raw_response_event"
    print("streamed:", streamed.final_output, f"({pieces} events)")


asyncio.run(main())
