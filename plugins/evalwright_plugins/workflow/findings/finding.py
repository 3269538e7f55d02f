"""One thing that a reviewer objects to, and the name under which it is recognised again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from evalwright.canonical import finite

__all__ = ["SEVERITIES", "Finding", "Severity", "Split", "fingerprint", "more_severe", "plain", "split"]

Severity = Literal["P0", "P1", "P2", "P3"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the most severe to the least."""

BLOCKING = frozenset({"P0", "P1"})
_WHITE_SPACE = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """An objection to a change. ``file`` is as the reviewer wrote it; ``line`` counts from 1."""

    severity: Severity
    summary: str
    file: str | None = None
    line: int | None = None

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits that stay the same when the case of the summary changes, or its white space within."""
        return fingerprint(self.severity, self.summary)

    @property
    def blocking(self) -> bool:
        """Tell whether the change must not go on with it."""
        return self.severity in BLOCKING

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are known."""
        fields = {"severity": self.severity, "summary": self.summary, "file": self.file, "line": self.line}
        return {name: value for name, value in fields.items() if value is not None}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Finding:
        """Read what :meth:`as_json` wrote; other keys are left out. Raises ``ValueError`` for what is no finding."""
        severity, summary = record.get("severity"), record.get("summary")
        file, line = record.get("file"), record.get("line")
        if severity not in SEVERITIES or not isinstance(summary, str):
            raise ValueError(f"a finding needs a severity ({', '.join(SEVERITIES)}) and a summary")
        if not isinstance(file, str | None) or not isinstance(line, int | None):
            raise ValueError("a finding's file is a text and its line a whole number")
        return Finding(severity, summary, file, line)


class Split(NamedTuple):
    """The findings of one review: those that block, those that do not, and those that a person dismissed."""

    blocking: tuple[Finding, ...]
    others: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]


def fingerprint(severity: str, summary: str) -> str:
    """Return the first 16 hex digits of the sha256 of ``severity|summary``, as :func:`plain` text in UTF-8."""
    return hashlib.sha256(plain(f"{severity}|{summary}").encode()).hexdigest()[:16]


def plain(text: str) -> str:
    """Return text in lower case, trimmed, each run of white space one space, each lone surrogate U+FFFD.

    White space is what ECMAScript's ``\\s`` matches (ECMA-262, WhiteSpace and LineTerminator), so that fingerprints
    agree with those of BuildBeat's ledgers.
    """
    return _WHITE_SPACE.sub(" ", str(finite(text)).lower()).strip(" ")


def split(findings: Iterable[Finding], dismissed: Set[str]) -> Split:
    """Sort findings by what they do to the change. A dismissed one stays visible, and never blocks."""
    given = list(findings)
    suppressed = tuple(finding for finding in given if finding.fingerprint in dismissed)
    rest = [finding for finding in given if finding.fingerprint not in dismissed]
    blocking = tuple(finding for finding in rest if finding.blocking)
    return Split(blocking, tuple(finding for finding in rest if not finding.blocking), suppressed)


def more_severe(findings: Iterable[Finding], limit: Severity, dismissed: Set[str]) -> tuple[Finding, ...]:
    """Return the findings that are more severe than ``limit`` and that nobody dismissed."""
    return tuple(one for one in findings if one.severity < limit and one.fingerprint not in dismissed)
