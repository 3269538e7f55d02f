"""The default queue: trials run in threads of this process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from evalwright.interfaces import Deadline, Host, Job, Outcome, QueueRun, ThreadedQueue
from evalwright.worker import attempt

__all__ = ["LocalQueue"]

CROWD = 32
CROWD_SECONDS = 0.05


class LocalQueue(ThreadedQueue[None]):
    """One thread per trial in flight; the engine decides how many that are. Its plugins are the coordinator's own: no lock."""

    api = "queue/1.0"

    def __init__(self, config: None, host: Host) -> None:
        super().__init__(config, host)
        self._canceled: set[str] = set()
        self._interval: float | None = None

    def open(self, run: QueueRun) -> None:
        """Let threads keep the interpreter longer while hundreds of them want it; :meth:`close` undoes that."""
        if run.width > CROWD:
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(CROWD_SECONDS)

    def carry_out(self, job: Job) -> Outcome:
        """Carry a trial out in this thread."""
        worker = threading.current_thread().name
        return attempt(replace(job, lock=""), worker=worker, beat=lambda: self._beat(job.key))

    def cancel(self, keys: Collection[str]) -> None:
        """Tell the trials to stop; their commands are killed within a fraction of a second."""
        with self._lock:
            self._canceled.update(keys)

    def close(self, deadline: Deadline) -> None:
        """Cancel everything that still runs and wait for its end."""
        self.join(deadline)
        if self._interval is not None:
            sys.setswitchinterval(self._interval)
            self._interval = None

    def _beat(self, key: str) -> Literal["continue", "cancel"]:
        with self._lock:
            return "cancel" if key in self._canceled else "continue"
