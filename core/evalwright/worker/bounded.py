"""Calls into a plugin that must return in time: one that hangs is left behind, and the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from evalwright.errors import TrialError
from evalwright.interfaces import Deadline

__all__ = ["unless", "within"]

T = TypeVar("T")
SLACK_SECONDS = 1.0
LOOK_SECONDS = 0.2


def within(seconds: float, action: Callable[[Deadline], object]) -> None:
    """Call ``action`` with a deadline and return when it does; what it raises is raised here.

    Raises ``TimeoutError`` when it has not returned a second after its deadline; its thread is then abandoned.
    """
    errors: list[BaseException] = []

    def call() -> None:
        try:
            action(Deadline.after(seconds))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="evalwright-cleanup", daemon=True)
    thread.start()
    thread.join(seconds + SLACK_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {seconds:g} s")
    if errors:
        raise errors[0]


def unless(canceled: Callable[[], bool], action: Callable[[], T]) -> T:
    """Return what ``action`` returns; what it raises is raised here. It asks several times a second whether it was canceled.

    Raises ``TrialError`` once it is: the action's thread is then left to its own deadline.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="evalwright-judge", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_SECONDS)
        if thread.is_alive() and canceled():
            raise TrialError("canceled", "the trial was canceled")
    if errors:
        raise errors[0]
    return results[0]
