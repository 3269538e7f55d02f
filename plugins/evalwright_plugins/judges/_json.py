"""JSON that a server or a program sends: strict, and with types that a checker can follow."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

__all__ = ["is_list", "is_object", "strict_object"]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value is an array."""
    return isinstance(value, list)


def strict_object(data: bytes) -> dict[str, Any]:
    """Return the object that UTF-8 bytes hold. Raises ``ValueError`` for anything else, and for a key that stands twice."""
    try:
        document: Any = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not is_object(document):
        raise ValueError("no object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
