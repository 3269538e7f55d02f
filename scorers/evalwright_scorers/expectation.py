"""Expectations: a case's own values over the defaults of the scorer's entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evalwright.errors import TrialError

__all__ = ["expected", "table"]

M = TypeVar("M", bound=BaseModel)


def expected(expect: Mapping[str, Any], key: str, defaults: BaseModel) -> Any:
    """Return the case's value of ``key``, else the default of the same name, else ``None``."""
    own = expect.get(key)
    return own if own is not None else getattr(defaults, key)


def table(expect: Mapping[str, Any], key: str, defaults: M) -> M:
    """Return the case's table ``key`` laid over the defaults, field by field.

    Raises ``TrialError`` when the two make no valid table together.
    """
    merged = defaults.model_dump(exclude_unset=True) | dict(expect.get(key) or {})
    try:
        return type(defaults).model_validate(merged)
    except ValidationError as error:
        reasons = "; ".join(problem["msg"] for problem in error.errors())
        raise TrialError(
            "expectation_invalid", f"expect.{key} and the scorer's entry do not fit together: {reasons}"
        ) from error
