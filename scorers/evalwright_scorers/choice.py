"""The scorer that reads one of several labels from the answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from evalwright.errors import TrialError
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.choice_text import Labels
from evalwright_scorers.expectation import table

__all__ = ["Choice", "ChoiceConfig"]

Label = Annotated[str, Field(min_length=1, pattern=r"^\S(?:.*\S)?$")]


class ChoiceConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The right label, and all labels from which the agent chooses."""

    target: Label | None = None
    choices: Annotated[list[Label], Field(min_length=2)] | None = None

    @field_validator("choices")
    @classmethod
    def _distinct(cls, choices: list[str] | None) -> list[str] | None:
        if choices is not None and len(set(choices)) != len(choices):
            raise ValueError("choice.choices names a label twice")
        return choices

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.target is not None and self.choices is not None and self.target not in self.choices:
            raise ValueError(f"choice.target {self.target!r} is not one of choice.choices")
        return self


class Choice(Scorer[ChoiceConfig]):
    """Passes when the label that the output gives as its answer is the target.

    The last declared answer counts (``Answer: C``, or a last line that is only a label); without one, a label set apart
    as ``(C)``, ``[C]`` or ``**C**`` when it is the only one. A letter inside a word or sentence is never read.
    """

    api = "scorer/1.0"
    Config = ChoiceConfig
    Expect = MappingProxyType({"choice": ChoiceConfig})

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a choice is expected."""
        return expect.get("choice") is not None or self.config.target is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Read the label and compare it with the target."""
        wanted = table(trial.expect, "choice", self.config)
        if wanted.target is None or wanted.choices is None:
            raise TrialError("expectation_incomplete", "expect.choice and the scorer's entry name no target or no choices")
        return _judged(Labels(wanted.choices).read(trial.output), wanted.target)

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return the target's label as a declared answer."""
        wanted = table(expect, "choice", self.config)
        return None if wanted.target is None else f"Answer: {wanted.target}"


def _judged(answers: tuple[str, ...], target: str) -> Score:
    if answers == (target,):
        return Score.passed()
    if not answers:
        return Score.failed({"why": "no answer"})
    if len(answers) > 1:
        return Score.failed({"why": "ambiguous answer", "answers": list(answers)})
    return Score.failed({"why": "wrong choice", "answer": next(iter(answers)), "expected": target})
