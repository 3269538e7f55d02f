"""The default queue: trials run in threads of this process."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from evalwright.interfaces import Deadline, Host, Job, Outcome, Queue, QueueRun
from evalwright.worker import attempt

__all__ = ["LocalQueue"]

CROWD = 32
CROWD_SECONDS = 0.05


class LocalQueue(Queue[None]):
    """One thread per trial in flight; the engine decides how many that are. Its plugins are the coordinator's own: no lock."""

    api = "queue/1.0"

    def __init__(self, config: None, host: Host) -> None:
        super().__init__(config, host)
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._canceled: set[str] = set()
        self._known: set[str] = set()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._interval: float | None = None

    def open(self, run: QueueRun) -> None:
        """Let threads keep the interpreter longer while hundreds of them want it; :meth:`close` undoes that."""
        if run.width > CROWD:
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(CROWD_SECONDS)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start each job in a thread of its own."""
        for job in jobs:
            with self._lock:
                if job.key in self._known:
                    continue
                self._known.add(job.key)
            thread = threading.Thread(target=self._carry_out, args=(job,), name=f"trial-{job.key}", daemon=True)
            self._threads.add(thread)
            thread.start()

    def poll(self, timeout: float) -> Sequence[Outcome]:
        """Return what has ended, waiting for the first."""
        found: list[Outcome] = []
        try:
            found.append(self._outcomes.get(timeout=timeout))
            while True:
                found.append(self._outcomes.get_nowait())
        except queue.Empty:
            return found

    def cancel(self, keys: Collection[str]) -> None:
        """Tell the trials to stop; their commands are killed within a fraction of a second."""
        with self._lock:
            self._canceled.update(keys)

    def close(self, deadline: Deadline) -> None:
        """Cancel everything that still runs and wait for its end."""
        with self._lock:
            self._canceled.update(self._known)
        for thread in list(self._threads):
            thread.join(deadline.remaining)
        if self._interval is not None:
            sys.setswitchinterval(self._interval)
            self._interval = None

    def _carry_out(self, job: Job) -> None:
        try:
            worker = threading.current_thread().name
            self._outcomes.put(attempt(replace(job, lock=""), worker=worker, beat=lambda: self._beat(job.key)))
        finally:
            self._threads.discard(threading.current_thread())

    def _beat(self, key: str) -> Literal["continue", "cancel"]:
        with self._lock:
            return "cancel" if key in self._canceled else "continue"
