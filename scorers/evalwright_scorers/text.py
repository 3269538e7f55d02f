"""Scorers that compare the answer's text: exact, contains, regex."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, RootModel

from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import expected
from evalwright_scorers.patterns import ValidPattern, found

__all__ = ["Contains", "ContainsConfig", "Exact", "ExactConfig", "Regex", "RegexConfig"]


class ExactConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The answer that cases expect unless they name their own."""

    exact: str | None = None


class ExactText(RootModel[str], strict=True, frozen=True):
    """The whole answer."""


class Exact(Scorer[ExactConfig]):
    """Passes when the output equals the expected text, white space included."""

    api = "scorer/1.0"
    Config = ExactConfig
    Expect = MappingProxyType({"exact": ExactText})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a text is expected; the empty one counts."""
        return expected(expect, "exact", self.config) is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Compare without trimming."""
        same = trial.output == expected(trial.expect, "exact", self.config)
        return Score.passed() if same else Score.failed()

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return the expected text."""
        text: str | None = expected(expect, "exact", self.config)
        return text


class ContainsConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The texts that every case expects unless it names its own."""

    text_contains: list[str] = []


class TextList(RootModel[list[str]], strict=True, frozen=True):
    """Texts that must all occur."""


class Contains(Scorer[ContainsConfig]):
    """Passes when every text occurs in the output."""

    api = "scorer/1.0"
    Config = ContainsConfig
    Expect = MappingProxyType({"text_contains": TextList})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether any text is expected."""
        return bool(expected(expect, "text_contains", self.config))

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List the texts that are missing."""
        values = expected(trial.expect, "text_contains", self.config)
        return Score.decided(tuple({"why": "missing text", "value": value} for value in values if value not in trial.output))

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return all expected texts, a line each."""
        return "\n".join(expected(expect, "text_contains", self.config))


class RegexConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The patterns that every case expects unless it names its own."""

    text_regex: list[ValidPattern] = []


class PatternList(RootModel[list[ValidPattern]], strict=True, frozen=True):
    """Patterns that must all match somewhere."""


class Regex(Scorer[RegexConfig]):
    """Passes when every pattern matches somewhere in the output; ``^`` and ``$`` match at each line."""

    api = "scorer/1.0"
    Config = RegexConfig
    Expect = MappingProxyType({"text_regex": PatternList})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether any pattern is expected."""
        return bool(expected(expect, "text_regex", self.config))

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List the patterns that do not match."""
        patterns = expected(trial.expect, "text_regex", self.config)
        return Score.decided(
            tuple({"why": "regex did not match", "value": pattern} for pattern in patterns if not found(pattern, trial.output))
        )
