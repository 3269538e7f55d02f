"""Findings are matched one to one, and the replies of a real matcher give what they gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalwright.errors import JudgeUnreadable
from evalwright.interfaces import Deadline, Host, JudgeReply, JudgeRequest, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright.testing import FakeHost, FakeScoreContext, ScorerContract
from evalwright_plugins.judges.replay import ReplayConfig, ReplayJudge
from evalwright_scorers.findings import Findings, FindingsConfig
from evalwright_scorers.matching import agreement, one_to_one

RECORDED = Path(__file__).parent.parent / "data/pr-review/replies.jsonl"
REVIEWS = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


class TestContract(ScorerContract):
    expect: ClassVar[Mapping[str, Any]] = {"findings": {"gold": [{"description": "a leak", "severity": "high"}]}}

    def make(self, host: Host) -> Scorer[Any]:
        return Findings(FindingsConfig(judge="strict"), host)

    def reply(self, name: str, request: JudgeRequest) -> JudgeReply:
        question = request.messages[-1]["content"]
        if "The review:" in question:
            return JudgeReply(text='{"findings": [{"description": "a leak"}]}' if "leak" in question else '{"findings": []}')
        matches = [{"finding": 0, "gold": 0}] if "a leak" in question.split("Gold:")[0] else []
        return JudgeReply(text=json.dumps({"matches": matches}))

    def right(self) -> ScoredTrial:
        return self.trial("There is a leak.")

    def wrong(self) -> ScoredTrial:
        return self.trial("All is well.")


def trial(output: str, gold: list[dict[str, Any]]) -> ScoredTrial:
    return ScoredTrial(case_id="c", task="Review.", expect={"findings": {"gold": gold}}, output=output)


def in_turn(texts: Sequence[str | None]) -> Callable[[str, JudgeRequest], JudgeReply]:
    """Return a judge that gives one text after the other."""
    left = list(texts)

    def reply(name: str, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(text=left.pop(0) or "")

    return reply


def scored(place: Path, given: ScoredTrial, *replies: str | None, **config: Any) -> tuple[Score, FakeScoreContext]:
    left = list(replies)
    with FakeScoreContext(place, judge=in_turn(left)) as context:
        score = Findings(FindingsConfig.model_validate({"judge": "strict", **config}), FakeHost()).score(given, context)
    return score, context


@pytest.mark.parametrize("review", REVIEWS, ids=lambda review: str(review["id"]))
def test_recorded_replies_of_a_real_matcher_are_read_as_they_were(tmp_path: Path, review: dict[str, Any]) -> None:
    given = trial(review["review"], review["gold"])

    score, context = scored(tmp_path / "first", given, review["extract"], review["match"])

    counts = {name: score.metrics[name] for name in ("posted", "gold", "matched")}
    assert counts == {"posted": review["posted"], "gold": len(review["gold"]), "matched": review["matched"]}
    assert (score.metrics["precision"], score.metrics["recall"]) == pytest.approx((review["precision"], review["recall"]))
    assert score.score == pytest.approx(review["fbeta"])
    assert replayed(tmp_path, given, context.kept["replies.jsonl"]) == score


def replayed(tmp_path: Path, given: ScoredTrial, recording: bytes) -> Score:
    """Return the score that the kept replies give without any model."""
    file = tmp_path / "replies.jsonl"
    file.write_bytes(recording)
    judge = ReplayJudge(ReplayConfig(files=[str(file)]), FakeHost())
    with FakeScoreContext(tmp_path / "again", judge=lambda _, request: judge.ask(request, Deadline.after(20))) as context:
        return Findings(FindingsConfig(judge="strict"), FakeHost()).score(given, context)


def test_recorded_reviews_are_all_there_and_half_of_the_extractions_are_fenced() -> None:
    totals = [sum(review[name] for review in REVIEWS) for name in ("posted", "matched")]

    assert (len(REVIEWS), totals, sum(len(review["gold"]) for review in REVIEWS)) == (10, [25, 10], 28)
    assert sum(review["extract"].startswith("```") for review in REVIEWS) == 5


@pytest.mark.parametrize(
    ("posted", "gold", "matched", "expected"),
    [
        (0, 0, 0, (1, 1, 1)),
        (3, 0, 0, (0, 1, 0)),
        (0, 3, 0, (0, 0, 0)),
        (4, 2, 1, (0.25, 0.5, 1 / 3)),
        (2, 2, 2, (1, 1, 1)),
        (5, 5, 0, (0, 0, 0)),
    ],
)
def test_precision_recall_and_f_of_every_kind_of_case(
    posted: int, gold: int, matched: int, expected: tuple[float, float, float]
) -> None:
    assert agreement(posted, gold, matched) == pytest.approx(expected)


def test_beta_above_one_weighs_recall() -> None:
    assert agreement(10, 2, 2, beta=2)[2] == pytest.approx(5 * 0.2 / (4 * 0.2 + 1))


def test_each_finding_and_each_gold_finding_counts_once() -> None:
    assert one_to_one([(0, 0), (0, 1), (1, 0)]) == {0: 1, 1: 0}
    assert one_to_one([(0, 0), (1, 0), (2, 0)]) == {0: 0}
    assert one_to_one([]) == {}


def test_judge_is_not_asked_where_there_is_nothing_to_match(tmp_path: Path) -> None:
    clean, asked = scored(tmp_path / "a", trial(" ", []))
    noisy, _ = scored(tmp_path / "b", trial("x", []), '{"findings": [{"description": "x"}]}')

    assert (clean.ok, clean.score, asked.questions) == (True, 1.0, [])
    assert (noisy.ok, noisy.score, noisy.metrics["recall"]) == (False, 0.0, 1.0)


@pytest.mark.parametrize(
    "match",
    [
        '{"matches": [{"finding": 5, "gold": 0}]}',
        '{"matches": [{"finding": -1, "gold": 0}]}',
        '{"matches": [{"finding": true, "gold": 0}]}',
        "{}",
        "none",
    ],
)
def test_match_that_names_what_is_not_there_is_an_error_and_its_reply_is_kept(tmp_path: Path, match: str) -> None:
    left = ['{"findings": [{"description": "a leak"}]}', match]
    with FakeScoreContext(tmp_path, judge=in_turn(left)) as context:
        with pytest.raises(JudgeUnreadable):
            Findings(FindingsConfig(judge="strict"), FakeHost()).score(trial("x", [{"description": "a leak"}]), context)

        assert len(context.kept["replies.jsonl"].splitlines()) == 1


@pytest.mark.parametrize("output", ['["a leak"]', '{"findings": [{"description": "a leak", "file": "x.py"}]}'])
def test_findings_may_come_as_json(tmp_path: Path, output: str) -> None:
    gold = [{"description": "leak", "severity": "high"}, {"description": "race", "severity": "low"}]
    score, _ = scored(tmp_path, trial(output, gold), '{"matches": [{"finding": 0, "gold": 0}]}', source="json")

    assert (score.metrics["matched"], score.metrics["matched_high"], score.metrics["matched_low"]) == (1, 1, 0)
    assert [finding["why"] for finding in score.findings] == ["gold finding missed"]


@pytest.mark.parametrize(
    "output", ["", "text", "1", "null", "{}", "[1]", '"abc"', '{"findings": "abc"}', '[{"text": "x"}]', "[" * 100_000]
)
def test_answer_that_is_no_list_of_findings_fails(tmp_path: Path, output: str) -> None:
    score, _ = scored(tmp_path, trial(output, [{"description": "leak"}]), source="json")

    assert (score.ok, score.error) == (False, False)
