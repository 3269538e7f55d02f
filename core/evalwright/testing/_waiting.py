"""Bounded waiting: calls that may hang, conditions that come true soon, eight threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from evalwright.interfaces import Deadline

__all__ = ["THREADS", "in_threads", "soon", "within"]

T = TypeVar("T")

THREADS = 8
TICK_SECONDS = 0.01


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """Return what ``call`` returns or raise what it raises; ``AssertionError`` when it takes longer than ``seconds``.

    A call that hangs stays behind in a daemon thread.
    """
    results, errors = list[T](), list[BaseException]()

    def carry_out() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=carry_out, name="evalwright-within", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    assert results, f"{what} did not return within {seconds:g} s"
    return results[0]


def soon(condition: Callable[[], Any], seconds: float = 2.0) -> bool:
    """Tell whether ``condition`` becomes true within ``seconds``."""
    deadline, pause = Deadline.after(seconds), threading.Event()
    while not condition():
        if deadline.expired:
            return False
        pause.wait(TICK_SECONDS)
    return True


def in_threads(call: Callable[[int], T], *, threads: int = THREADS, seconds: float = 30.0) -> list[T]:
    """Call ``call(0)``, ``call(1)``, ... at the same moment, each in a thread, and return the results in order."""
    together = threading.Barrier(threads)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def carry_out(number: int) -> None:
        try:
            together.wait(seconds)
            results[number] = call(number)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=carry_out, args=(number,), daemon=True) for number in range(threads)]
    for thread in started:
        thread.start()
    deadline = Deadline.after(seconds)
    for thread in started:
        thread.join(deadline.remaining)
    if errors:
        raise AssertionError(f"with {threads} threads at once: {errors[0]!r}") from errors[0]
    assert len(results) == threads, f"with {threads} threads at once, {threads - len(results)} did not return"
    return [results[number] for number in range(threads)]
