"""A worker in a process of its own: the command that starts it, and the file in which it leaves its outcome."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evalwright.canonical import is_object
from evalwright.interfaces import Job, Outcome
from evalwright.processes import current_process

__all__ = ["outcome_record", "read_outcome", "worker_command"]


def worker_command(job: Job, spec: Path, out: Path, *, store: Path | None = None) -> list[str]:
    """Return the command that carries out the job whose spec lies in a file, and ends when this process is gone.

    It runs in this process's Python. Removing the spec file stops the trial; so does SIGTERM.
    """
    command = [sys.executable, "-m", "evalwright", "worker", str(spec), "--json", "--out", str(out)]
    command += ["--coordinator", json.dumps(current_process().as_json())]
    for flag, value in (("--lock", job.lock or None), ("--bundle", job.bundle), ("--store", store)):
        command += [flag, str(value)] if value is not None else []
    return command


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as the outcome file holds it."""
    return {
        "key": outcome.key,
        "ended": outcome.ended,
        "worker": outcome.worker,
        "reason": outcome.reason,
        "transient": outcome.transient,
        "bundle": outcome.bundle,
        "result": None if outcome.result is None else json.loads(outcome.result),
    }


def read_outcome(path: Path) -> Outcome | None:
    """Return the outcome that a worker left, or ``None`` when it left none that can be read."""
    try:
        record = json.loads(path.read_bytes())
        if not is_object(record):
            return None
        result = record.pop("result")
        return Outcome(**record, result=None if result is None else json.dumps(result).encode())
    except (OSError, ValueError, KeyError, TypeError):
        return None
