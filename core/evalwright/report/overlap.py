"""Trials that ran at the same time: they share the machine and the provider, so their durations are no clean latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from evalwright.ledger import Event

__all__ = ["Span", "overlapping", "spans_of"]

Span = tuple[float, float]


def spans_of(events: Iterable[Event]) -> dict[str, Span]:
    """Return ``{case: (begin, end)}`` in seconds since 1970: of each finished trial, the attempt that counts."""
    begun: dict[tuple[str, int], float] = {}
    spans: dict[str, Span] = {}
    for event in events:
        if event["type"] not in ("TRIAL_ATTEMPT", "TRIAL_FINISHED"):
            continue
        data, moment = event["data"], datetime.fromisoformat(event["ts"]).timestamp()
        key = (data["case"], data["attempt"])
        if event["type"] == "TRIAL_ATTEMPT":
            begun[key] = moment
        elif key in begun:
            spans[data["case"]] = (begun.pop(key), moment)
    return spans


def overlapping(spans: Sequence[Span]) -> list[bool]:
    """Return of each span whether another one shares time with it; a common end is none."""
    order = sorted(range(len(spans)), key=lambda place: spans[place])
    found = [False] * len(spans)
    last: int | None = None
    for place in order:
        if last is not None and spans[place][0] < spans[last][1]:
            found[place] = found[last] = True
        if last is None or spans[place][1] > spans[last][1]:
            last = place
    return found
