"""No hostile body gives a wrong verdict, hangs or crashes; the page says what becomes of each."""

from __future__ import annotations

import pytest
from tests.judging.hostile import bodies, outcomes
from tests.judging.page import PAGE, page_with

BODIES = bodies()
MEANT = {"read as 0", "read as 0.0", "read as -0.0"}


@pytest.fixture(scope="module")
def said() -> list[str]:
    return outcomes(BODIES)


def test_no_body_is_read_as_what_it_does_not_say(said: list[str]) -> None:
    assert len(BODIES) >= 200
    assert [
        (body.group, body.name, outcome)
        for body, outcome in zip(BODIES, said, strict=True)
        if not (outcome.startswith("judge_") or (body.may_be_read and outcome in MEANT))
    ] == []


def test_clear_replies_are_all_read(said: list[str]) -> None:
    clear = [outcome for body, outcome in zip(BODIES, said, strict=True) if body.group == "clear reply of the model"]

    assert set(clear) <= MEANT


def test_page_says_what_happens(said: list[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert text == page_with(text, BODIES, said), "write it anew: python -m tests.judging"
