"""A guard for AutoGen: a workbench around another one.

    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.tools import StaticWorkbench
    from shieldcli import Shield
    from shieldcli.guards.autogen import ShieldWorkbench

    agent = AssistantAgent("coder", model, workbench=ShieldWorkbench(StaticWorkbench(tools), Shield()))

Give the tools to the workbench, not to the agent: an agent's own ``tools`` do not pass through it.
"""

from __future__ import annotations

import asyncio
from typing import Any, List, Mapping, Optional

from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult, ToolSchema, Workbench

from .. import Shield, ShieldError
from . import denial, tool_action


class ShieldWorkbench(Workbench):
    """Judges each call of a tool before the workbench behind it runs the tool.

    :param types: action types by tool name, such as ``{"run_shell": "execute_command"}``
    """

    def __init__(self, workbench: Workbench, shield: Shield, types: Optional[Mapping[str, str]] = None):
        self._workbench = workbench
        self._shield = shield
        self._types = types

    async def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        cancellation_token: Optional[CancellationToken] = None,
        call_id: Optional[str] = None,
    ) -> ToolResult:
        try:
            action = tool_action(name, {} if arguments is None else arguments, self._types)
            await asyncio.to_thread(self._shield.require, action)
        except ShieldError as e:
            return ToolResult(name=name, result=[TextResultContent(content=denial(e))], is_error=True)
        return await self._workbench.call_tool(name, arguments, cancellation_token, call_id)

    async def list_tools(self) -> List[ToolSchema]:
        return await self._workbench.list_tools()

    async def start(self) -> None:
        await self._workbench.start()

    async def stop(self) -> None:
        await self._workbench.stop()

    async def reset(self) -> None:
        await self._workbench.reset()

    async def save_state(self) -> Mapping[str, Any]:
        return await self._workbench.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._workbench.load_state(state)
