"""A queue whose workers have nothing of the coordinator's but the store: the proof that a trial needs no more."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Literal

from evalwright.interfaces import BoundedOutput, Command, Deadline, Host, Job, Outcome, Store, ThreadedQueue
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


class DetachedQueue(ThreadedQueue[None]):
    """Starts one process a job, with an empty HOME, in an empty directory, without this process's environment.

    ``workers`` maps the key of each job in flight to its process, for tests that kill one.
    """

    api = "queue/1.0"
    capabilities = frozenset({"cross-process"})

    def __init__(self, config: None = None, host: Host | None = None) -> None:
        super().__init__(config, host)  # type: ignore[arg-type]  # it needs no host
        self._place = Path(tempfile.mkdtemp(prefix="evalwright-detached-"))
        self._supervisor = Supervisor()
        self._specs: dict[str, Path] = {}
        self.workers: dict[str, Process] = {}

    def store(self) -> Store | None:
        """Return the only thing that coordinator and workers share."""
        return PlainStore(DirectoryStore(self._place / "store"))

    def accept(self, job: Job) -> None:
        """Choose the directory of the job's worker."""
        self._specs[job.key] = self._place / f"job-{len(self._specs)}" / "spec.json"

    def cancel(self, keys: Collection[str]) -> None:
        """Withdraw the specs; each worker notices within a fraction of a second."""
        with self._lock:
            specs = [self._specs[key] for key in keys if key in self._specs]
        for spec in specs:
            spec.unlink(missing_ok=True)

    def close(self, deadline: Deadline) -> None:
        """End every worker and remove the store."""
        self.join(deadline)
        self._supervisor.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def carry_out(self, job: Job) -> Outcome:
        """Start the job's worker process and wait for its end."""
        place = self._specs[job.key].parent
        spec, out, home = place / "spec.json", place / "outcome.json", place / "home"
        home.mkdir(parents=True)
        spec.write_bytes(job.spec)
        command = worker_command(job, spec, out, store=self._place / "store")
        environment = {"PATH": os.defpath, "HOME": str(home)}
        process = self._supervisor.start(Command(argv=command, cwd=str(home), env=environment, capture=BoundedOutput))
        self.workers[job.key] = process
        try:
            completed = process.wait()
        finally:
            del self.workers[job.key]
        said = completed.stderr.text.strip() or completed.stdout.text.strip()
        reason = f"the worker process ended with exit code {completed.exit_code}: {said[-500:]}"
        ended: Literal["lost", "canceled"] = "lost" if spec.exists() else "canceled"
        return read_outcome(out) or Outcome(key=job.key, ended=ended, worker=place.name, reason=reason)
