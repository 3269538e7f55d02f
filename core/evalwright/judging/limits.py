"""How many questions may be in flight at once: per judge and per provider, for all trials of a process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

from evalwright.errors import JudgeUnavailable
from evalwright.interfaces import Deadline

__all__ = ["Limits"]


class Limits:
    """Counted places by name. Thread-safe. The first to name a place says how many there are; a smaller number wins later."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._width: dict[str, int] = {}
        self._taken: dict[str, int] = {}

    @contextlib.contextmanager
    def place(self, names: dict[str, int], deadline: Deadline) -> Generator[None]:
        """Hold one place of every name, all taken at once so that nobody waits while holding one.

        Raises ``JudgeUnavailable`` when none is free by the deadline.
        """
        with self._changed:
            for name, width in names.items():
                self._width[name] = min(width, self._width.get(name, width))
            if not self._changed.wait_for(lambda: self._free(names), deadline.remaining):
                raise JudgeUnavailable(
                    "too many questions were in flight until the deadline",
                    hint="raise max_in_flight",
                    kind="judge_timeout",
                    final=True,
                )
            for name in names:
                self._taken[name] = self._taken.get(name, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                for name in names:
                    self._taken[name] -= 1
                self._changed.notify_all()

    def _free(self, names: dict[str, int]) -> bool:
        return all(self._taken.get(name, 0) < self._width[name] for name in names)
