"""A queue that does to another queue what networks and brokers do."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from evalwright.interfaces import Deadline, Host, Job, Outcome, Queue, QueueRun, Store
from evalwright.registry import Registry

__all__ = ["ChaosConfig", "ChaosQueue"]

TICK_SECONDS = 0.02


class ChaosConfig(BaseModel):
    """Which queue carries the jobs, and what goes wrong; equal seeds make equal trouble."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inner: str = "local"
    seed: int = 0
    duplicates: bool = True
    reorders: bool = True
    loses_first_delivery: bool = True
    max_delay_ticks: int = Field(default=5, ge=0)


class ChaosQueue(Queue[ChaosConfig]):
    """Delivers jobs and outcomes twice, late and out of order, and loses the first delivery of every other job.

    ``inner`` is the queue to trouble; by default a new one of the kind that the configuration names. Thread-safe.
    """

    api = "queue/1.0"
    Config = ChaosConfig

    def __init__(self, config: ChaosConfig | None = None, host: Host | None = None, *, inner: Queue[Any] | None = None) -> None:
        super().__init__(config or ChaosConfig(), host)  # type: ignore[arg-type]  # it passes its host on
        self._inner: Queue[Any] = inner or Registry().create("queue", self.config.inner, {}, host)
        self._owns = inner is None
        self._random = random.Random(self.config.seed)
        self._lost: list[tuple[int, Job]] = []
        self._held: list[tuple[int, Outcome]] = []
        self._tick = 0
        self._lock = threading.Lock()

    def open(self, run: QueueRun) -> None:
        """Open the inner queue."""
        self._inner.open(run)

    def store(self) -> Store | None:
        """Return the inner queue's store."""
        return self._inner.store()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Deliver some jobs now, some twice, and lose others until later."""
        with self._lock:
            now: list[Job] = []
            for job in jobs:
                if self.config.loses_first_delivery and self._random.random() < 0.5:
                    self._lost.append((self._due(), job))
                else:
                    now += [job, job] if self.config.duplicates else [job]
        if now:
            self._inner.submit(now)

    def poll(self, timeout: float) -> Sequence[Outcome]:
        """Return what is due, waiting for the first."""
        deadline = Deadline.after(timeout)
        while True:
            fresh = self._inner.poll(min(TICK_SECONDS, deadline.remaining))
            with self._lock:
                self._tick += 1
                for outcome in fresh:
                    copies = 2 if self.config.duplicates else 1
                    self._held += [(self._due(), outcome) for _ in range(copies)]
                due = self._take_due()
                again = [job for tick, job in self._lost if tick <= self._tick]
                self._lost = [entry for entry in self._lost if entry[0] > self._tick]
            if again:
                self._inner.submit(again)
            if due or deadline.expired:
                return due

    def cancel(self, keys: Collection[str]) -> None:
        """Cancel; jobs whose delivery was lost are delivered first, so that each gives an outcome."""
        with self._lock:
            again = [job for _, job in self._lost]
            self._lost.clear()
        self._inner.submit(again)
        self._inner.cancel(keys)

    def attach(self, run_id: str) -> Collection[str]:
        """Return what the inner queue says."""
        return self._inner.attach(run_id)

    def close(self, deadline: Deadline) -> None:
        """Close the inner queue, unless somebody else gave it."""
        if self._owns:
            self._inner.close(deadline)

    def _due(self) -> int:
        return self._tick + self._random.randint(0, self.config.max_delay_ticks)

    def _take_due(self) -> list[Outcome]:
        due = [outcome for tick, outcome in self._held if tick <= self._tick]
        self._held = [entry for entry in self._held if entry[0] > self._tick]
        if self.config.reorders:
            self._random.shuffle(due)
        return due
