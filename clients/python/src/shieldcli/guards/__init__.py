"""Guards at the extension points of agent frameworks, one module for each.

Each judges a tool's call before the tool runs. Where shield does not allow it, or does not answer, the tool
does not run, and the model is told why.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._verdict import InvalidAction, ShieldError

__all__ = ["denial", "from_tool_call", "tool_action"]


def tool_action(name: Any, arguments: Any, types: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """Returns the action of a tool's call.

    :param name: the tool's name; it is the action's type where ``types`` has no other for it
    :param arguments: a mapping, or its JSON
    :param types: action types by tool name, such as ``{"shell": "execute_command"}``
    :raises InvalidAction: the call cannot be understood in one way only
    """
    if not isinstance(name, str) or not name:
        raise InvalidAction("a tool's call has no name")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}", object_pairs_hook=_once, parse_constant=_no_number)
        except (ValueError, RecursionError) as e:
            raise InvalidAction(f"the arguments of {name} cannot be read: {e}") from e
    if not isinstance(arguments, Mapping):
        raise InvalidAction(f"the arguments of {name} are not a JSON object")
    return {"type": (types or {}).get(name, name), "payload": dict(arguments)}


def from_tool_call(call: Any, types: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """Returns the action of a tool's call as a model proposes it.

    It reads ``tool_calls`` of chat completions, ``function_call`` items of the Responses API, ``tool_use``
    blocks of Anthropic, as mappings or as the objects of their libraries, and LangChain's ``name`` and ``args``.

    :raises InvalidAction: it is none of these
    """
    function = _get(call, "function")
    call = call if function is None else function
    for key in ("arguments", "input", "args"):
        arguments = _get(call, key)
        if arguments is not None:
            return tool_action(_get(call, "name"), arguments, types)
    raise InvalidAction("a tool's call has no arguments")


def denial(reason: ShieldError) -> str:
    """Returns what a model is told instead of a tool's result."""
    return f"shield did not allow this: {reason}"


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("duplicate key in an object")
    return made


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
