"""Numbers as people write them, read without guessing.

Grouping is ``1,234`` and the decimal sign is ``.``; what could mean something else (``1.234,50``, ``1,23``, ``1_000``,
``10-20``, ``1/2``, ``42½``, ``42 million``, ``minus 5``, ``42abc``) is seen as a number and left unread, so that no other
number is scored in its place. TeX is read as what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import regex

__all__ = ["Reading", "last_reading", "plain", "readings", "whole_reading"]

_CURRENCY = "$€£¥"
_TOKEN = regex.compile(
    rf"""
    (?: \b(?:minus|negative) [ \u00a0]++ (?=[.\d{_CURRENCY}])
      | [\w\p{{No}}.,'’+\-−–^√∛‰{_CURRENCY}]++
      | (?<=\d) [:/×*]++ (?=\d)
      | (?<=\d) [ ]?[×·][ ]? (?=\d)
      | (?<=\p{{L}}) [/·×] (?=\d)
      | (?<=\d) [ \u00a0] (?:‰|(?:hundred|thousand|million|billion|trillion|dozen)s?\b)
      | (?<=\d) (?<!\d{{4}}) [ \u00a0\u2009\u202f] (?=\d{{3}}(?!\d))
      | (?<=\d[.]?) [ \u00a0\u202f]? %
      | (?<=\d) [ \u00a0] per[ ]?cent \b
    )++
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_NUMBER = regex.compile(
    rf"""
    [{_CURRENCY}]? (?P<sign>[+-]?) [{_CURRENCY}]?
    (?P<digits> (?: [0-9]{{1,3}}(?:,[0-9]{{3}})+ | [0-9]+ )(?:\.[0-9]+)? | \.[0-9]+ )
    (?P<exponent> [eE][+-]?[0-9]{{1,3}} )?
    [{_CURRENCY}]? (?P<percent>%)?
    """,
    regex.VERBOSE,
)
_PERCENT_WORD = regex.compile(r"(?:[ \u00a0\u202f-]?per ?cent|[ \u00a0\u202f]+%)$", regex.IGNORECASE)
_WORD = regex.compile(r"[^\W\d_][\w\p{No}'’.\-]*|\d+(?:st|nd|rd|th)", regex.IGNORECASE)
_DIGIT = regex.compile(r"[\d\p{No}]")
_TEX = (
    (regex.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}"), r"\1/\2"),
    (regex.compile(r"\\sqrt(?:\[[^][]*\])?\{?"), "√"),
    (regex.compile(r"([\^_])\{([^{}]*)\}"), r"\1\2"),
    (regex.compile(r"[ ]?\\(?:times|cdot)(?![A-Za-z])[ ]?"), "×"),
    (regex.compile(r"\\[,;:! ](?=\d)"), " "),
    (regex.compile(r"\{,\}"), ","),
    (regex.compile(r"\\([%$])"), r"\1"),
)
_MAX_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing that looks like a number: as written, where, and its value; ``None`` when that is not clear."""

    text: str
    value: Decimal | None
    percent: bool = False
    start: int = 0


def readings(text: str) -> Iterator[Reading]:
    """Yield what looks like a number, in order. Words that hold digits (``H2O``, ``GPT-4``, ``3rd``) do not."""
    for match in _TOKEN.finditer(text):
        token = _trimmed(match.group())
        if _DIGIT.search(token) and not _WORD.fullmatch(token):
            yield _read(token, match.start())


def last_reading(text: str) -> Reading | None:
    """Return the last thing in the text that looks like a number."""
    if _DIGIT.search(text) is None:
        return None
    for line in reversed(text.splitlines()):
        found = list(readings(plain(line))) if line else []
        if found:
            return found[-1]
    return None


def whole_reading(text: str) -> Reading | None:
    """Return the number that the whole text is, leaving out white space, brackets, emphasis and a full stop."""
    wrapping = " \t\r\n()[]{}*`\"!?;:'’_"
    token = _trimmed(plain(text).lstrip(wrapping).rstrip(wrapping + ".,"))
    if _DIGIT.search(token) is None:
        return None
    return _read(token, 0)


def plain(text: str) -> str:
    """Return a line with TeX in it as it looks: fractions, roots, powers, thin spaces, signs."""
    for pattern, shown in _TEX if "\\" in text or "{" in text else ():
        text = pattern.sub(shown, text)
    return text


def _trimmed(token: str) -> str:
    """Return what may be a number without the punctuation around it. A comma right before digits may be a decimal sign."""
    token = token.rstrip(".,'’_^+-−–")
    bare = token.lstrip(",'’_^")
    if bare[:1].isdigit() and token[: -len(bare)].endswith(","):
        bare = f",{bare}"
    return bare.lstrip(".") if bare.startswith("..") else bare


def _read(token: str, start: int) -> Reading:
    shown = token if len(token) <= _MAX_CHARACTERS else token[:_MAX_CHARACTERS] + "..."
    match = _NUMBER.fullmatch(_PERCENT_WORD.sub("%", token).replace("−", "-"))
    if match is None or len(token) > _MAX_CHARACTERS:
        return Reading(shown, None, start=start)
    digits = match["digits"].replace(",", "")
    value = Decimal(match["sign"] + digits + (match["exponent"] or ""))
    return Reading(shown, value, percent=match["percent"] is not None, start=start)
