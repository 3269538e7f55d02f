"""The scorer that reads a number from the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from evalwright.errors import TrialError
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.answers import Declaration, declarations
from evalwright_scorers.expectation import table
from evalwright_scorers.number_text import Reading, last_reading, plain, readings, whole_reading
from evalwright_scorers.patterns import ValidPattern, extract_last

__all__ = ["Number", "NumberConfig"]

_EITHER = re.compile(r"[\s*_`]*\b(?:or|and|to)\b[\s*_`]*", re.IGNORECASE)
_LIST = re.compile(r"[\s,;]*")
Percent = Literal["face", "fraction", "reject"]


class NumberConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """What number is right and how it is read from the output.

    ``target`` is a number, or a text such as ``"85%"``. ``tolerance`` is the distance that still counts as equal.
    ``percent`` says what 85% is: 85 (``face``), 0.85 (``fraction``) or no answer (``reject``); without it a percentage
    equals only a percentage. ``extract`` is ``last`` (the last declared answer, else the last number), ``whole``, or a
    pattern whose first group, or whole match, holds the number; its last match counts.
    """

    target: Annotated[int | float, Field(allow_inf_nan=False)] | str | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    percent: Percent | None = None
    extract: ValidPattern = "last"

    @field_validator("target")
    @classmethod
    def _readable(cls, target: int | float | str | None) -> int | float | str | None:
        if target is not None and _target_reading(target) is None:
            raise ValueError(f"number.target is not a number that can be read: {target!r}")
        return target

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        reading = _target_reading(self.target)
        if self.percent == "reject" and reading is not None and reading.percent:
            raise ValueError("number.target is a percentage, which percent: reject never accepts")
        return self


class Number(Scorer[NumberConfig]):
    """Passes when the number that the output gives as its answer is the target. No number is no answer."""

    api = "scorer/1.0"
    Config = NumberConfig
    Expect = MappingProxyType({"number": NumberConfig})

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a number is expected."""
        return expect.get("number") is not None or self.config.target is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Read the answer and compare it with the target."""
        wanted = table(trial.expect, "number", self.config)
        target = _target_reading(wanted.target)
        if target is None:
            raise TrialError("expectation_incomplete", "neither expect.number nor the scorer's entry names a target")
        answer = _answer(trial.output, wanted.extract)
        if answer is None:
            return Score.failed({"why": "no answer"})
        if answer.value is None:
            return Score.failed({"why": "unreadable number", "answer": answer.text})
        return _judged(answer, target, wanted)

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return the target, unless a pattern says where in a text the number must stand."""
        wanted = table(expect, "number", self.config)
        return None if wanted.target is None or wanted.extract not in ("last", "whole") else str(wanted.target)


def _judged(answer: Reading, target: Reading, wanted: NumberConfig) -> Score:
    metrics = _metrics(answer)
    if answer.percent and wanted.percent == "reject":
        return Score.failed({"why": "a percentage is not accepted", "answer": answer.text}, metrics=metrics)
    if wanted.percent is None and answer.percent != target.percent:
        why = "percentage and plain number are not compared unless percent says how"
        return Score.failed({"why": why, "answer": answer.text, "expected": target.text}, metrics=metrics)
    distance = abs(_value(answer, wanted.percent) - _value(target, wanted.percent))
    if distance <= _decimal(wanted.tolerance or 0):
        return Score.passed(metrics=metrics)
    return Score.failed({"why": "wrong number", "answer": answer.text, "expected": target.text}, metrics=metrics)


def _answer(output: str, extract: str) -> Reading | None:
    if extract == "whole":
        return whole_reading(output)
    if extract != "last":
        text = extract_last(extract, output)
        return whole_reading(text) if text is not None else None
    for declaration in declarations(output):
        reading = _declared(declaration)
        if reading is not None or declaration.formal:
            return reading
    return last_reading(output)


def _declared(declaration: Declaration) -> Reading | None:
    """Return the number that a declaration begins with; else, of a formal one, its last."""
    remark = declaration.text.find("(", 1)
    body = declaration.text if remark < 0 else declaration.text[:remark]
    body = plain(body.rpartition("=")[2])
    found = list(readings(body))
    if not found:
        return None
    if not any(character.isalnum() for character in body[: found[0].start]):
        return _unless_hedged(body, found)
    return found[-1] if declaration.formal else None


def _unless_hedged(body: str, found: Sequence[Reading]) -> Reading:
    """Return the first number, unread where another stands beside it as an equal: ``10 or 20``."""
    if len(found) == 1:
        return found[0]
    first, second = found[:2]
    between = body[first.start : second.start].rpartition(first.text)[2]
    is_last = len(found) == 2 and not any(letter.isalnum() for letter in body[second.start :].partition(second.text)[2])
    if _EITHER.fullmatch(between) or (is_last and _LIST.fullmatch(between)):
        return Reading(f"{first.text}{between}{second.text}", None)
    return first


def _target_reading(target: int | float | str | None) -> Reading | None:
    if target is None:
        return None
    if not isinstance(target, str):
        return Reading(str(target), _decimal(target))
    reading = whole_reading(target)
    return reading if reading is not None and reading.value is not None else None


def _value(reading: Reading, percent: Percent | None) -> Decimal:
    assert reading.value is not None
    return reading.value.scaleb(-2) if reading.percent and percent == "fraction" else reading.value


def _decimal(value: int | float) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def _metrics(answer: Reading) -> dict[str, float]:
    value = float(answer.value or 0)
    return {"answer": value} if math.isfinite(value) else {}
