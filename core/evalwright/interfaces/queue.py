"""Queues: where trials are carried out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from evalwright.interfaces.plugin import Plugin
from evalwright.interfaces.store import Store

__all__ = ["Beat", "Job", "Outcome", "Queue", "QueueRun"]

C = TypeVar("C")

Beat = Callable[[], Literal["continue", "cancel"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One trial to carry out.

    ``key`` (run/case/attempt) is never reused. ``lock`` is the digest of the core's and the plugins' distributions: a
    worker with another one answers ``refused``. ``bundle`` is the directory for the sealed bundle where workers share a
    file system with the coordinator; ``None`` when the queue has a store, through which the bundle then travels.
    """

    key: str
    spec: bytes
    stage: Literal["trial", "score"] = "trial"
    lock: str = ""
    needs: frozenset[str] = frozenset()
    bundle: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended. ``result`` is what ``worker.execute`` returned; ``bundle`` the digest of a bundle in the store.

    ``done``: the trial was carried out, whatever its status. ``lost``: its worker died or the job vanished. ``canceled``:
    stopped before its end. For these two ``transient`` says whether another attempt may do better. ``refused``: the worker's
    plugins are not the coordinator's; the trial did not begin.
    """

    key: str
    ended: Literal["done", "lost", "canceled", "refused"]
    worker: str
    result: bytes | None = None
    bundle: str | None = None
    reason: str | None = None
    transient: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """The run that a queue is about to serve.

    ``directory`` is the queue's own on the coordinator's file system: it outlives a crash and is removed when the run is
    finished. ``width`` is the number of jobs that will be in flight at most. ``environment`` names the variables of this
    process that the suite uses; a queue that starts workers passes these on, and no others that matter to trials.
    """

    run_id: str
    directory: Path
    width: int
    environment: Collection[str] = ()


class Queue(Plugin[C]):
    """Carries jobs to workers. The engine owns width and limits: it submits only what may run now.

    The engine calls :meth:`open` once, then :meth:`attach` when the run is resumed, then :meth:`submit`, :meth:`poll` and
    :meth:`cancel` from one thread, at last ``close``. Every accepted job gives an outcome; more than one does no harm.
    """

    def open(self, run: QueueRun) -> None:
        """Prepare to serve a run: start workers here."""
        return

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
        """Return the keys of jobs that a coordinator which died left; each still gives an outcome here.

        Jobs that the queue cannot hand over it ends itself before it returns.
        """
        return ()
