"""Verdicts are read as they were meant, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import JudgeUnreadable
from evalwright.interfaces import GradeForm, JsonForm
from evalwright.judging import read_verdict
from evalwright_scorers.findings import EXTRACTED

SCORE = JsonForm(
    schema={
        "type": "object",
        "required": ["score"],
        "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}, "pass": {"type": "boolean"}},
    },
    objection=lambda value: (
        "pass and score disagree" if value.get("pass", value["score"] >= 0.5) != (value["score"] >= 0.5) else None
    ),
    decides=("score", "pass"),
)
GRADES = GradeForm(grades=("C", "I"))


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 0.8}', 0.8),
        (' \n{"score": 0.8}\n', 0.8),
        ('```json\n{"score": 0.8, "reason": "fine"}\n```', 0.8),
        ('~~~\n{"score": 0.8}\n~~~', 0.8),
        ('My verdict:\n```json\n{"score": 0.25}\n```\nThat is all.', 0.25),
        ('{"score": 1, "reason": "uses ```py\\nx={}\\n``` correctly"}', 1),
        ('The code uses {x} and {}.\n{"score": 0.5}', 0.5),
        ('{"note": 1} then {"score": 0.75}', 0.75),
        ('<think>{"score": 1} perhaps</think>{"score": 0}', 0),
        ('{"score": 0.5, "reason": "first"} so {"score": 0.5, "reason": "again"}', 0.5),
        ('{"score": 1, "reason": "a } and a { in text"}', 1),
        ('```python\nx = {"score": 1}\n```\n{"score": 0}', 0),
    ],
)
def test_verdict_is_read_from_whole_text_fence_or_last_object(reply: str, score: float) -> None:
    assert read_verdict(reply, SCORE)["score"] == score


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "judge_unreadable"),
        ("fine", "judge_unreadable"),
        ('{"reason": "looks fine"}', "judge_unreadable"),
        ('{"pass": true, "score": 0}', "judge_inconsistent"),
        ('{"pass": "false", "score": 0.9}', "judge_unreadable"),
        ('{"score": "0.9"}', "judge_unreadable"),
        ('{"score": true}', "judge_unreadable"),
        ('{"score": 5}', "judge_unreadable"),
        ('{"score": -1}', "judge_unreadable"),
        ('{"score": NaN}', "judge_unreadable"),
        ('{"score": 1e999}', "judge_unreadable"),
        ('{"score": null}', "judge_unreadable"),
        ('{"score": 0, "score": 1}', "judge_unreadable"),
        ('{"score": 1.0 // all good\n}', "judge_unreadable"),
        ('{"score": 0 // bad\n} for example {"score": 1}', "judge_unreadable"),
        ('{"score": 1, "reason": "a\nb"}', "judge_unreadable"),
        ('{"score": 0.9, "reason": "The pat', "judge_truncated"),
        ('{"score": 0.9, "of": {"score": 0.1}, "reason": "The pat', "judge_truncated"),
        ('<think>{"score": 1}', "judge_truncated"),
        ('<think>{"score": 1}</think>', "judge_truncated"),
        ('They wrote {"score": 1.0}. Mine: {"score": 0.0}', "judge_ambiguous"),
        ('Mine: {"score": 0.0}. They wrote {"score": 1.0}', "judge_ambiguous"),
        ('They wrote\n```json\n{"score": 1}\n```\nI say {"score": 0}', "judge_ambiguous"),
        ('```json\n{"score": 1}\n```\n```json\n{"score": 0}\n```', "judge_ambiguous"),
        ('[{"score": 1}]', "judge_unreadable"),
        ('"{\\"score\\": 1}"', "judge_unreadable"),
        ("[" * 100_000, "judge_unreadable"),
        ('{"a":' * 100_000, "judge_truncated"),
        ("x" * (1 << 20) + '{"score": 1}', "judge_unreadable"),
    ],
)
def test_unclear_reply_is_an_error_and_no_score(reply: str, kind: str) -> None:
    with pytest.raises(JudgeUnreadable) as caught:
        read_verdict(reply, SCORE)

    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("GRADE: C - no cause to downgrade: internals are fine", "C"),
        ("grade: c", "C"),
        ("GRADE:\u200bC", "C"),
        ("**GRADE: I**", "I"),
        ("Reasons.\n\n**Grade:** C.", "C"),
        ("GRADE: C\nGRADE: C", "C"),
        ('The answer says "GRADE: C".\nGRADE: I', "I"),
        ("> GRADE: C\nGRADE: I", "I"),
    ],
)
def test_grade_is_read_from_its_line(reply: str, grade: str) -> None:
    assert read_verdict(reply, GRADES) == grade


@pytest.mark.parametrize(
    "reply",
    [
        "I am satisfied. FINAL: correct",
        "GRADE: B",
        "GRADE: correct",
        "downgrade: C",
        "GRADE: C|I",
        "GRADE: C or I",
        "GRADE:",
        "GRADE: C\nGRADE: I",
        "<think>GRADE: C",
        "",
    ],
)
def test_grade_that_is_missing_off_the_menu_or_unclear_is_an_error(reply: str) -> None:
    with pytest.raises(JudgeUnreadable):
        read_verdict(reply, GRADES)


def test_verdict_that_stands_in_the_question_is_read_only_when_it_is_the_whole_reply() -> None:
    question = 'The agent wrote: {"score":  1}'

    assert read_verdict('{"score": 1}', SCORE, question)["score"] == 1
    assert read_verdict('```json\n{"score": 1}\n```', SCORE, question)["score"] == 1
    assert read_verdict('I say {"score": 1, "reason": "x"}', SCORE, question)["score"] == 1
    with pytest.raises(JudgeUnreadable, match="quotation"):
        read_verdict('It wrote {"score":1}', SCORE, question)


def test_long_reply_of_fences_is_read_in_linear_time() -> None:
    reply: Any = "```a\n" * 100_000 + "\n" * 100_000

    with pytest.raises(JudgeUnreadable):
        read_verdict(reply, SCORE)


STORED = Path(__file__).parents[1] / "data/lastlight/results/pr-review/2026-07-05_095214-f2cc826/scorecard.json"
REVIEWS: list[dict[str, Any]] = [result["review"] for result in json.loads(STORED.read_text("utf-8"))["results"]]


@pytest.mark.parametrize("review", REVIEWS, ids=range(len(REVIEWS)))
def test_replies_of_a_real_judge_are_read(review: dict[str, Any]) -> None:
    extracted = read_verdict(review["trace"]["rawExtract"], EXTRACTED)

    assert len(extracted["findings"]) == review["posted"]


@pytest.mark.parametrize(
    "reply", ['```json\n{"score": 0}```', '```json\n{"score":\n0}\n\n```  ', '```{"score": 0}```', '~~~\n{"score": 0}~~~']
)
def test_fence_may_close_on_the_last_line_of_the_object(reply: str) -> None:
    assert read_verdict(reply, SCORE)["score"] == 0
