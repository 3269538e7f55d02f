"""Queues: where trials are carried out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from evalwright.interfaces.plugin import Plugin
from evalwright.interfaces.store import Store

__all__ = ["Beat", "Job", "Outcome", "Queue"]

C = TypeVar("C")

Beat = Callable[[], Literal["continue", "cancel"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One trial to carry out.

    ``key`` (run/case/attempt) is never reused. ``lock`` is the digest of the core's and the plugins' distributions: a
    worker with another one answers ``refused``. ``bundle`` is the directory for the sealed bundle where workers share a
    file system with the coordinator; otherwise the bundle travels through the store.
    """

    key: str
    spec: bytes
    stage: Literal["trial", "score"] = "trial"
    lock: str = ""
    needs: frozenset[str] = frozenset()
    bundle: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended. ``result`` is what ``worker.execute`` returned; ``bundle`` the digest of a bundle in the store."""

    key: str
    ended: Literal["done", "lost", "canceled", "refused"]
    worker: str
    result: bytes | None = None
    bundle: str | None = None
    reason: str | None = None


class Queue(Plugin[C]):
    """Carries jobs to workers. The engine owns width and limits: it submits only what may run now."""

    def store(self) -> Store | None:
        """Return the content store that the workers can reach, or ``None`` when they share the file system."""
        return None

    @abstractmethod
    def submit(self, jobs: Sequence[Job]) -> None:
        """Accept jobs; the same key twice is one job."""

    @abstractmethod
    def poll(self, timeout: float) -> Sequence[Outcome]:
        """Return what has ended since the last call, waiting up to ``timeout`` seconds for the first."""

    @abstractmethod
    def cancel(self, keys: Collection[str]) -> None:
        """Stop jobs; each still gives an outcome."""

    def attach(self, run_id: str) -> Collection[str]:
        """Return the keys of jobs that a coordinator which died left running."""
        return ()
