"""spoolctl's command line: a database, and jobs that each run once in a lane of their own, under a worker of ours.

spoolctl's workers run one job at a time and outlive whoever started them. Here every job gets its own lane and its own
``spoolctl work --once``, started and supervised by this process: which worker runs which job is known, and neither survives us.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from evalwright.errors import SandboxError
from evalwright.interfaces import BoundedOutput, Command, Problem
from evalwright.processes import Supervisor

__all__ = ["Spool", "envelope_of", "spoolctl_problems"]

OLDEST = (0, 4, 11)
CONTRACT = 2
CALL_SECONDS = 60.0
FOREVER_SECONDS = 31_536_000
BUSY_EXIT = 4
BUSY_TRIES = 5
INSTALL = "install it: pip install 'evalwright[spoolctl]'"


class Spool:
    """One spoolctl database in a directory of ours. Thread-safe. Raises ``SandboxError`` with what spoolctl said."""

    def __init__(self, directory: Path, supervisor: Supervisor) -> None:
        self.directory = directory
        self._supervisor = supervisor
        self._program = _program() or ["spoolctl"]
        directory.mkdir(parents=True, exist_ok=True)

    def add(self, key: str, argv: Sequence[str], *, cwd: Path) -> int:
        """Enqueue a command that is tried once, and return the job's id. The same key twice is one job while it is active."""
        words = ["--key", key, "--queue", _lane(key), "--max-retries", "0", "--max-crashes", "0"]
        words += ["--timeout", str(FOREVER_SECONDS), "--cwd", str(cwd)]
        return int(self._call("add", *words, "--", *argv)["job_id"])

    def worker(self, key: str) -> list[str]:
        """Return the command of a worker that runs the job of that key and ends. Its environment is the job's."""
        return [*self._program, "work", "--db", self._database, "--json", "--once", "--queue", _lane(key), "--worker-id", key]

    def show(self, job: int) -> Mapping[str, Any]:
        """Return ``{job, attempts, events}``; exit codes are negative for a death by signal."""
        return self._call("show", str(job))

    def withdraw(self, job: int) -> None:
        """Make sure that nobody will run a job that was not finished; one that has ended stays as it is."""
        with contextlib.suppress(SandboxError):
            self._call("cancel", str(job), "--running", "--yes")

    def unfinished(self) -> list[int]:
        """Return the ids of all jobs that are queued or said to be running."""
        listed = self._call("list", "--state", "queued,running", "--limit", "0")
        return [int(job["id"]) for job in listed["jobs"]]

    @property
    def _database(self) -> str:
        return str(self.directory / "queue.db")

    def _call(self, verb: str, *words: str) -> Mapping[str, Any]:
        """Call spoolctl, again when its database is busy, and return the envelope's data."""
        argv = [*self._program, verb, "--db", self._database, "--json", *words]
        said = ""
        for _ in range(BUSY_TRIES):
            done = self._supervisor.run(Command(argv=argv, cwd=str(self.directory), timeout=CALL_SECONDS))
            envelope = envelope_of(done.stdout.text)
            if envelope.get("ok"):
                data: Mapping[str, Any] = envelope["data"]
                return data
            errors = envelope.get("errors") or [{"message": done.spawn_error or done.stderr.text[-500:]}]
            said = str(errors[0].get("message"))
            if done.exit_code != BUSY_EXIT:
                break
        raise SandboxError(f"spoolctl {verb} failed: {said}", hint="check it: spoolctl doctor")


def spoolctl_problems() -> Sequence[Problem]:
    """Return what keeps spoolctl from being used here: it is absent, or speaks too old a contract."""
    program = _program()
    if program is None:
        return [_problem("E_SPOOLCTL_UNAVAILABLE", "spoolctl is not installed", INSTALL)]
    with Supervisor() as supervisor:
        done = supervisor.run(Command(argv=[*program, "capabilities", "--json"], timeout=CALL_SECONDS, capture=BoundedOutput))
    envelope = envelope_of(done.stdout.text)
    if not envelope.get("ok"):
        said = done.spawn_error or done.stderr.text.strip()[-300:] or f"it ended with exit code {done.exit_code}"
        return [_problem("E_SPOOLCTL_UNAVAILABLE", f"spoolctl does not answer: {said}", INSTALL)]
    data: dict[str, Any] = envelope.get("data") or {}
    version, contract = str(envelope.get("tool_version")), str(data.get("contract_version"))
    if _numbers(version) >= OLDEST and _numbers(contract) >= (CONTRACT,):
        return []
    wanted = ".".join(map(str, OLDEST))
    why = f"spoolctl {version} speaks contract {contract}; at least {wanted} and contract {CONTRACT} are needed"
    return [_problem("E_SPOOLCTL_INCOMPATIBLE", why, f"upgrade it: pip install --upgrade 'spoolctl>={wanted}'")]


def _problem(code: str, message: str, hint: str) -> Problem:
    return Problem(message=message, hint=hint, details={"code": code})


def _program() -> list[str] | None:
    """Return how to start spoolctl: as a module of this Python, else from ``PATH``."""
    if importlib.util.find_spec("spoolctl") is not None:
        return [sys.executable, "-I", "-m", "spoolctl"]
    found = shutil.which("spoolctl")
    return [found] if found else None


def _lane(key: str) -> str:
    """Return the lane of a key: lanes allow fewer characters than keys."""
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def envelope_of(text: str) -> dict[str, Any]:
    """Return the envelope that spoolctl printed, an empty one when it printed something else."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading number of each part of a version: ``0.4.12rc1`` is (0, 4, 12)."""
    return tuple(int(match[0]) for part in version.split(".") if (match := re.match(r"\d+", part)))
