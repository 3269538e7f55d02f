"""Numbers as answers write them: what is not read as a whole is never taken for another number."""

from __future__ import annotations

import pytest

from evalwright.interfaces import ScoreContext
from evalwright.model import ScoredTrial
from evalwright_scorers.number import Number, NumberConfig
from evalwright_scorers.number_text import last_reading, whole_reading


def why(output: str, target: float | str, **table: str) -> str | None:
    """Return why an answer fails, ``None`` when it passes."""
    expect = {"number": {"target": target, **table}}
    NumberConfig.model_validate(expect["number"])
    scorer: Number = Number(NumberConfig(), None)  # type: ignore[arg-type]  # a scorer of numbers asks nothing of its host
    context: ScoreContext = None  # type: ignore[assignment]  # nor of its context
    score = scorer.score(ScoredTrial(case_id="c", task="t", output=output, expect=expect), context)
    return None if score.ok else str(score.findings[0]["why"])  # type: ignore[index]  # its findings are objects


UNREAD = [
    "42½",
    "1 ½",
    "½",
    "4²",
    "√2",
    "π/2",
    "x/2",
    "42‰",
    "42 ‰",
    "42 million",
    "4.2 thousand dollars",
    "minus 5",
    "Negative 5",
    ",5",
    "3·10",
    "1.5 × 10",
    r"\frac{1}{2}",
    r"\dfrac{3}{2}",
    r"\sqrt{2}",
    r"\sqrt[3]{8}",
    "2^{10}",
    "10^{3}",
    r"3\times10^{8}",
    r"3 \cdot 10",
    r"1\,234",
    r"1\!234",
]


@pytest.mark.parametrize("form", ["{}", "Answer: {}", "It is **{}**.", r"\boxed{{{}}}"])
@pytest.mark.parametrize("written", UNREAD)
def test_what_is_no_plain_number_is_left_unread(written: str, form: str) -> None:
    found = last_reading(form.format(written))

    assert found is not None
    assert found.value is None, found


@pytest.mark.parametrize("written", UNREAD)
def test_what_is_no_plain_number_is_no_whole_number_either(written: str) -> None:
    found = whole_reading(written)

    assert found is not None
    assert found.value is None, found


@pytest.mark.parametrize(
    ("output", "target"),
    [
        (r"\boxed{42\%}", "42%"),
        (r"\boxed{1{,}234}", 1234),
        (r"Answer: \$1{,}234.50", 1234.5),
        ("The area is 42 m²", 42),
        ("It weighs 42 kg (CO₂)", 42),
        ("① the total is 42", 42),
        ("Answer: 42 to be exact", 42),
        ("Answer: 42 and nothing else", 42),
        ("Answer: 42, after 3 tries", 42),
        ("Answer: 42. 7 steps", 42),
        ("from 10 to 42", 42),
        ("x, 42", 42),
        ("6 × 7 = 42", 42),
        ("42 millimetres", 42),
        (r"\boxed{42}", 42),
        (r"\boxed{\text{about } 42}", 42),
    ],
)
def test_number_beside_such_signs_is_read_all_the_same(output: str, target: float | str) -> None:
    assert why(output, target) is None


def test_percentage_in_tex_is_one() -> None:
    assert why(r"\boxed{42\%}", 42) == "percentage and plain number are not compared unless percent says how"
    assert why(r"\boxed{42\%}", 42, percent="face") is None


@pytest.mark.parametrize("target", [10, 20])
@pytest.mark.parametrize("hedge", ["10 or 20", "10 and 20", "10 to 20", "**10** or **20**", "10, 20", "10; 20", "10 20"])
def test_two_declared_numbers_are_no_answer(hedge: str, target: int) -> None:
    assert why(f"Answer: {hedge}", target) == "unreadable number"
    assert why(f"I think the answer is {hedge}.", target) == "unreadable number"
