"""A queue that carries each job out in a thread of its own: everything but what a job is carried out with."""

from __future__ import annotations

import queue
import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from evalwright.interfaces.plugin import Deadline, Host
from evalwright.interfaces.queue import Job, Outcome, Queue

__all__ = ["ThreadedQueue"]

C = TypeVar("C")


class ThreadedQueue(Queue[C]):
    """Implements ``submit`` and ``poll``. A subclass gives ``carry_out`` and ``cancel``; its ``close`` cancels, then joins."""

    def __init__(self, config: C, host: Host) -> None:
        super().__init__(config, host)
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._known: set[str] = set()
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def carry_out(self, job: Job) -> Outcome:
        """Carry a job out and return how it ended; what it raises makes the job lost."""

    def accept(self, job: Job) -> None:
        """Take note of a new job before its thread starts; ``cancel`` may come at any time after this."""
        return

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start a thread for each new job."""
        for job in jobs:
            with self._lock:
                if job.key in self._known:
                    continue
                self._known.add(job.key)
                self.accept(job)
            thread = threading.Thread(target=self._run, args=(job,), name=f"trial-{job.key}", daemon=True)
            self._threads[job.key] = thread
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

    def join(self, deadline: Deadline) -> None:
        """Cancel everything that still runs and wait for its end."""
        left = dict(self._threads)
        self.cancel(left)
        for thread in left.values():
            thread.join(deadline.remaining)
        with self._lock:
            self._known.clear()

    def _run(self, job: Job) -> None:
        try:
            outcome = self.carry_out(job)
        except Exception as error:
            outcome = Outcome(key=job.key, ended="lost", worker=threading.current_thread().name, reason=str(error))
        self._outcomes.put(outcome)
        self._threads.pop(job.key, None)
