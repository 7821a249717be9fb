"""A guard for CrewAI: a hook before every call of a tool, of every crew.

    from shieldcli import Shield
    from shieldcli.guards.crewai import install

    install(Shield())

Install it after the hooks of your own: one after it could change a call that was judged.
"""

from __future__ import annotations

import threading
from typing import Any, Mapping, Optional

from crewai.hooks import register_after_tool_call_hook, register_before_tool_call_hook
from crewai.hooks.dispatch import HookAborted

from .. import Shield, ShieldError
from . import denial, tool_action


def install(shield: Shield, types: Optional[Mapping[str, str]] = None) -> None:
    """Has CrewAI ask before each call of a tool.

    :param types: action types by tool name, such as ``{"run_shell": "execute_command"}``
    """
    denied = threading.local()

    def before(context: Any) -> None:
        denied.reason = None
        try:
            shield.require(tool_action(context.tool_name, dict(context.tool_input), types))
        except BaseException as e:  # CrewAI goes on after every exception but its own
            denied.reason = denial(e if isinstance(e, ShieldError) else ShieldError(repr(e)))
            raise HookAborted(reason=denied.reason, source="shield") from e

    def after(context: Any) -> Optional[str]:
        # CrewAI tells the model only that a hook blocked the call.
        reason, denied.reason = getattr(denied, "reason", None), None
        return reason

    register_before_tool_call_hook(before)
    register_after_tool_call_hook(after)
