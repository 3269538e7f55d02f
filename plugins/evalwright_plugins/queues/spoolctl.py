"""The queue ``spoolctl``: each trial is a durable job whose command is ``evalwright worker``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from evalwright.errors import DiskFull
from evalwright.interfaces import Command, Deadline, Host, Job, Outcome, Problem, QueueRun, ThreadedQueue
from evalwright.processes import Supervisor
from evalwright.worker import read_outcome, worker_command
from evalwright_plugins.spool import Spool, spoolctl_problems

__all__ = ["SpoolctlQueue"]

WORKER_VARIABLES = ("EVALWRIGHT_DEBUG", "EVALWRIGHT_SUPERVISION", "HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR")
GRACE_SECONDS = 10.0
PROBE_BYTES = 1 << 20
FULL_WORDS = ("disk is full", "No space left on device", "Disk quota exceeded")


class SpoolctlQueue(ThreadedQueue[None]):
    """One worker a job, as many as the engine submits; each ends with its job, or with this process.

    Per job the run's queue directory holds the spec and, once it has ended, the outcome. A coordinator that takes over a
    dead one's run collects outcomes that were not taken yet; jobs without one are withdrawn.
    """

    api = "queue/1.0"
    capabilities = frozenset({"cross-process"})

    def __init__(self, config: None, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()
        self._specs: dict[str, Path] = {}
        self._environment: dict[str, str] = {}
        self._spool: Spool

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say whether a spoolctl that can be used is installed."""
        return spoolctl_problems()

    def open(self, run: QueueRun) -> None:
        """Make the database, and choose what the workers get of this process's environment."""
        self._spool = Spool(run.directory, self._supervisor)
        names = {*WORKER_VARIABLES, *run.environment}
        self._environment = {name: os.environ[name] for name in sorted(names) if name in os.environ}
        if "PYTHONPATH" in self._environment:
            parts = self._environment["PYTHONPATH"].split(os.pathsep)
            self._environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in parts)

    def accept(self, job: Job) -> None:
        """Write the job's spec into a directory of its own."""
        jobs = self._spool.directory / "jobs"
        jobs.mkdir(exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=jobs, prefix=job.key.rsplit("/", 2)[1][:50] + "."))
        self._specs[job.key] = place / "spec.json"
        self._specs[job.key].write_bytes(job.spec)

    def carry_out(self, job: Job) -> Outcome:
        """Put the job into the database and run its worker to its end."""
        place = self._specs[job.key].parent
        try:
            return self._outcome(job, place)
        except Exception as error:
            return Outcome(key=job.key, ended="lost", worker="spoolctl", reason=_full(place, str(error)) or str(error))

    def cancel(self, keys: Collection[str]) -> None:
        """Withdraw the specs: a worker whose spec is gone ends its trial, and only then gives its outcome."""
        with self._lock:
            specs = [self._specs[key] for key in keys if key in self._specs]
        for spec in specs:
            spec.unlink(missing_ok=True)

    def attach(self, run_id: str) -> Collection[str]:
        """Collect the outcomes that a dead coordinator did not take; withdraw what has none, since its worker died too."""
        for job in self._spool.unfinished():
            self._spool.withdraw(job)
        found: set[str] = set()
        for path in sorted(self._spool.directory.glob("jobs/*/outcome.json")):
            outcome = read_outcome(path)
            if outcome and outcome.ended == "done" and outcome.key.startswith(f"{run_id}/"):
                self._known.add(outcome.key)
                self._specs[outcome.key] = path.with_name("spec.json")
                self._outcomes.put(outcome)
                found.add(outcome.key)
        return found

    def close(self, deadline: Deadline) -> None:
        """End every job and its worker."""
        self.join(deadline)
        self._supervisor.close()

    def _outcome(self, job: Job, place: Path) -> Outcome:
        spec, out = place / "spec.json", place / "outcome.json"
        number = self._spool.add(job.key, worker_command(job, spec, out), cwd=place)
        done = self._supervisor.run(
            Command(argv=self._spool.worker(job.key), cwd=str(place), env=self._environment, grace=GRACE_SECONDS)
        )
        outcome = read_outcome(out)
        if outcome is None:
            said = done.stdout.text + done.stderr.text
            reason = _full(place, said) or _reason(self._spool, number)
            self._spool.withdraw(number)
            withdrawn = not spec.exists()
            outcome = Outcome(key=job.key, ended="canceled" if withdrawn else "lost", worker="spoolctl", reason=reason)
        return outcome


def _full(place: Path, said: str) -> str | None:
    """Return that the disk is full, if it is or was: then neither spoolctl nor a worker can write down how a job ended."""
    told = next((words for words in FULL_WORDS if words in said), None)
    if told:
        return f"{DiskFull.code}: {told}"
    probe = place / "probe"
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
    except OSError as error:
        return f"{DiskFull.code}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return None


def _reason(spool: Spool, number: int) -> str:
    """Return what spoolctl says of a job whose worker left no outcome."""
    shown = spool.show(number)
    job = shown["job"]
    code = job["last_exit_code"]
    how = f"was killed by signal {-code}" if isinstance(code, int) and code < 0 else f"ended with {job['last_error']}"
    return f"the worker of spoolctl job {number} {how if code is not None else 'is gone'} (state {job['state']})"
