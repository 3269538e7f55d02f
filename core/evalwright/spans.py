"""Measured spans of a trial: what was done when, for how long, and how much of the processor it took."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

__all__ = ["NO_SPANS", "TRIAL", "Moment", "Span", "Spans", "now"]

Moment = tuple[int, int]
TRIAL = "trial"
"""The span of a whole attempt, from before it was written down until its result was durable. All others lie in it."""
_NOTHING = contextlib.nullcontext()


def now() -> Moment:
    """Return the monotonic clock and the processor time of this thread, both in nanoseconds."""
    return time.monotonic_ns(), time.thread_time_ns()


class Span(NamedTuple):
    """One measured span. ``name`` is the path of spans that it lies in, ``worker/agent/command``.

    ``start_ns`` is a monotonic time, which only spans of one machine since its last start have in common. ``cpu_ns`` is the
    processor time of the measuring ``thread``: that of the agent's processes is not in it.
    """

    name: str
    start_ns: int
    duration_ns: int
    cpu_ns: int
    thread: str

    @staticmethod
    def since(name: str, moment: Moment) -> Span:
        """Return the span from a moment of this thread until now."""
        clock, processor = now()
        return Span(name, moment[0], clock - moment[0], processor - moment[1], threading.current_thread().name)


class Spans:
    """The spans of one trial on its worker. Thread-safe: each thread has its own path."""

    def __init__(self) -> None:
        self._found: list[Span] = []
        self._path = threading.local()

    def span(self, name: str) -> AbstractContextManager[None]:
        """Measure what happens in the block."""
        return _Open(self, name)

    def stage(self, name: str, durations: dict[str, float]) -> AbstractContextManager[None]:
        """Measure it, and put how long it took into ``durations``, in milliseconds."""
        return _Stage(name, durations, self.span(name))

    def until(self, name: str, then: Callable[[Sequence[int]], None] | None) -> Callable[[Sequence[int]], None] | None:
        """Return a callback that ends a span which begins now, and calls ``then``."""
        path, begun = self.path(name), now()

        def ended(pids: Sequence[int]) -> None:
            self.add(Span.since(path, begun))
            if then:
                then(pids)

        return ended

    def told(self) -> dict[str, Any]:
        """Return what a worker's result says of the spans so far."""
        return {"spans": [list(span) for span in self._found]}

    def path(self, name: str) -> str:
        """Return the whole name of a span that begins in this thread now."""
        around: str = getattr(self._path, "name", "")
        return f"{around}/{name}" if around else name

    def enter(self, path: str) -> None:
        """Let spans of this thread lie in this one from now on."""
        self._path.name = path

    def add(self, span: Span) -> None:
        """Keep a span that has ended."""
        self._found.append(span)


class _Open:
    """A span that has begun."""

    __slots__ = ("_begun", "_name", "_path", "_spans")

    def __init__(self, spans: Spans, name: str) -> None:
        self._spans, self._name = spans, name

    def __enter__(self) -> None:
        self._path = self._spans.path(self._name)
        self._spans.enter(self._path)
        self._begun = now()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._spans.add(Span.since(self._path, self._begun))
        self._spans.enter(self._path.rpartition("/")[0])


class _Stage:
    """A stage that has begun, and the span around it, if there is one."""

    __slots__ = ("_begun", "_durations", "_name", "_span")

    def __init__(self, name: str, durations: dict[str, float], span: AbstractContextManager[None] | None) -> None:
        self._name, self._durations, self._span = name, durations, span

    def __enter__(self) -> None:
        if self._span:
            self._span.__enter__()
        self._begun = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._durations[self._name] = round((time.monotonic() - self._begun) * 1000, 3)
        if self._span:
            self._span.__exit__(kind, error, at)


class _NoSpans(Spans):
    """Measures nothing, at hardly any cost."""

    def span(self, name: str) -> AbstractContextManager[None]:
        return _NOTHING

    def stage(self, name: str, durations: dict[str, float]) -> AbstractContextManager[None]:
        return _Stage(name, durations, None)

    def until(self, name: str, then: Callable[[Sequence[int]], None] | None) -> Callable[[Sequence[int]], None] | None:
        return then

    def told(self) -> dict[str, Any]:
        return {}


NO_SPANS: Spans = _NoSpans()
"""What stands in the place of spans where nobody asked for them."""
