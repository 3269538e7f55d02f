"""Strict JSON: what a parser that follows the standard would accept."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, TypeGuard

__all__ = ["NotJson", "is_array", "is_object", "parse_json"]


class NotJson(ValueError):
    """The text is not JSON; the message is the parser's own."""

    @property
    def finding(self) -> dict[str, Any]:
        """Return the finding for a score."""
        return {"why": f"output is not JSON: {self}"}


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises :class:`NotJson`, also for NaN, Infinity and what overflows to them."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg) from error
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    except ValueError as error:
        raise NotJson(str(error)) from error


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a parsed value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a parsed value is an array."""
    return isinstance(value, list)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value
