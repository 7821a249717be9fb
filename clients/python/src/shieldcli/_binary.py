"""Finds the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Optional, Sequence

from ._verdict import Unavailable

_packaged = Path(__file__).parent / "bin" / ("shield.exe" if os.name == "nt" else "shield")


def find(binary: Optional[str] = None) -> str:
    """Returns the program: the one that is named, else the one in this package, else the one on the PATH."""
    if binary:
        return binary
    if _packaged.is_file():
        return str(_packaged)
    found = shutil.which("shield")
    if not found:
        raise Unavailable("shield is not installed: this package has no program for this system, and none is in PATH")
    return found


def command(
    binary: Optional[str],
    *,
    policy: Optional[str],
    model: Optional[str],
    config: Optional[str],
    state: Optional[str],
    roots: Sequence[str],
    until: Optional[str],
) -> List[str]:
    """Returns the command line of a process that judges."""
    line = [find(binary), "run", "--no-action"]
    for name, value in (("policy", policy), ("model", model), ("config", config), ("state", state), ("until", until)):
        if value is not None:
            line.append(f"--{name}={value}")
    return line + [f"--root={root}" for root in roots]


def main() -> None:
    """Becomes the program of this package, as the command ``shield``."""
    try:
        if os.name != "nt":
            os.execv(_packaged, ["shield", *sys.argv[1:]])
        sys.exit(subprocess.run([_packaged, *sys.argv[1:]]).returncode)
    except OSError as e:
        print(f"shield: {e}", file=sys.stderr)
        sys.exit(2)
