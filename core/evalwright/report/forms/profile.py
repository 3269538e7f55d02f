"""The profile of a run: a table of its spans, and a picture of its median trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.report.figures.spans import Row, RunSpans, depth_of
from evalwright.report.forms.svg import Box, document, label, line, rectangle
from evalwright.report.wording import printable
from evalwright.spans import TRIAL, Span

__all__ = ["profile_picture", "profile_text"]

MS = 1e6
"""Nanoseconds in a millisecond."""
NAME = 30
PLOT, LEFT, RIGHT, LINE, BAR, MARGIN = 640.0, 190.0, 90.0, 22.0, 12.0, 14.0
INDENT = 12.0
TICKS = 5
MAX_LINES = 60


def profile_text(spans: RunSpans) -> str:
    """Return the table: per span how often, and per trial how long, how much of that in itself, and on the processor."""
    whole = spans.rows[0].total_ns
    lines = [
        f"Where the time of a trial goes: the mean of {spans.attempts} attempts, in milliseconds",
        "",
        f"{'span':<{NAME}}{'count':>8}{'time':>11}{'share':>8}{'self':>11}{'cpu':>11}",
        *(_row(row, spans.attempts, whole) for row in spans.rows),
        "",
        "time holds the spans within, self does not; cpu is of Evalwright's own threads, not of the agent's processes.",
        f"The picture shows the median attempt, that of {printable(spans.case)}.",
    ]
    return "\n".join(lines) + "\n"


def profile_picture(spans: RunSpans) -> str:
    """Return the median trial as an SVG: one line a span, solid where the time is its own, pale where others lie in it."""
    shown = _longest(spans.median)
    start = min(span.start_ns for span in spans.median)
    length = max(1, max(span.start_ns + span.duration_ns for span in spans.median) - start)
    scale = PLOT / length
    bottom = MARGIN + LINE * len(shown)
    body = list(_axis(length, bottom))
    for number, span in enumerate(shown):
        y = MARGIN + LINE * number
        kind = "strong" if span.name == TRIAL else ""
        name = span.name.rpartition("/")[2]
        body.append(label(MARGIN + INDENT * depth_of(span.name), y + 14, name, kind=kind))
        x, width = LEFT + (span.start_ns - start) * scale, max(0.5, span.duration_ns * scale)
        title = f"{span.name}: {_ms(span.duration_ns)} ms, {_ms(span.cpu_ns)} ms on the processor"
        body.append(rectangle(Box(x, y + 4, width, BAR), "span", title=title))
        for begin, end in _own(span, spans.median):
            body.append(rectangle(Box(LEFT + (begin - start) * scale, y + 4, max(0.5, (end - begin) * scale), BAR), "value"))
        body.append(label(LEFT + PLOT + RIGHT - MARGIN, y + 14, f"{_ms(span.duration_ns)} ms", anchor="end"))
    return document(
        LEFT + PLOT + RIGHT,
        bottom + 30,
        title=f"Where the time of the median trial goes: {_ms(length)} ms",
        description=". ".join(f"{span.name} {_ms(span.duration_ns)} ms" for span in shown),
        body=body,
    )


def _row(row: Row, attempts: int, whole_ns: int) -> str:
    name = "  " * depth_of(row.name) + printable(row.name.rpartition("/")[2])
    share = f"{row.total_ns / max(1, whole_ns):.1%}".replace("%", " %")
    times = "".join(f"{value / attempts / MS:>11.3f}" for value in (row.self_ns, row.cpu_ns))
    return f"{name:<{NAME}}{row.count:>8}{row.total_ns / attempts / MS:>11.3f}{share:>8}{times}"


def _longest(spans: Sequence[Span]) -> list[Span]:
    """Return the spans that a picture has room for, in order."""
    kept = sorted(range(len(spans)), key=lambda place: -spans[place].duration_ns)[:MAX_LINES]
    return [spans[place] for place in sorted(kept)]


def _own(span: Span, spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the times of a span in which none of those within it goes on."""
    at, end = span.start_ns, span.start_ns + span.duration_ns
    for other in spans:
        within = other is not span and (span.name == TRIAL or other.name.startswith(f"{span.name}/"))
        if not within or not at <= other.start_ns + other.duration_ns <= end:
            continue
        if other.start_ns > at:
            yield at, other.start_ns
        at = max(at, other.start_ns + other.duration_ns)
    if at < end:
        yield at, end


def _axis(length_ns: int, bottom: float) -> Iterator[str]:
    step = _step(length_ns / MS / TICKS)
    for number in range(math.floor(length_ns / MS / step) + 1):
        x = LEFT + number * step * MS / length_ns * PLOT
        yield line(x, MARGIN, x, bottom)
        yield label(x, bottom + 16, f"{number * step:g} ms", anchor="middle")


def _step(about: float) -> float:
    """Return a round number of that size."""
    size = 10.0 ** math.floor(math.log10(about)) if about > 0 else 1.0
    return next(step * size for step in (1, 2, 5, 10) if step * size >= about)


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / MS:,.3f}"
