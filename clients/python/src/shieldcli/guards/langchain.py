"""A guard for LangChain's agents: a middleware around their tools.

    from langchain.agents import create_agent
    from shieldcli import Shield
    from shieldcli.guards.langchain import ShieldMiddleware

    agent = create_agent(model, tools, middleware=[ShieldMiddleware(Shield())])

Name it last: a middleware after it could change a call that was judged.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Mapping, Optional

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage

from .. import Shield, ShieldError
from . import denial, tool_action


class ShieldMiddleware(AgentMiddleware):
    """Judges each call of a tool before the tool runs.

    :param types: action types by tool name, such as ``{"run_shell": "execute_command"}``
    """

    def __init__(self, shield: Shield, types: Optional[Mapping[str, str]] = None):
        super().__init__()
        self._shield = shield
        self._types = types

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        denied = self._judge(request)
        return handler(request) if denied is None else denied

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        denied = await asyncio.to_thread(self._judge, request)
        return await handler(request) if denied is None else denied

    def _judge(self, request: Any) -> Optional[ToolMessage]:
        call = request.tool_call
        try:
            self._shield.require(tool_action(call["name"], call["args"], self._types))
        except ShieldError as e:
            return ToolMessage(denial(e), tool_call_id=call["id"], name=call["name"], status="error")
        return None
