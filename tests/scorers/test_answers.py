"""number and choice: answers read from prose without guessing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from evalwright.errors import TrialError
from evalwright.model import Score
from evalwright_scorers.choice import Choice
from evalwright_scorers.number import Number

Judge = Callable[..., Score]


def number(judge: Judge, output: str, target: Any, **table: Any) -> Score:
    return judge(Number, {"number": {"target": target, **table}}, output=output)


def choice(judge: Judge, output: str, target: str, choices: str = "A B C D") -> Score:
    return judge(Choice, {"choice": {"target": target, "choices": choices.split()}}, output=output)


@pytest.mark.parametrize(
    "output",
    [
        "Answer: 42.",
        "It is (42).",
        "42!",
        "**42**",
        "Answer: **42**",
        "**Answer:** 42",
        "Answer:\n42",
        "ANSWER = 42",
        "x=42",
        "#### 42",
        r"\boxed{42}",
        "'42'",
        "$42",
        "42.0",
        "4.2e1",
        "I tried 3 ways; the answer is 42.",
        "Answer: 6 × 7 = 42",
        "Answer: 42 (from step 3)",
        "Answer: 41\nNo, wait.\nAnswer: 42",
        "Answer: 42\nConfidence: 95%",
        "The answer is in step 2. So 42",
        "With GPT-4 and H2O, on the 3rd try: 42",
        '{"answer": 42}',
        "42 on the 3rd try",
    ],
)
def test_the_declared_number_is_read(judge: Judge, output: str) -> None:
    score = number(judge, output, 42)

    assert score.ok, score.findings
    assert score.metrics == {"answer": 42.0}


@pytest.mark.parametrize("output", ["42abc", "Answer: 42abc", "Answer: 142", "-42", "Answer: 41", "4 2", "42/7", "42:30"])
def test_another_number_is_not_the_target(judge: Judge, output: str) -> None:
    assert not number(judge, output, 42).ok


def test_a_number_is_not_found_inside_a_longer_one(judge: Judge) -> None:
    score = number(judge, "918", 18)

    assert score.findings == ({"why": "wrong number", "answer": "918", "expected": "18"},)


@pytest.mark.parametrize(
    ("output", "target", "ok"),
    [
        ("$1,234.50", "1234.5", True),
        ("29.00", "29", True),
        ("1,234,567", 1234567, True),
        ("-$5.50", -5.5, True),
        ("\u22125", -5, True),
        (".5", 0.5, True),
        ("1.234,50", "1234.5", False),
        ("1.234,50", "1.2345", False),
        ("1,23", "123", False),
        ("1,23", "1.23", False),
        ("1_000", "1000", False),
        ("10 000", 0, False),
        ("1 234", 234, False),
        ("10-20", 20, False),
        ("1/2", 2, False),
        ("1.2.3", 3, False),
        ("\uff14\uff12", 42, False),
    ],
)
def test_grouping_and_decimals_are_read_or_left_unread(judge: Judge, output: str, target: Any, ok: bool) -> None:
    assert number(judge, output, target).ok is ok


def test_a_number_that_cannot_be_read_hides_no_earlier_one(judge: Judge) -> None:
    score = number(judge, "Of 12 offers the best is 1.234,50", 12)

    assert score.findings == ({"why": "unreadable number", "answer": "1.234,50"},)


@pytest.mark.parametrize("output", ["", "null", "NaN", "undefined", "inf", "-inf", "Infinity", "none", "no idea"])
@pytest.mark.parametrize("extract", ["last", "whole", r"(\S+)$"])
def test_no_number_is_no_answer(judge: Judge, output: str, extract: str) -> None:
    score = number(judge, output, 0, tolerance=1e9, extract=extract)

    assert score.findings == ({"why": "no answer"},)


def test_a_formal_declaration_without_a_number_is_no_answer(judge: Judge) -> None:
    assert number(judge, "I counted 42.\nAnswer: unknown", 42).findings == ({"why": "no answer"},)


@pytest.mark.parametrize(
    ("target", "percent", "ok"),
    [
        ("85%", None, True),
        ("100", None, False),
        ("85", None, False),
        ("0.85", None, False),
        ("85", "face", True),
        ("0.85", "face", False),
        ("85%", "face", True),
        ("0.85", "fraction", True),
        ("85", "fraction", False),
        ("85%", "fraction", True),
        ("85", "reject", False),
        ("0.85", "reject", False),
        ("100", "reject", False),
    ],
)
@pytest.mark.parametrize("written", ["85%", "85 %", "85 percent", "**85%**."])
def test_a_percentage_follows_the_declared_rule(judge: Judge, written: str, target: str, percent: str | None, ok: bool) -> None:
    table = {} if percent is None else {"percent": percent}

    score = number(judge, f"Of the 100 items I would keep {written}", target, **table)

    assert score.ok is ok
    assert ok or score.findings[0]["answer"].startswith("85")


def test_a_plain_number_is_not_a_percentage_by_itself(judge: Judge) -> None:
    assert not number(judge, "85", "85%").ok


@pytest.mark.parametrize(
    ("output", "tolerance", "ok"),
    [("1.1", 0.1, True), ("1.11", 0.1, False), ("0.9", 0.1, True), ("NaN", 1000.0, False), ("1e400", 1000.0, False)],
)
def test_a_tolerance_is_decimal(judge: Judge, output: str, tolerance: float, ok: bool) -> None:
    assert number(judge, output, 1, tolerance=tolerance).ok is ok


def test_a_number_too_large_for_a_float_has_no_metric(judge: Judge) -> None:
    assert number(judge, "1e400", 1).metrics == {}


@pytest.mark.parametrize(
    ("output", "extract", "ok"),
    [
        ("it is 42", r"\d+", True),
        ("it is 42", r"is (\d+)", True),
        ("a 41, b 42", r"[a-z] (\d+)", True),
        ("it is 42", r"was (\d+)", False),
        ("x: 42", r"y: (\d+)|x: (\d+)", True),
        ("42", "whole", True),
        (" (42).\n", "whole", True),
        ("it is 42", "whole", False),
        ("85%", r"\d+%", False),
    ],
)
def test_the_answer_can_be_extracted(judge: Judge, output: str, extract: str, ok: bool) -> None:
    assert number(judge, output, 42, extract=extract).ok is ok


def test_an_answer_is_never_run_as_code(judge: Judge, tmp_path: Any) -> None:
    output = f'__import__("pathlib").Path("{tmp_path}/pwned").write_text("x")'

    assert not number(judge, output, 3).ok
    assert not (tmp_path / "pwned").exists()


def test_an_extraction_that_would_run_for_ever_makes_the_trial_an_error(judge: Judge) -> None:
    with pytest.raises(TrialError, match="took longer"):
        number(judge, "a" * 40 + "!", 1, extract=r"^(a|a)*$")


@pytest.mark.parametrize("text", ["answer: ", "*", "\n", "answer: 1\n", "1 000 ", "answer: A, ", "the\n", "answer*"])
def test_output_built_to_be_slow_is_read_all_the_same(judge: Judge, text: str) -> None:
    output = text * (300_000 // len(text))

    assert not number(judge, output, 42).ok
    assert not choice(judge, output, "C").ok


def test_a_large_output_is_read_from_its_end(judge: Judge) -> None:
    assert number(judge, "word 7 and more\n" * 20_000 + "so 42", 42).ok


@pytest.mark.parametrize(
    "table",
    [
        {"target": True},
        {"target": float("nan")},
        {"target": "about nine"},
        {"target": "1.234,50"},
        {"target": 1, "percent": "maybe"},
        {"target": "5%", "percent": "reject"},
        {"target": 1, "extract": "("},
        {"target": 1, "tolerance": -1},
        {"goal": 1},
    ],
)
def test_a_number_that_cannot_be_expected_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Number.Expect["number"].model_validate(table)


def test_the_case_completes_the_table_of_the_entry(judge: Judge, applies: Callable[..., bool]) -> None:
    entry = {"tolerance": 0.5, "extract": "whole"}

    assert judge(Number, {"number": {"target": 1}}, entry, output="1.5").ok
    assert judge(Number, {"number": {"tolerance": 1}}, {"target": 1}, output="2").ok
    assert applies(Number, {}, {"target": 1})
    assert not applies(Number, {}, entry)


def test_a_table_without_a_target_is_an_error_not_a_pass(judge: Judge) -> None:
    with pytest.raises(TrialError) as caught:
        judge(Number, {"number": {"tolerance": 1}}, output="1")

    assert caught.value.kind == "expectation_incomplete"


def test_a_case_and_an_entry_that_contradict_are_an_error(judge: Judge) -> None:
    with pytest.raises(TrialError, match="percent: reject"):
        judge(Number, {"number": {"target": "5%"}}, {"percent": "reject"}, output="5%")


@pytest.mark.parametrize(
    "output",
    [
        "Answer: C",
        "ANSWER: C",
        "answer: c",
        "**Answer:** C",
        "**Answer: C**",
        "Answer: (C)",
        "Answer: **C**",
        "Answer: C) Paris",
        "Answer: C. Paris",
        "Answer: C because A is wrong",
        "Answer: Option C",
        "Answer is C",
        "The correct answer is C.",
        "Final Answer: C",
        r"Answer: $\boxed{C}$",
        "Answer:\n\nC",
        '{"answer": "C"}',
        "I think it is\nC",
        "(C)",
        "I choose (C) here",
        "so it must be **C** then",
        "The answer seems close to A.\nAnswer: C",
        "Answer: A\nOn reflection:\nAnswer: C",
        "Answer: A\nNo.\n\nC.",
        "ANSWER: A ... no, ANSWER: C",
    ],
)
def test_the_declared_choice_is_read(judge: Judge, output: str) -> None:
    score = choice(judge, output, "C")

    assert score.ok, score.findings


def test_an_earlier_answer_line_does_not_beat_the_final_one(judge: Judge) -> None:
    assert choice(judge, "so the real answer: nothing else is left\n\nANSWER: A", "A").ok


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Cats are nice",
        "A cat sat on a mat",
        "Answer: Canada",
        "Answer: A car is faster",
        "Answer: E",
        "Answer: C++",
        "Answer: A\nAnswer: unsure",
        "The answer is not C",
        "Can C be it? Maybe",
        "Answer: C-4",
    ],
)
def test_a_letter_in_a_word_or_sentence_is_no_answer(judge: Judge, output: str) -> None:
    assert choice(judge, output, "C").findings == ({"why": "no answer"},)


@pytest.mark.parametrize(
    "output",
    ["Answer: A or C", "Answer: A, C", "Answer: (A) and (C)", "Answer: A/C", "answer: a or c", "Maybe (A), maybe (C)?"],
)
def test_two_answers_are_ambiguous(judge: Judge, output: str) -> None:
    assert choice(judge, output, "C").findings == ({"why": "ambiguous answer", "answers": ["A", "C"]},)


def test_another_choice_is_shown(judge: Judge) -> None:
    assert choice(judge, "Answer: B", "C").findings == ({"why": "wrong choice", "answer": "B", "expected": "C"},)


@pytest.mark.parametrize("target", ["AB1", "AB_C1"])
def test_every_label_can_be_read_even_if_another_begins_it(judge: Judge, target: str) -> None:
    assert choice(judge, f"Answer: {target}", target, "AB1 AB_C1 AB").ok
    assert choice(judge, target, target, "AB1 AB_C1 AB").ok


def test_labels_that_differ_by_case_are_told_apart(judge: Judge) -> None:
    assert choice(judge, "Answer: b", "b", "b B").ok
    assert not choice(judge, "Answer: B", "b", "b B").ok


def test_words_can_be_labels(judge: Judge) -> None:
    assert choice(judge, "Answer: Yes, it does", "yes", "yes no").ok
    assert choice(judge, "no.", "no", "yes no").ok


@pytest.mark.parametrize(
    "table",
    [
        {"target": "E", "choices": ["A", "B"]},
        {"target": "A", "choices": ["A"]},
        {"target": "A", "choices": ["A", "A"]},
        {"target": "A", "choices": "ABCD"},
        {"target": 1, "choices": ["1", "2"]},
        {"target": "", "choices": ["", "B"]},
        {"target": "A", "choices": ["A ", "B"]},
    ],
)
def test_choices_that_make_no_question_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Choice.Expect["choice"].model_validate(table)


def test_choices_of_the_entry_serve_every_case(judge: Judge, applies: Callable[..., bool]) -> None:
    entry = {"choices": ["A", "B"]}

    assert judge(Choice, {"choice": {"target": "B"}}, entry, output="Answer: B").ok
    assert not applies(Choice, {}, entry)
    with pytest.raises(TrialError, match="do not fit together"):
        judge(Choice, {"choice": {"target": "C"}}, entry, output="C")
    with pytest.raises(TrialError, match="no choices"):
        judge(Choice, {"choice": {"target": "C"}}, output="C")
