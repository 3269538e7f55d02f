"""Calls into a plugin that must return in time: one that hangs is left behind, and the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from evalwright.interfaces import Deadline

__all__ = ["within"]

SLACK_SECONDS = 1.0


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
