"""Regular expressions from a suite: compiled when it is read, time-boxed when they meet an agent's text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from evalwright.errors import TrialError

if TYPE_CHECKING:
    import regex

__all__ = ["PATTERN_TIMEOUT", "ValidPattern", "extract_last", "found"]

PATTERN_TIMEOUT = 1.0


def _compilable(pattern: str) -> str:
    import regex

    try:
        regex.compile(pattern, regex.MULTILINE)
    except regex.error as error:
        raise ValueError(f"not a valid regular expression: {pattern!r}: {error}") from error
    return pattern


ValidPattern = Annotated[str, AfterValidator(_compilable)]
"""A string that compiles as a regular expression."""


def found(pattern: str, text: str) -> bool:
    """Tell whether the pattern matches anywhere, with ``^`` and ``$`` at each line.

    Raises ``TrialError`` when one second is not enough.
    """
    import regex

    try:
        return regex.compile(pattern, regex.MULTILINE).search(text, timeout=PATTERN_TIMEOUT) is not None
    except TimeoutError as error:
        raise _too_slow(pattern) from error


def extract_last(pattern: str, text: str) -> str | None:
    """Return the last match: its first group that took part, or all of it when the pattern has no group.

    ``None`` when nothing matches. Raises ``TrialError`` when one second is not enough.
    """
    import regex

    end = time.monotonic() + PATTERN_TIMEOUT
    last: regex.Match[str] | None = None
    try:
        for match in regex.compile(pattern, regex.MULTILINE).finditer(text, timeout=PATTERN_TIMEOUT):
            last = match
            if time.monotonic() > end:
                raise _too_slow(pattern)
    except TimeoutError as error:
        raise _too_slow(pattern) from error
    if last is None:
        return None
    groups = last.groups()
    return next((group for group in groups if group is not None), None) if groups else last.group()


def _too_slow(pattern: str) -> TrialError:
    return TrialError("regex_timeout", f"the pattern {pattern!r} took longer than {PATTERN_TIMEOUT:g} s on this output")
