"""One summary line per finished run, so that listing runs does not open each of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evalwright.canonical import stable_json

__all__ = ["append_summary", "read_summaries"]


def append_summary(path: Path, summary: dict[str, Any]) -> None:
    """Add a run's summary: one write, so that lines of two processes never mix, and never onto a line that a crash cut."""
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        glue = b"" if file.read(1) in (b"", b"\n") else b"\n"
        file.write(glue + f"{stable_json(summary)}\n".encode())


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
