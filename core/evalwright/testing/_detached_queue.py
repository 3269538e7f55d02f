"""A queue whose workers have nothing of the coordinator's but the store: the proof that a trial needs no more."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from evalwright.interfaces import BoundedOutput, Command, Deadline, Host, Job, Outcome, Queue, Store
from evalwright.processes import Process, Supervisor
from evalwright.store import DirectoryStore
from evalwright.worker import read_outcome, worker_command

__all__ = ["DetachedQueue", "PlainStore"]


class PlainStore(Store):
    """Another store behind the interface's three methods and nothing else, as one on another machine would be."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def missing(self, digests: Collection[str]) -> set[str]:
        """Return what the inner store lacks."""
        return self._inner.missing(digests)

    def put(self, digest: str, source: BinaryIO) -> None:
        """Take a blob in."""
        self._inner.put(digest, source)

    def open(self, digest: str) -> BinaryIO:
        """Open a blob."""
        return self._inner.open(digest)


class DetachedQueue(Queue[None]):
    """Starts one process a job, with an empty HOME, in an empty directory, without this process's environment.

    ``workers`` maps the key of each job in flight to its process, for tests that kill one.
    """

    api = "queue/1.0"
    capabilities = frozenset({"cross-process"})

    def __init__(self, config: None = None, host: Host | None = None) -> None:
        super().__init__(config, host)  # type: ignore[arg-type]  # it needs no host
        self._place = Path(tempfile.mkdtemp(prefix="evalwright-detached-"))
        self._supervisor = Supervisor()
        self._threads: set[threading.Thread] = set()
        self._specs: dict[str, Path] = {}
        self._outcomes: deque[Outcome] = deque()
        self._news = threading.Condition()
        self.workers: dict[str, Process] = {}

    def store(self) -> Store | None:
        """Return the only thing that coordinator and workers share."""
        return PlainStore(DirectoryStore(self._place / "store"))

    def submit(self, jobs: Sequence[Job]) -> None:
        """Start a worker process for each new job."""
        for job in jobs:
            with self._news:
                if job.key in self._specs:
                    continue
                place = self._place / f"job-{len(self._specs)}"
                self._specs[job.key] = place / "spec.json"
            thread = threading.Thread(target=self._carry_out, args=(job, place), daemon=True)
            self._threads.add(thread)
            thread.start()

    def poll(self, timeout: float) -> Sequence[Outcome]:
        """Return what has ended, waiting for the first."""
        with self._news:
            self._news.wait_for(lambda: self._outcomes, timeout)
            found = list(self._outcomes)
            self._outcomes.clear()
        return found

    def cancel(self, keys: Collection[str]) -> None:
        """Withdraw the specs; each worker notices within a fraction of a second."""
        with self._news:
            specs = [self._specs[key] for key in keys if key in self._specs]
        for spec in specs:
            spec.unlink(missing_ok=True)

    def close(self, deadline: Deadline) -> None:
        """End every worker and remove the store."""
        self.cancel(list(self._specs))
        for thread in list(self._threads):
            thread.join(deadline.remaining)
        self._supervisor.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def _carry_out(self, job: Job, place: Path) -> None:
        try:
            outcome = self._outcome(job, place)
        except Exception as error:
            outcome = Outcome(key=job.key, ended="lost", worker=place.name, reason=str(error))
        with self._news:
            self.workers.pop(job.key, None)
            self._outcomes.append(outcome)
            self._news.notify_all()
        self._threads.discard(threading.current_thread())

    def _outcome(self, job: Job, place: Path) -> Outcome:
        spec, out, home = place / "spec.json", place / "outcome.json", place / "home"
        home.mkdir(parents=True)
        spec.write_bytes(job.spec)
        command = worker_command(job, spec, out, store=self._place / "store")
        environment = {"PATH": os.defpath, "HOME": str(home)}
        process = self._supervisor.start(Command(argv=command, cwd=str(home), env=environment, capture=BoundedOutput))
        self.workers[job.key] = process
        completed = process.wait()
        said = completed.stderr.text.strip() or completed.stdout.text.strip()
        reason = f"the worker process ended with exit code {completed.exit_code}: {said[-500:]}"
        ended: Literal["lost", "canceled"] = "lost" if spec.exists() else "canceled"
        return read_outcome(out) or Outcome(key=job.key, ended=ended, worker=place.name, reason=reason)
