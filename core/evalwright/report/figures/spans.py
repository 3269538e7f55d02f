"""Where the time of a run's trials went: its measured spans, added up by name, and those of the median trial."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import RunCorrupt, RunNotFound
from evalwright.spans import TRIAL, Span

__all__ = ["Row", "RunSpans", "depth_of"]


@dataclass(slots=True)
class Row:
    """All spans of one name: how many, and their sums in nanoseconds.

    ``self_ns`` is the part that lies in none of the spans within; ``cpu_ns`` the processor time of the measuring threads,
    those within included.
    """

    name: str
    count: int = 0
    total_ns: int = 0
    self_ns: int = 0
    cpu_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpans:
    """The spans of a run. ``rows`` begins with :data:`TRIAL`, and names what lies within a span below it."""

    attempts: int
    rows: Sequence[Row]
    case: str
    median: Sequence[Span]

    @staticmethod
    def read(path: Path) -> RunSpans:
        """Return what a profile tells; lines that a crash cut are left out.

        Raises ``RunNotFound`` when there is none, ``RunCorrupt`` for one without any whole attempt.
        """
        rows: dict[str, Row] = {}
        lengths: list[tuple[int, str, int]] = []
        for case, attempt, span in _spans(path):
            row = rows.setdefault(span.name, Row(span.name))
            row.count += 1
            row.total_ns += span.duration_ns
            row.cpu_ns += span.cpu_ns
            if span.name == TRIAL:
                lengths.append((span.duration_ns, case, attempt))
        if not lengths:
            raise RunCorrupt(f"{path} tells of no attempt", hint="profile another run: evalwright run SUITE --profile")
        around = {name: _around(name, rows) for name in rows}
        for row in rows.values():
            within = sum(other.total_ns for other in rows.values() if around[other.name] == row.name)
            row.self_ns = max(0, row.total_ns - within)
        _, case, attempt = sorted(lengths)[len(lengths) // 2]
        median = [span for *owner, span in _spans(path) if owner == [case, attempt]]
        median.sort(key=lambda span: (span.start_ns, -span.duration_ns, depth_of(span.name)))
        return RunSpans(attempts=len(lengths), rows=list(_nested(rows, around, "")), case=case, median=median)


def depth_of(name: str) -> int:
    """Return how many spans lie around one of that name."""
    return 0 if name == TRIAL else name.count("/") + 1


def _around(name: str, known: Container[str]) -> str:
    """Return the name of the span that lies around, nothing for the outermost."""
    if name == TRIAL:
        return ""
    parent = name.rpartition("/")[0]
    return parent if parent in known else _around(parent, known) if parent else TRIAL


def _nested(rows: Mapping[str, Row], around: Mapping[str, str], outer: str) -> Iterator[Row]:
    """Yield the rows within a span, the longest first, each followed by those within it."""
    within = [row for row in rows.values() if around[row.name] == outer]
    for row in sorted(within, key=lambda row: (-row.total_ns, row.name)):
        yield row
        yield from _nested(rows, around, row.name)


def _spans(path: Path) -> Iterator[tuple[str, int, Span]]:
    try:
        with path.open("rb") as file:
            for line in file:
                if (record := _record(line)) is not None:
                    yield record
    except OSError as error:
        raise RunNotFound(f"{path}: {error.strerror or error}", hint="measure a run: evalwright run SUITE --profile") from error


def _record(line: bytes) -> tuple[str, int, Span] | None:
    try:
        record: Any = json.loads(line)
        if not is_object(record):
            return None
        span = Span(**{name: record[name] for name in Span._fields})
        return str(record["case"]), int(record["attempt"]), span
    except (ValueError, KeyError, TypeError):
        return None
