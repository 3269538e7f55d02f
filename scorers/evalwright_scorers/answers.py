"""Where a text declares its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import regex

__all__ = ["Declaration", "declarations"]

_MAX_CHARACTERS = 500
_MAX_DECLARATIONS = 1000
_MARKUP = r"""["'*_`]*"""
_DECLARED = regex.compile(
    rf"""
    \banswer\b{_MARKUP}[ \t]*(?P<verb>is\b[ \t]*:?|[:=：])[\s"'*_`]*
    (?=(?P<text>[^\n]{{0,{_MAX_CHARACTERS}}}))
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_BEFORE = regex.compile(r"[^\w\n]*+(?:(?:so|thus|hence|therefore|the|my|final|correct)\b[^\w\n]++)*+", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What stands after ``Answer:`` up to the end of its line.

    ``formal`` tells a line that begins with the declaration from words in a sentence, which may say anything.
    """

    text: str
    formal: bool


def declarations(text: str) -> Iterator[Declaration]:
    """Yield the declared answers (``Answer: 42``, ``the answer is 42``) from the last to the first."""
    last = deque(_DECLARED.finditer(text), maxlen=_MAX_DECLARATIONS)
    for match in reversed(last):
        yield Declaration(match["text"], not match["verb"].lower().startswith("is") and _begins_line(text, match.start()))


def _begins_line(text: str, at: int) -> bool:
    line = text.rfind("\n", max(0, at - _MAX_CHARACTERS), at) + 1
    return (line > 0 or at <= _MAX_CHARACTERS) and _BEFORE.fullmatch(text, line, at) is not None
