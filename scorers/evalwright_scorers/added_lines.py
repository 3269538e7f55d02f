"""The lines that a unified diff adds, each with its file and number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["AddedLine", "added_lines"]

_HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@")


@dataclass(frozen=True, slots=True)
class AddedLine:
    """One added line: ``number`` counts from 1 in the file as the agent left it."""

    path: str
    number: int
    text: str


def added_lines(diff: str) -> Iterator[AddedLine]:
    """Yield the added lines of a diff as ``workspace.diff`` holds it. Content that looks like a header is still content."""
    path = ""
    number = old = new = 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            if line.startswith("+++ "):
                path = line[4:].strip('"').removeprefix("b/")
            elif hunk := _HUNK.match(line):
                number, old, new = int(hunk["start"]), int(hunk["old"] or 1), int(hunk["new"] or 1)
        elif line.startswith("+"):
            yield AddedLine(path, number, line[1:])
            number, new = number + 1, new - 1
        elif line.startswith("-"):
            old -= 1
        elif not line.startswith("\\"):
            number, old, new = number + 1, old - 1, new - 1
