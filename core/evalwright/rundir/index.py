"""One summary line per finished run, so that listing runs does not open each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.canonical import stable_json

__all__ = ["append_summary", "read_summaries"]


def append_summary(path: Path, summary: dict[str, Any]) -> None:
    """Add a run's summary: one write, so that lines of two processes never mix.

    The line begins with a line feed, so that it does not grow onto one that a crash cut; empty lines are no summaries.
    """
    with path.open("ab", buffering=0) as file:
        file.write(f"\n{stable_json(summary)}\n".encode())


def read_summaries(path: Path) -> dict[str, dict[str, Any]]:
    """Return the newest summary of each run. A line that cannot be read is as good as absent."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            summary = json.loads(line)
            found[summary["run_id"]] = summary
        except (ValueError, KeyError, TypeError):
            continue
    return found
