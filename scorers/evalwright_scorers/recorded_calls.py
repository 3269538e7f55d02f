"""Assertions about the calls that a service recorded, and about a part of its final state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, Field, model_validator

from evalwright.model import ServiceRecord
from evalwright_scorers.path_globs import matches
from evalwright_scorers.patterns import ValidPattern, found

__all__ = ["CallPattern", "CountedCall", "calls_findings", "fits", "includes", "is_object"]

SHOWN_CALLS = 10
SHOWN_CHARACTERS = 120
Finding = dict[str, Any]


class CallPattern(BaseModel, extra="forbid", frozen=True, strict=True):
    """Which calls are meant; what is left out fits every call.

    In ``path``, ``*`` stops at a slash and ``**`` does not. ``query`` and ``body`` must be part of the call's; ``body_matches``
    is looked for in the body as text, which for JSON is its stable form.
    """

    method: str | None = None
    path: str | None = None
    query: dict[str, str] = {}
    body: Any = None
    body_matches: ValidPattern | None = None
    status: int | None = None

    def describe(self) -> str:
        """Return the pattern in a few words."""
        rest = [key for key in ("query", "body", "body_matches", "status") if key in self.model_fields_set]
        return f"{self.method or 'any'} {self.path or '**'}" + (f" with {', '.join(rest)}" if rest else "")


class CountedCall(CallPattern, extra="forbid", frozen=True, strict=True):
    """A call that must have been made ``count`` times, or between ``min`` and ``max`` times; at least once by default."""

    count: Annotated[int, Field(ge=0)] | None = None
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _possible(self) -> CountedCall:
        if self.count is not None and (self.min is not None or self.max is not None):
            raise ValueError("give count, or min and max")
        low, high = self.bounds
        if high is not None and high < low:
            raise ValueError(f"no number is at least {low} and at most {high}")
        return self

    @property
    def bounds(self) -> tuple[int, int | None]:
        """Return the least and the greatest number of calls; ``None`` for no greatest."""
        if self.count is not None:
            return self.count, self.count
        return (self.min if self.min is not None else 0 if self.max is not None else 1), self.max


def calls_findings(
    record: ServiceRecord, calls: Sequence[CountedCall], forbidden: Sequence[CallPattern], order: Sequence[CallPattern]
) -> Iterator[Finding]:
    """Yield what is wrong with the calls: too few or too many, forbidden ones, or others than ``order`` one after another."""
    yield from _counted(record, calls)
    for pattern in forbidden:
        made = sum(fits(pattern, call) for call in record.calls)
        if made:
            yield _finding("forbidden call was made", pattern, record, actual=made)
        elif record.dropped:
            yield _finding("calls are not on record", pattern, record, actual=record.dropped)
    at = 0
    for pattern in order:
        at = next((number for number in range(at, len(record.calls)) if fits(pattern, record.calls[number])), -1) + 1
        if not at:
            yield _finding("call is missing, or came before the one that it should follow", pattern, record)
            return


def _counted(record: ServiceRecord, calls: Sequence[CountedCall]) -> Iterator[Finding]:
    for pattern in calls:
        low, high = pattern.bounds
        made = sum(fits(pattern, call) for call in record.calls)
        if made < low or (high is not None and made > high):
            wanted = f"at least {low}" if high is None else str(low) if low == high else f"{low} to {high}"
            yield _finding("wrong number of calls", pattern, record, expected=wanted, actual=made)
        elif high is not None and record.dropped:
            yield _finding("calls are not on record", pattern, record, actual=record.dropped)


def fits(pattern: CallPattern, call: Mapping[str, Any]) -> bool:
    """Tell whether a call is meant. Raises ``TrialError`` for an expression that takes too long."""
    path, body = str(call.get("path", "")), call.get("body")
    return (
        (pattern.method is None or pattern.method.upper() == call.get("method"))
        and (pattern.path is None or _path_fits(pattern.path, path))
        and (pattern.status is None or pattern.status == call.get("status"))
        and includes(call.get("query") or {}, pattern.query)
        and ("body" not in pattern.model_fields_set or includes(body, pattern.body))
        and (pattern.body_matches is None or found(pattern.body_matches, _text(body)))
    )


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def includes(actual: Any, wanted: Any) -> bool:
    """Tell whether ``wanted`` is part of a JSON value: of an object some keys, of a list some items in any order."""
    if is_object(wanted):
        return is_object(actual) and all(key in actual and includes(actual[key], item) for key, item in wanted.items())
    if _is_list(wanted):
        return _is_list(actual) and all(any(includes(held, item) for held in actual) for item in wanted)
    return isinstance(actual, bool) == isinstance(wanted, bool) and bool(actual == wanted)


def _path_fits(pattern: str, path: str) -> bool:
    return pattern.rstrip("/") == path.rstrip("/") or matches(pattern.strip("/"), path.strip("/"))


def _finding(why: str, pattern: CallPattern, record: ServiceRecord, **more: Any) -> Finding:
    seen = [f"{call.get('method')} {call.get('path')} {call.get('status')}"[:SHOWN_CHARACTERS] for call in record.calls]
    shown = seen[:SHOWN_CALLS] + ([f"and {len(seen) - SHOWN_CALLS} more"] if len(seen) > SHOWN_CALLS else [])
    return {"why": why, "value": pattern.describe(), **more, "calls": shown}


def _text(body: Any) -> str:
    return body if isinstance(body, str) else "" if body is None else json.dumps(body, sort_keys=True, ensure_ascii=False)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
