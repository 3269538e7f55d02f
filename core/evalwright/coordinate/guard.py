"""A queue of anybody's, called so that its defects are told as its own and the run can be resumed with another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evalwright.errors import EvalwrightError, PluginFailed
from evalwright.interfaces import Deadline, Job, Outcome, Queue, QueueRun, Store
from evalwright.rundir import disk_errors

__all__ = ["GuardedQueue"]

T = TypeVar("T")


class GuardedQueue:
    """Passes calls on to a queue that works below ``directory`` for what a user resumes as ``subject``.

    Raises ``PluginFailed`` naming the queue and the call for whatever is no error of ours.
    """

    def __init__(self, inner: Queue[Any], name: str, directory: Path, subject: str) -> None:
        self._inner = inner
        self._name = name
        self._directory = directory
        self._subject = subject

    def start(self, deadline: Deadline) -> None:
        """Prepare once per process."""
        self._call("start", lambda: self._inner.start(deadline))

    def open(self, run: QueueRun) -> None:
        """Prepare to serve a run."""
        self._call("open", lambda: self._inner.open(run))

    def store(self) -> Store | None:
        """Return the store that the workers can reach."""
        return self._call("store", self._inner.store)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand jobs over."""
        self._call("submit", lambda: self._inner.submit(jobs))

    def poll(self, timeout: float) -> Sequence[Outcome]:
        """Return what has ended."""
        outcomes = self._call("poll", lambda: list(self._inner.poll(timeout)))
        for outcome in outcomes:
            if not isinstance(outcome, Outcome):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise self._defect("poll", TypeError(f"it returned {outcome!r}, which is no Outcome"))
        return outcomes

    def cancel(self, keys: Collection[str]) -> None:
        """Stop jobs."""
        self._call("cancel", lambda: self._inner.cancel(keys))

    def attach(self, run_id: str) -> set[str]:
        """Return what a dead coordinator left."""
        return self._call("attach", lambda: set(self._inner.attach(run_id)))

    def close(self, deadline: Deadline) -> None:
        """Close the queue; a failure of that harms nobody."""
        with contextlib.suppress(Exception):
            self._inner.close(deadline)

    def _call(self, method: str, action: Callable[[], T]) -> T:
        try:
            with disk_errors(self._directory):
                return action()
        except EvalwrightError:
            raise
        except Exception as error:
            raise self._defect(method, error) from error

    def _defect(self, method: str, error: Exception) -> PluginFailed:
        return PluginFailed(
            f"queue {self._name}: {method} failed: {type(error).__name__}: {error}",
            hint=f"mend the queue, or go on with another: evalwright run --resume {self._subject} --queue local",
            plugin=self._name,
        )
