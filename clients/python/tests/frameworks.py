"""The guards inside the frameworks themselves, with models that propose what they are told to.

python3 frameworks.py: tries those that are installed. SHIELD_TESTED names the program.
"""

import asyncio
import importlib.util
import json
import os
import tempfile
import unittest

from shieldcli import Shield

calls = [("run_shell", {"command": "ls"}), ("run_shell", {"command": "rm -rf ~"})]
types = {"run_shell": "execute_command"}


def needs(*modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.shield = Shield(
            os.environ["SHIELD_TESTED"], policy="offline", model="none", state=os.path.join(folder.name, "state")
        )
        self.addCleanup(self.shield.close)
        self.ran, self.told = [], []

    def check(self):
        """What ran is what is allowed, and the model read why the rest did not."""
        self.assertEqual(self.ran, ["ls"])
        told = "\n".join(str(t) for t in self.told)
        self.assertIn("did ls", told)
        self.assertIn("shield did not allow this: policy deny [wipe_system]", told)


@needs("agents")
class TestOpenAIAgents(Case):
    def test(self):
        from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        from shieldcli.guards.openai_agents import guardrail

        set_tracing_disabled(True)
        case = self

        class Proposer(Model):
            left = list(calls)

            async def get_response(self, system_instructions, input, *_, **__):
                case.told = [i.get("output") for i in input if isinstance(i, dict) and i.get("output")] if isinstance(input, list) else []
                if self.left:
                    name, arguments = self.left.pop(0)
                    out = ResponseFunctionToolCall(
                        type="function_call", call_id=f"c{len(self.left)}", name=name, arguments=json.dumps(arguments)
                    )
                else:
                    text = ResponseOutputText(type="output_text", text="done", annotations=[])
                    out = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
                return ModelResponse(output=[out], usage=Usage(), response_id=None)

            def stream_response(self, *_, **__):
                raise NotImplementedError

        @function_tool(tool_input_guardrails=[guardrail(self.shield, types)])
        def run_shell(command: str) -> str:
            self.ran.append(command)
            return f"did {command}"

        asyncio.run(Runner.run(Agent(name="a", model=Proposer(), tools=[run_shell]), "go"))
        self.check()


@needs("langchain")
class TestLangChain(Case):
    def agent(self):
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.tools import tool

        from shieldcli.guards.langchain import ShieldMiddleware

        @tool
        def run_shell(command: str) -> str:
            """Runs a command."""
            self.ran.append(command)
            return f"did {command}"

        class Proposer(GenericFakeChatModel):
            def bind_tools(self, *_, **__):
                return self

        said = [
            AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{i}"}])
            for i, (name, arguments) in enumerate(calls)
        ]
        model = Proposer(messages=iter([*said, AIMessage("done")]))
        return create_agent(model, [run_shell], middleware=[ShieldMiddleware(self.shield, types)])

    def test_sync(self):
        self.told = [m.content for m in self.agent().invoke({"messages": [("user", "go")]})["messages"]]
        self.check()

    def test_async(self):
        self.told = [m.content for m in asyncio.run(self.agent().ainvoke({"messages": [("user", "go")]}))["messages"]]
        self.check()


@needs("crewai")
class TestCrewAI(Case):
    def test(self):
        os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
        from crewai import Agent, BaseLLM, Crew, Task
        from crewai.hooks import clear_after_tool_call_hooks, clear_before_tool_call_hooks
        from crewai.tools import tool

        from shieldcli.guards.crewai import install

        case = self

        @tool("run_shell")
        def run_shell(command: str) -> str:
            """Runs a command."""
            self.ran.append(command)
            return f"did {command}"

        class Proposer(BaseLLM):
            def call(self, messages, *_, **__):
                case.told = [m["content"] for m in messages]
                asked = sum("Observation:" in str(m["content"]) for m in messages if m["role"] == "assistant")
                if asked < len(calls):
                    name, arguments = calls[asked]
                    return f"Thought: go\nAction: {name}\nAction Input: {json.dumps(arguments)}"
                return "Thought: I now know the final answer\nFinal Answer: done"

            def supports_function_calling(self):
                return False

        install(self.shield, types)
        self.addCleanup(clear_before_tool_call_hooks)
        self.addCleanup(clear_after_tool_call_hooks)
        agent = Agent(role="r", goal="g", backstory="b", llm=Proposer(model="proposer"), tools=[run_shell])
        Crew(agents=[agent], tasks=[Task(description="go", expected_output="done", agent=agent)]).kickoff()
        self.check()


@needs("autogen_agentchat")
class TestAutoGen(Case):
    def test(self):
        from autogen_agentchat.agents import AssistantAgent
        from autogen_core import FunctionCall
        from autogen_core.models import CreateResult, ModelInfo, RequestUsage
        from autogen_core.tools import FunctionTool, StaticWorkbench
        from autogen_core.models import ChatCompletionClient

        from shieldcli.guards.autogen import ShieldWorkbench

        case = self

        class Proposer(ChatCompletionClient):
            left = list(calls)

            async def create(self, messages, **_):
                case.told = [r.content for m in messages if isinstance(getattr(m, "content", None), list) for r in m.content if hasattr(r, "is_error")]
                content = "done"
                if self.left:
                    name, arguments = self.left.pop(0)
                    content = [FunctionCall(id=f"c{len(self.left)}", name=name, arguments=json.dumps(arguments))]
                return CreateResult(
                    finish_reason="stop", content=content, usage=RequestUsage(prompt_tokens=0, completion_tokens=0), cached=False
                )

            def create_stream(self, *_, **__):
                raise NotImplementedError

            async def close(self):
                pass

            def actual_usage(self):
                return RequestUsage(prompt_tokens=0, completion_tokens=0)

            total_usage = actual_usage

            def count_tokens(self, *_, **__):
                return 0

            remaining_tokens = count_tokens

            @property
            def capabilities(self):
                return self.model_info

            @property
            def model_info(self):
                return ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)

        def run_shell(command: str) -> str:
            self.ran.append(command)
            return f"did {command}"

        bench = ShieldWorkbench(StaticWorkbench([FunctionTool(run_shell, description="Runs a command.")]), self.shield, types)
        agent = AssistantAgent("a", Proposer(), workbench=bench, max_tool_iterations=5)
        asyncio.run(agent.run(task="go"))
        self.check()


if __name__ == "__main__":
    unittest.main()
