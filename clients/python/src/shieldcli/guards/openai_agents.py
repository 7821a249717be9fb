"""A guard for the OpenAI Agents SDK: a guardrail on the input of tools.

    from agents import function_tool
    from shieldcli import Shield
    from shieldcli.guards.openai_agents import guardrail

    @function_tool(tool_input_guardrails=[guardrail(Shield())])
    def run_shell(command: str) -> str: ...

The SDK asks a tool's guardrails in their order, and none of them changes the call.
"""

from __future__ import annotations

import asyncio
from typing import Mapping, Optional

from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData

from .. import Shield, ShieldError
from . import denial, tool_action


def guardrail(shield: Shield, types: Optional[Mapping[str, str]] = None) -> "ToolInputGuardrail":
    """Returns a guardrail that judges each call of the tools that it is given to.

    :param types: action types by tool name, such as ``{"run_shell": "execute_command"}``
    """

    async def judge(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        try:
            action = tool_action(data.context.tool_name, data.context.tool_arguments, types)
            await asyncio.to_thread(shield.require, action)
        except ShieldError as e:
            return ToolGuardrailFunctionOutput.reject_content(denial(e))
        return ToolGuardrailFunctionOutput.allow()

    return ToolInputGuardrail(guardrail_function=judge, name="shield")
