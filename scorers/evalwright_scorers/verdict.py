"""The verdict that a command scorer prints: one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.model import Finding, Score
from evalwright_scorers.json_text import is_array, is_object

__all__ = ["read_verdict"]


class _Unusable(Exception):
    """The verdict breaks its contract; the message says how."""


def read_verdict(text: str) -> Score:
    """Return the score that a verdict states, or a broken one that says what is wrong with it."""
    try:
        raw = _parsed(text)
        ok, score, label, findings = _ok(raw), _score(raw), _label(raw), _findings(raw)
    except _Unusable as error:
        return Score.broken(str(error))
    if raw.get("error"):
        return Score(ok=False, score=0.0, label="error", findings=findings, error=True)
    return Score(ok=ok, score=score, label=label or ("pass" if ok else "fail"), findings=findings)


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        raw = json.loads(text.strip(), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _Unusable(f"invalid command scorer JSON: {error.msg}") from error
    except RecursionError as error:
        raise _Unusable("invalid command scorer JSON: nested too deeply") from error
    except ValueError as error:
        raise _Unusable(f"invalid command scorer JSON: {error}") from error
    if not is_object(raw):
        raise _Unusable("command scorer stdout must be one JSON object")
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _ok(raw: Mapping[str, Any]) -> bool:
    ok = raw.get("ok")
    if not isinstance(ok, bool):
        raise _Unusable("command scorer verdict requires boolean ok")
    return ok


def _score(raw: Mapping[str, Any]) -> float:
    score = raw.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise _Unusable("command scorer verdict requires finite numeric score in 0.0..1.0")
    return float(score)


def _label(raw: Mapping[str, Any]) -> str | None:
    label = raw.get("label")
    if label is not None and not isinstance(label, str):
        raise _Unusable("command scorer verdict label must be a string")
    _check_storable(label, "label")
    return label


def _findings(raw: Mapping[str, Any]) -> tuple[Finding, ...]:
    items = raw.get("findings")
    if not is_array(items):
        raise _Unusable("command scorer verdict requires findings list")
    if not all(isinstance(item, str | dict) for item in items):
        raise _Unusable("command scorer findings must be objects or strings")
    _check_storable(items, "findings")
    return tuple({"why": item} if isinstance(item, str) else item for item in items)


def _check_storable(value: Any, name: str) -> None:
    """Refuse what no strict JSON file in UTF-8 can hold: NaN, half of a surrogate pair."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"command scorer {name} cannot be stored as JSON: {error}") from error
