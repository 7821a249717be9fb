"""Judges every action an AI agent proposes, before it runs.

    from shieldcli import Shield

    with Shield() as shield:
        verdict = shield.evaluate({"type": "execute_command", "payload": {"command": "ls"}})
        if verdict:
            ...

Every failure is an exception, and only a verdict that says ALLOW is true.
"""

from ._aio import AsyncShield
from ._sync import Shield
from ._verdict import Blocked, InvalidAction, ShieldError, Unavailable, Verdict
from ._version import version as __version__

__all__ = [
    "AsyncShield",
    "Blocked",
    "InvalidAction",
    "Shield",
    "ShieldError",
    "Unavailable",
    "Verdict",
    "__version__",
]
