"""What shield is asked and what it answers, as text and as values."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

#: The most bytes of a verdict's line. shield's own lines stay far below it.
MAX_LINE = 8 << 20


class ShieldError(Exception):
    """Something kept shield from allowing an action. The action must not run."""


class InvalidAction(ShieldError):
    """The action cannot be written as JSON, so it cannot be judged."""


class Unavailable(ShieldError):
    """shield did not answer: it is missing, ended, was late, or sent something other than a verdict."""


class Blocked(ShieldError):
    """shield did not allow the action. ``verdict`` says why."""

    def __init__(self, verdict: "Verdict"):
        super().__init__(verdict.reasoning)
        self.verdict = verdict


@dataclass(frozen=True)
class Verdict:
    """shield's answer to one action. It is true only where it says ALLOW."""

    decision: str  #: ``ALLOW``, ``BLOCK``, or ``ESCALATE`` where ``until`` stops early
    tier: int  #: the tier that decided: 0 policy, 1 classify, 2 evaluate, 3 a person
    confidence: float  #: 0.0 to 1.0
    reasoning: str  #: what matched, where, and what would be acceptable instead
    rule: Optional[str] = None  #: the rule that decided, if one did
    error: Optional[str] = None  #: a short code, where shield failed
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)  #: every field

    @property
    def allowed(self) -> bool:
        """Whether the action may run."""
        return self.decision == "ALLOW"

    def __bool__(self) -> bool:
        return self.allowed

    def require(self) -> "Verdict":
        """Returns the verdict, or raises :class:`Blocked` where it does not allow the action."""
        if not self.allowed:
            raise Blocked(self)
        return self


def encode(action: Mapping[str, Any], number: int, session: Optional[str]) -> bytes:
    """Returns the line that asks about an action. shield gets ``number`` as the id, to find the answer by."""
    if not isinstance(action, Mapping):
        raise InvalidAction(f"an action is a mapping with a type and a payload, not {type(action).__name__}")
    record = dict(action)
    record["id"] = str(number)
    record.setdefault("cwd", os.getcwd())
    if session is not None:
        record.setdefault("session", session)
    try:
        return json.dumps(record, allow_nan=False).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidAction(f"the action cannot be written as JSON: {e}") from e


def decode(line: bytes, number: int, given: Mapping[str, Any]) -> Verdict:
    """Reads the verdict about the action that was asked about as ``number``."""
    try:
        raw = json.loads(line)
        if not isinstance(raw, dict) or raw.get("decision") not in ("ALLOW", "BLOCK", "ESCALATE"):
            raise ValueError("no decision")
        answered = raw.pop("id", None)
        # The verdict about a record that could not be read has no id, and never allows.
        if answered != str(number) and not (answered is None and raw["decision"] == "BLOCK"):
            raise ValueError("it is about another action")
    except (ValueError, TypeError, RecursionError) as e:
        raise Unavailable(f"shield's answer is not a verdict: {e}") from e
    if given.get("id") is not None:
        raw["id"] = given["id"]
    return Verdict(
        decision=raw["decision"],
        tier=raw.get("tier", 0),
        confidence=raw.get("confidence", 0.0),
        reasoning=raw.get("reasoning", ""),
        rule=raw.get("rule"),
        error=raw.get("error"),
        raw=raw,
    )
