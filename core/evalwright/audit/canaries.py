"""The canaries of the leak test: one random string for each place where gold or a neighbour's data lies."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CONTROLS", "PLACES", "new_codes", "token"]

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "suite": "your suite itself: a file with the content of your cases, hidden files or reference solutions",
        "expect": "the expectations of a case",
        "hidden": "hidden files",
        "gold": "the reference solution",
        "history": "a commit beyond HEAD of a fixture that is a repository",
        "case-id": "the id of a case, which may tell the answer",
        "snapshot": "the suite's snapshot in the run directory",
        "store": "the content store",
        "evidence": "the evidence of another trial",
        "workspace": "the workspace of another trial",
        "exchange": "the exchange directory of another trial",
        "grader": "the exchange directory of a grader",
        "process": "environment and command line of a grader's process",
        "environment": "a variable of Evalwright's own environment that is not passed on",
        "command-line": "the command line of Evalwright itself",
        "descriptor": "a file that Evalwright has open",
        "unknown": "a canary that the spy could not decode",
    }
)
"""What each place is, for people."""

CONTROLS = ("control-plain", "control-encoded", "control-packed")
"""Places that the spy is shown: one that misses them would miss others."""


def new_codes() -> dict[str, str]:
    """Return a fresh code of 16 hexadecimal digits for every place that gets a canary."""
    planted = [place for place in PLACES if place not in ("suite", "unknown")]
    return {place: secrets.token_hex(8) for place in (*planted, *CONTROLS)}


def token(codes: Mapping[str, str], place: str) -> str:
    """Return the canary of a place. It is put together where it is planted, so that no list holds a whole one."""
    return f"EVALWRIGHT-CANARY-{place}-{codes[place]}"
