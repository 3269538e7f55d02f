"""What a test run reports, whatever the format: one outcome for each listed test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["GOOD", "Listed", "Outcome", "Report", "ReportUnreadable"]

Outcome = Literal["passed", "xfailed", "xpassed", "skipped", "tampered", "error", "failed"]

GOOD: frozenset[Outcome] = frozenset({"passed", "xfailed", "xpassed"})
_WORST_FIRST: tuple[Outcome, ...] = ("failed", "error", "tampered", "skipped", "xpassed", "xfailed", "passed")


class ReportUnreadable(Exception):
    """The report is not what its format asks for; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One test of a report. ``aliases`` are the other names by which an expectation may call it."""

    name: str
    outcome: Outcome
    detail: str = ""
    aliases: frozenset[str] = frozenset()

    @property
    def good(self) -> bool:
        """Tell whether the test counts as passed: an expected failure does, a skip does not."""
        return self.outcome in GOOD


class Report:
    """The listed tests, found by any of their names. Of several with one name the worst counts."""

    def __init__(self, tests: Iterable[Listed]) -> None:
        self.tests = tuple(tests)
        self._by_name: dict[str, Listed] = {}
        for test in self.tests:
            for name in {test.name, *test.aliases}:
                self._by_name[name] = _worse(self._by_name.get(name), test)

    def find(self, name: str) -> Listed | None:
        """Return the test of that name, ``None`` when the report does not list it."""
        return self._by_name.get(name)

    @property
    def names(self) -> list[str]:
        """Return the tests' own names, each once, in order."""
        return list(dict.fromkeys(test.name for test in self.tests))

    @property
    def lists_failure(self) -> bool:
        """Tell whether any test failed, broke or was tampered with."""
        return any(test.outcome in ("failed", "error", "tampered") for test in self.tests)


def _worse(one: Listed | None, other: Listed) -> Listed:
    if one is None:
        return other
    return min(one, other, key=lambda test: _WORST_FIRST.index(test.outcome))
