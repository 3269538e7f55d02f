"""The usage in an envelope: the keys of an agent's usage file, checked in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.canonical import is_object
from evalwright.model import Usage
from evalwright.model.usage import COUNTS, as_amount, as_count

__all__ = ["read_usage"]

INCLUSIVE = "input_includes_cached"
KEYS = (*COUNTS, "cost", "model", INCLUSIVE)
MAX_MODEL = 200


def read_usage(record: Any) -> Usage:
    """Return tokens and cost (US dollars); an absent or null key is unknown. Raises ``ValueError`` with what is wrong."""
    if not is_object(record):
        raise ValueError("no object")
    if unknown := sorted(record.keys() - set(KEYS)):
        raise ValueError(f"unknown key {unknown[0]!r}; known are {', '.join(KEYS)}")
    given = {name: value for name, value in record.items() if value is not None}
    inclusive = given.pop(INCLUSIVE, False)
    usage = Usage(**_checked(given))
    if not isinstance(inclusive, bool):
        raise ValueError(f"{INCLUSIVE} must be true or false")
    return _exclusive(usage) if inclusive else usage


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if name == "model":
            if not isinstance(value, str) or not 0 < len(value) <= MAX_MODEL:
                raise ValueError(f"model must be a name of at most {MAX_MODEL} characters")
        elif name == "cost":
            if as_amount(value) is None:
                raise ValueError("cost must be an amount in US dollars, at least 0")
        elif as_count(value) is None:
            raise ValueError(f"{name} must be a whole number, at least 0")
    return {name: float(value) if name == "cost" else value for name, value in given.items()}


def _exclusive(usage: Usage) -> Usage:
    """Take the cached tokens out of an input that includes them."""
    if usage.input is None or usage.cache_read is None:
        raise ValueError(f"{INCLUSIVE} needs input and cache_read")
    written = usage.cache_write or 0
    rest = usage.input - usage.cache_read - written
    if rest < 0:
        raise ValueError("input is less than the cached tokens that it includes")
    return replace(usage, input=rest, cache_write=written)
