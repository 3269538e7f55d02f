"""The scorer that bounds one number of a JSON answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import expected
from evalwright_scorers.json_text import NotJson, is_array, is_object, parse_json

__all__ = ["NumericThreshold", "NumericThresholdConfig", "Threshold"]

Finite = Annotated[int | float, Field(allow_inf_nan=False)]
_INDEX = re.compile("[0-9]{1,9}")
BOUNDS = ("gt", "gte", "lt", "lte", "eq")


class Threshold(BaseModel, extra="forbid", frozen=True, strict=True):
    """Bounds that all hold for the number at ``path``: keys and list indexes with dots between.

    ``tolerance`` is the distance from ``eq`` that still counts as equal.
    """

    path: Annotated[str, Field(min_length=1)]
    gt: Finite | None = None
    gte: Finite | None = None
    lt: Finite | None = None
    lte: Finite | None = None
    eq: Finite | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if all(getattr(self, bound) is None for bound in BOUNDS):
            raise ValueError(f"numeric_threshold needs at least one bound: {', '.join(BOUNDS)}")
        if self.tolerance is not None and self.eq is None:
            raise ValueError("numeric_threshold: tolerance belongs to eq, which is missing")
        return self

    def likely(self) -> Decimal:
        """Return a number within all bounds where there is one."""
        if self.eq is not None and self.holds(self.eq):
            return _decimal(self.eq)
        margin = _decimal(self.tolerance or 0)
        about = [] if self.eq is None else [_decimal(self.eq)]
        low = max([*(_decimal(v) for v in (self.gt, self.gte) if v is not None), *(v - margin for v in about)], default=None)
        high = min([*(_decimal(v) for v in (self.lt, self.lte) if v is not None), *(v + margin for v in about)], default=None)
        if low is not None and high is not None:
            return (low + high) / 2
        end = low if low is not None else high if high is not None else Decimal(0)
        beyond = 1 + abs(end) / 1_000_000
        return end + beyond if high is None else end - beyond

    def holds(self, value: int | float) -> bool:
        """Tell whether every bound holds, in decimal arithmetic: 1.1 lies within 0.1 of 1."""
        number = _decimal(value)
        return all(
            (
                self.gt is None or number > _decimal(self.gt),
                self.gte is None or number >= _decimal(self.gte),
                self.lt is None or number < _decimal(self.lt),
                self.lte is None or number <= _decimal(self.lte),
                self.eq is None or abs(number - _decimal(self.eq)) <= _decimal(self.tolerance or 0),
            )
        )


class NumericThresholdConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The threshold of every case that has none of its own."""

    numeric_threshold: Threshold | None = None


class NumericThreshold(Scorer[NumericThresholdConfig]):
    """Passes when a number of the JSON output lies within all bounds. A path that leads nowhere fails."""

    api = "scorer/1.0"
    Config = NumericThresholdConfig
    Expect = MappingProxyType({"numeric_threshold": Threshold})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a threshold is given."""
        return expected(expect, "numeric_threshold", self.config) is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Read the number and hold it against the bounds."""
        threshold = Threshold.model_validate(expected(trial.expect, "numeric_threshold", self.config))
        try:
            value = _value_at(parse_json(trial.output), threshold.path)
        except NotJson as error:
            return Score.failed(error.finding)
        if value is None:
            return Score.failed()
        return Score.passed() if threshold.holds(value) else Score.failed()

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return a JSON object with a number at the path, within the bounds unless they leave none."""
        threshold = Threshold.model_validate(expected(expect, "numeric_threshold", self.config))
        document = str(threshold.likely())
        for key in reversed(threshold.path.split(".")):
            document = f"{{{json.dumps(key)}: {document}}}"
        return document


def _value_at(document: Any, path: str) -> int | float | None:
    value = document
    for part in path.split("."):
        if is_object(value) and part in value:
            value = value[part]
        elif is_array(value) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _decimal(value: int | float) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))
