"""The contract of scorers."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from evalwright.errors import EvalwrightError, TrialError
from evalwright.interfaces import Host, JudgeReply, JudgeRequest, ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright.registry import model_problems
from evalwright.testing._contract import Contract, since
from evalwright.testing._score_context import FakeScoreContext
from evalwright.testing._waiting import in_threads

__all__ = ["ODD_OUTPUTS", "ScorerContract"]

ODD_OUTPUTS: Sequence[str] = (
    "",
    "\n",
    " \t\r\n\x0b\x0c\x00",
    "nan",
    "Answer: -inf",
    "1e999999",
    "{" * 3000,
    '{"score": NaN, "a": [1, "two", null]}',
    "\ufffd\ufeff\u202eabc\u0301\u200d\U0001f469\u200d\U0001f680",
    "\u0663\u0664 \u00bd \u2167 10,000.5 \u22127",
    "x" * 100_000,
    "a\n" * 5_000,
)


NO_EXPECTATION: Mapping[str, Any] = {}


class ScorerContract(Contract[Scorer[Any]]):
    """What every scorer promises. Override ``make`` and ``expect``, and ``right`` and ``wrong``.

    ``expect`` is a case's expectation that makes the scorer apply; ``judged`` the text that every judge replies.
    """

    kind = "scorer"
    expect: ClassVar[Mapping[str, Any]] = {}
    judged: ClassVar[str] = "yes"

    def make(self, host: Host) -> Scorer[Any]:
        """Return a new scorer."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def reply(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Return what the judge ``name`` replies."""
        return JudgeReply(text=self.judged)

    def right(self) -> ScoredTrial | None:
        """Return a trial that must pass, made by :meth:`trial`; ``None`` leaves the check out."""
        return None

    def wrong(self) -> ScoredTrial | None:
        """Return a trial that must not pass; ``None`` leaves the check out."""
        return None

    def fill(self, context: FakeScoreContext) -> None:
        """Fill the context's directories, for a scorer that looks at files."""

    def trial(self, output: str = "", **fields: Any) -> ScoredTrial:
        """Return a trial with the contract's expectations."""
        values: dict[str, Any] = {"case_id": "case", "task": "Do it.", "expect": self.expect, "exit_code": 0}
        return ScoredTrial(output=output, **(values | fields))

    @contextlib.contextmanager
    def context(self, place: Path) -> Generator[FakeScoreContext]:
        """Give a filled context."""
        with FakeScoreContext(place, judge=lambda name, request: self.reply(name, request)) as context:
            self.fill(context)
            yield context

    @since("1.0")
    def test_score_is_a_finite_number_from_0_to_1(self, tmp_path: Path) -> None:
        """Whatever the output; metrics are finite, ``ok`` is a boolean, findings are JSON."""
        with self.made() as scorer, self.context(tmp_path) as context:
            for output in ODD_OUTPUTS:
                score = _score(scorer, self.trial(output), context)
                if score is not None:
                    _assert_valid(score, output)

    @since("1.0")
    def test_odd_output_is_judged_without_a_defect(self, tmp_path: Path) -> None:
        """Empty, huge and odd Unicode output gives a score or a ``TrialError``, never another exception."""
        with self.made() as scorer, self.context(tmp_path) as context:
            for output in ODD_OUTPUTS:
                trial = self.trial(output, output_truncated=True, exit_code=None, timed_out=True)
                try:
                    _score(scorer, trial, context)
                except Exception as error:
                    raise AssertionError(f"the output {output[:40]!r} raised {error!r}; raise TrialError") from error

    @since("1.0")
    def test_expectations_fit_their_models(self) -> None:
        """Every key of the contract's ``expect`` belongs to the scorer, and its model accepts the value."""
        with self.made() as scorer:
            owned = scorer.Expect
        for key, value in self.expect.items():
            assert key in owned, f"the scorer's Expect does not own {key!r}"
            assert not model_problems(owned[key], value, f"expect.{key}"), f"Expect[{key!r}] refuses the contract's value"

    @since("1.0")
    def test_expectations_forbid_unknown_keys(self) -> None:
        """A misspelt key inside an expectation is refused."""
        with self.made() as scorer:
            owned = scorer.Expect
        for key, value in self.expect.items():
            if isinstance(value, Mapping) and not getattr(owned[key], "__pydantic_root_model__", False):
                assert owned[key].model_config.get("extra") == "forbid", f"Expect[{key!r}] accepts unknown keys"

    @since("1.0")
    def test_applies_agrees_with_score(self, tmp_path: Path) -> None:
        """When ``applies`` says yes, an ordinary trial gets a score; it says yes to the contract's own expectation."""
        with self.made() as scorer, self.context(tmp_path) as context:
            if self.expect:
                assert scorer.applies(self.expect) is True, "applies() does not say True to the contract's expect"
            for expect in (self.expect, NO_EXPECTATION):
                if scorer.applies(expect):
                    trial = replace(self.right() or self.trial("an answer"), expect=expect)
                    try:
                        scorer.score(trial, context)
                    except Exception as error:
                        raise AssertionError(f"applies({dict(expect)!r}) is True, but score raised {error!r}") from error

    @since("1.0")
    def test_right_trial_passes_and_wrong_trial_does_not(self, tmp_path: Path) -> None:
        """The scorer can tell: what ``right`` gives passes, what ``wrong`` gives does not."""
        with self.made() as scorer, self.context(tmp_path) as context:
            for trial, wanted in ((self.right(), True), (self.wrong(), False)):
                if trial is not None:
                    context.output = trial.output
                    score = scorer.score(trial, context)
                    assert score.ok is wanted, f"the output {trial.output[:40]!r} gave ok {score.ok}: {score.findings!r}"

    @since("1.0")
    def test_trial_is_left_as_it_was(self, tmp_path: Path) -> None:
        """A scorer that changes the expectations would change them for others."""
        expect = copy.deepcopy(dict(self.expect))
        with self.made() as scorer, self.context(tmp_path) as context:
            scorer.applies(expect)
            _score(scorer, replace(self.right() or self.trial("an answer"), expect=expect), context)
        assert expect == self.expect, "the scorer changed the case's expectations"

    @since("1.0")
    def test_deterministic_scorers_say_the_same_twice(self, tmp_path: Path) -> None:
        """With the capability ``deterministic``, or ``pure``, equal trials get equal scores, also from a new plugin."""
        scores: list[Score | None] = []
        for _ in range(2):
            with self.made() as scorer, self.context(tmp_path) as context:
                if not _deterministic(scorer):
                    return
                scores += [_score(scorer, self.right() or self.trial("an answer"), context) for _ in range(2)]
        assert all(score == scores[0] for score in scores), f"equal trials got different scores: {scores!r}"

    @since("1.0")
    def test_pure_scorers_use_nothing_but_the_trial(self, tmp_path: Path) -> None:
        """A ``pure`` scorer asks no judge, opens no session and keeps nothing: a report applies it again."""
        with self.made() as scorer, self.context(tmp_path) as context:
            if not scorer.pure:
                return
            _score(scorer, self.right() or self.trial("an answer"), context)
            used = (context.opened, len(context.questions), len(context.kept))
        assert used == (0, 0, 0), "a pure scorer used its context"

    @since("1.0")
    def test_judges_are_asked_only_by_scorers_that_need_one(self, tmp_path: Path) -> None:
        """A scorer that asks a judge declares ``needs-judge`` and names the judge in ``uses``."""
        with self.made() as scorer, self.context(tmp_path) as context:
            _score(scorer, self.right() or self.trial("an answer"), context)
            asked = {f"judges.{name}" for name, _ in context.questions}
            assert not asked or "needs-judge" in scorer.capabilities, "the scorer asks a judge; declare needs-judge"
            assert asked <= set(scorer.uses()), f"uses() does not name {sorted(asked)}"
            assert asked or "needs-judge" not in scorer.capabilities, "needs-judge is declared, but no judge was asked"

    @since("1.0")
    def test_eight_threads_score_at_once(self, tmp_path: Path) -> None:
        """One scorer serves eight trials at the same time, and mixes nothing up."""
        right, wrong = self.right() or self.trial("an answer"), self.wrong() or self.trial("another")
        with self.made() as scorer, self.context(tmp_path) as context:
            alone = [_outcome(scorer, trial, context) for trial in (right, wrong)]
            rounds = 20 if scorer.pure else 1

            def score(number: int) -> bool:
                trial, expected = (right, alone[0]) if number % 2 else (wrong, alone[1])
                return all(_outcome(scorer, trial, context) == expected for _ in range(rounds))

            assert all(in_threads(score)), "trials that were scored at the same time got other scores"

    @since("1.0")
    def test_weakness_is_a_sentence_or_nothing(self) -> None:
        """``audit`` prints what ``weakness`` says."""
        with self.made() as scorer:
            said: Any = scorer.weakness(self.expect)
        assert said is None or (isinstance(said, str) and said.strip()), f"weakness() said {said!r}"


def _score(scorer: Scorer[Any], trial: ScoredTrial, context: ScoreContext) -> Score | None:
    """Return the score, or ``None`` when the scorer says that it cannot judge."""
    try:
        return scorer.score(trial, context)
    except (TrialError, EvalwrightError):
        return None


def _outcome(scorer: Scorer[Any], trial: ScoredTrial, context: ScoreContext) -> tuple[bool, float] | None:
    score = _score(scorer, trial, context)
    return None if score is None else (score.ok, score.score)


def _deterministic(scorer: Scorer[Any]) -> bool:
    return scorer.pure or "deterministic" in scorer.capabilities


def _assert_valid(score: Score, output: str) -> None:
    shown = f"the output {output[:40]!r} gave {score!r}"
    value: Any = score.score
    decided: Any = score.ok
    assert isinstance(value, (int, float)), shown
    assert not isinstance(value, bool), shown
    assert math.isfinite(value), shown
    assert 0 <= value <= 1, shown
    assert isinstance(decided, bool), shown
    assert all(math.isfinite(number) for number in score.metrics.values()), shown
    try:
        json.dumps([dict(finding) for finding in score.findings], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"findings are not JSON: {shown}") from error
