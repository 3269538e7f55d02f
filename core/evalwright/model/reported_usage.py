"""Usage as agents report it: one JSON object, read without trust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from evalwright.model.usage import COUNTS, Usage, as_amount, as_count

__all__ = ["MAX_BYTES", "MAX_MODEL", "read_usage", "usage_from"]

MAX_BYTES = 1 << 16
MAX_MODEL = 200
INCLUSIVE = "input_includes_cached"
KEYS = (*COUNTS, "cost", "model", INCLUSIVE)


def usage_from(data: bytes) -> Usage:
    """Return what a usage file of at most 64 KiB says. Raises ``ValueError`` with what is wrong."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")
    try:
        record: Any = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return read_usage(record)


def read_usage(record: Any) -> Usage:
    """Return tokens, turns, tool calls and cost (US dollars) of a JSON value; an absent or null key is unknown.

    Raises ``ValueError`` with what is wrong, unknown keys too.
    """
    if not isinstance(record, Mapping):
        raise ValueError("it holds no JSON object")
    told = cast("Mapping[str, Any]", record)
    if unknown := sorted(told.keys() - KEYS):
        raise ValueError(f"unknown key {unknown[0]!r}; known are {', '.join(KEYS)}")
    given = {name: value for name, value in told.items() if value is not None}
    inclusive = given.pop(INCLUSIVE, False)
    checked = {name: _checked(name, value) for name, value in given.items()}
    if not isinstance(inclusive, bool):
        raise ValueError(f"{INCLUSIVE} must be true or false")
    return _exclusive(Usage(**checked)) if inclusive else Usage(**checked)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _checked(name: str, value: Any) -> Any:
    if name == "model":
        if not isinstance(value, str) or not 0 < len(value) <= MAX_MODEL:
            raise ValueError(f"model must be a name of at most {MAX_MODEL} characters")
        return value
    found = as_amount(value) if name == "cost" else as_count(value)
    if found is None:
        raise ValueError(f"{name} must be {'an amount in US dollars' if name == 'cost' else 'a whole number'}, at least 0")
    return found


def _exclusive(usage: Usage) -> Usage:
    """Take the cached tokens out of an input that includes them; a cache that such a report does not write to holds 0."""
    if usage.input is None or usage.cache_read is None:
        raise ValueError(f"{INCLUSIVE} needs input and cache_read")
    written = usage.cache_write or 0
    rest = usage.input - usage.cache_read - written
    if rest < 0:
        raise ValueError("input is less than the cached tokens that it includes")
    return replace(usage, input=rest, cache_write=written)
