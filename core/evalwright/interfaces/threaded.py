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
    """Implements ``submit`` and ``poll``. A subclass gives ``carry_out`` and ``cancel``; its ``close`` cancels, then joins.

    A thread whose job has ended takes another: starting one costs as much as a tenth of a trial that does nothing.
    """

    def __init__(self, config: C, host: Host) -> None:
        super().__init__(config, host)
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._known: set[str] = set()
        self._running: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._free = 0
        self._lock = threading.Lock()

    @abstractmethod
    def carry_out(self, job: Job) -> Outcome:
        """Carry a job out and return how it ended; what it raises makes the job lost."""

    def accept(self, job: Job) -> None:
        """Take note of a new job before its thread starts; ``cancel`` may come at any time after this."""
        return

    def submit(self, jobs: Sequence[Job]) -> None:
        """Give each new job to a thread."""
        for job in jobs:
            with self._lock:
                if job.key in self._known:
                    continue
                self._known.add(job.key)
                self.accept(job)
                if not self._free:
                    self._start_thread()
                self._free -= 1
                self._running.add(job.key)
                self._jobs.put(job)

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
        with self._lock:
            running = list(self._running)
        self.cancel(running)
        with self._lock:
            threads, self._threads, self._free = self._threads, [], 0
            jobs, self._jobs = self._jobs, queue.SimpleQueue()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join(deadline.remaining)
        with self._lock:
            self._known.clear()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, args=(self._jobs,), daemon=True)
        thread.start()
        self._threads.append(thread)
        self._free += 1

    def _work(self, jobs: queue.SimpleQueue[Job | None]) -> None:
        """Carry out what comes until there is nothing more to come."""
        while (job := jobs.get()) is not None:
            threading.current_thread().name = f"trial-{job.key}"
            outcome = self._carried_out(job)
            with self._lock:
                self._running.discard(job.key)
                self._free += jobs is self._jobs
            self._outcomes.put(outcome)

    def _carried_out(self, job: Job) -> Outcome:
        try:
            return self.carry_out(job)
        except Exception as error:
            return Outcome(key=job.key, ended="lost", worker=threading.current_thread().name, reason=str(error))
