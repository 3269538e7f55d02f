"""Every check of the scorer contract fails on a scorer that is broken in that way."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from evalwright.errors import TrialError
from evalwright.interfaces import Host, JudgeRequest, ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright.testing import ScorerContract

Judge = Callable[[ScoredTrial, ScoreContext], Score]


class Word(RootModel[str]):
    """The expected word."""


class Loose(BaseModel):
    """An expectation that takes any key."""

    word: str


class Swapped(Scorer[None]):
    """Compares the output with ``expect.word``, unless something else is swapped in."""

    api = "scorer/1.0"
    Expect = MappingProxyType({"word": Word})
    capabilities = frozenset({"deterministic"})

    def __init__(self, swaps: Mapping[str, Any], judge: Judge | None, host: Host) -> None:
        super().__init__(None, host)
        self.judge = judge
        for name, value in swaps.items():
            setattr(self, name, value)

    def applies(self, expect: Mapping[str, Any]) -> bool:
        return "word" in expect

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        if self.judge:
            return self.judge(trial, context)
        same = trial.output == trial.expect["word"]
        return Score(ok=same, score=float(same))


def contract(judge: Judge | None = None, expected: Mapping[str, Any] | None = None, **swaps: Any) -> type[ScorerContract]:
    class Swap(ScorerContract):
        expect = expected or MappingProxyType({"word": "right"})

        def make(self, host: Host) -> Swapped:
            return Swapped(swaps, judge, host)

        def right(self) -> ScoredTrial:
            return self.trial("right")

        def wrong(self) -> ScoredTrial:
            return self.trial("wrong")

    return Swap


class TestHonest(contract()):
    pass


def says(score: Score) -> Judge:
    def judge(trial: ScoredTrial, context: ScoreContext) -> Score:
        return score

    return judge


def crashes_on_odd_output(trial: ScoredTrial, context: ScoreContext) -> Score:
    return Score(ok=True, score=1.0 if trial.output.encode("ascii") else 0.0)


def cannot(trial: ScoredTrial, context: ScoreContext) -> Score:
    raise TrialError("expectation_incomplete", "there is no target")


def asks(trial: ScoredTrial, context: ScoreContext) -> Score:
    context.judge("strict", JudgeRequest(messages=[]))
    return Score.passed()


def opens(trial: ScoredTrial, context: ScoreContext) -> Score:
    with context.session():
        return Score.passed()


def changes(trial: ScoredTrial, context: ScoreContext) -> Score:
    dict.update(trial.expect, {"word": "changed"})  # type: ignore[arg-type]  # that is what is wrong with it
    return Score.passed()


def alternates() -> Judge:
    numbers = itertools.count()

    def judge(trial: ScoredTrial, context: ScoreContext) -> Score:
        return Score(ok=True, score=next(numbers) % 2 / 2)

    return judge


def forgets() -> Judge:
    """Return a scorer that keeps its trial in a shared place while it works."""
    last: list[ScoredTrial] = []

    def judge(trial: ScoredTrial, context: ScoreContext) -> Score:
        last[:] = [trial]
        threading.Event().wait(0.01)
        same = last[0].output == "right"
        return Score(ok=same, score=float(same))

    return judge


def always(value: Any) -> Callable[..., Any]:
    return lambda *_: value


FINITE = "test_score_is_a_finite_number_from_0_to_1"
JUDGES = "test_judges_are_asked_only_by_scorers_that_need_one"
WEAKNESS = "test_weakness_is_a_sentence_or_nothing"
BROKEN: list[tuple[str, type[ScorerContract]]] = [
    (FINITE, contract(says(Score(ok=True, score=math.nan)))),
    (FINITE, contract(says(Score(ok=True, score=100.0)))),
    (FINITE, contract(says(Score(ok=True, score=True)))),
    (FINITE, contract(says(Score(ok="yes", score=1.0)))),  # type: ignore[arg-type]  # that is what is wrong with it
    (FINITE, contract(says(Score(ok=True, score=1.0, metrics={"m": math.inf})))),
    (FINITE, contract(says(Score.failed({"why": b"bytes"})))),
    ("test_odd_output_is_judged_without_a_defect", contract(crashes_on_odd_output)),
    ("test_expectations_fit_their_models", contract(expected={"word": 7})),
    ("test_expectations_fit_their_models", contract(expected={"wrod": "right"})),
    ("test_expectations_forbid_unknown_keys", contract(expected={"word": {"word": "x"}}, Expect={"word": Loose})),
    ("test_applies_agrees_with_score", contract(cannot)),
    ("test_applies_agrees_with_score", contract(applies=always(False))),
    ("test_applies_agrees_with_score", contract(applies=always(True))),
    ("test_right_trial_passes_and_wrong_trial_does_not", contract(says(Score.passed()))),
    ("test_right_trial_passes_and_wrong_trial_does_not", contract(says(Score.failed()))),
    ("test_trial_is_left_as_it_was", contract(changes)),
    ("test_deterministic_scorers_say_the_same_twice", contract(alternates())),
    ("test_pure_scorers_use_nothing_but_the_trial", contract(opens, pure=True)),
    (JUDGES, contract(asks)),
    (JUDGES, contract(asks, capabilities=frozenset({"needs-judge"}))),
    (JUDGES, contract(capabilities=frozenset({"needs-judge"}), uses=always(("judges.strict",)))),
    ("test_eight_threads_score_at_once", contract(forgets())),
    (WEAKNESS, contract(weakness=always(True))),
    (WEAKNESS, contract(weakness=always(" "))),
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=[f"{number}-{check}" for number, (check, _) in enumerate(BROKEN)])
def test_check_fails_on_its_broken_scorer(check: str, broken: type[ScorerContract], prove: Any) -> None:
    prove(broken, check)


def test_every_check_has_a_broken_scorer(checks: Any) -> None:
    assert checks(ScorerContract) == {check for check, _ in BROKEN}
