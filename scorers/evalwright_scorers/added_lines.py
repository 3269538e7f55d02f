"""The lines that a unified diff adds or shows, each with its file and number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["AddedLine", "added_lines", "shown_lines"]

_HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<new>\d+))? @@")


@dataclass(frozen=True, slots=True)
class AddedLine:
    """One line of the file as the agent left it: ``number`` counts from 1. Without ``added`` it was there before."""

    path: str
    number: int
    text: str
    added: bool = True


def added_lines(diff: str) -> Iterator[AddedLine]:
    """Yield the added lines of a diff as ``workspace.diff`` holds it. Content that looks like a header is still content."""
    return (line for line in shown_lines(diff) if line.added)


def shown_lines(diff: str) -> Iterator[AddedLine]:
    """Yield the added lines and the unchanged ones that a diff shows around them."""
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
            yield AddedLine(path, number, line[1:], added=False)
            number, old, new = number + 1, old - 1, new - 1
