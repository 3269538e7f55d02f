"""The scorer acme-wordcount: how long is the answer?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial

__all__ = ["WordCount", "WordRange"]


class WordRange(BaseModel):
    """Bounds of the number of words, both included. In a suite's entry they hold for every case without its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    min: int = Field(default=0, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max {self.max} is less than min {self.min}")
        return self


class WordCount(Scorer[WordRange]):
    """Passes when the number of words lies in the range."""

    api = "scorer/1.0"
    Config = WordRange
    Expect = MappingProxyType({"acme_words": WordRange})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether the case or the suite gives a range."""
        return expect.get("acme_words") is not None or self.config != WordRange()

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Count the words; the number is a metric, whatever the verdict."""
        own = trial.expect.get("acme_words")
        wanted = self.config if own is None else WordRange.model_validate(own)
        words = len(trial.output.split())
        metrics = {"words": float(words)}
        if words < wanted.min:
            return Score.failed({"why": "too few words", "words": words, "min": wanted.min}, metrics=metrics)
        if wanted.max is not None and words > wanted.max:
            return Score.failed({"why": "too many words", "words": words, "max": wanted.max}, metrics=metrics)
        return Score.passed(metrics=metrics)
