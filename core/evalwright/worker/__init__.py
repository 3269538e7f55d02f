"""One trial from a spec to a sealed bundle. Knows neither ledger nor coordinator."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from evalwright.errors import EvalwrightError, SandboxLost
from evalwright.interfaces import Beat, Job, Outcome, Store
from evalwright.model import TrialSpec
from evalwright.worker.failure import write_failure
from evalwright.worker.lock import lock_of
from evalwright.worker.process import outcome_record, read_outcome, worker_command
from evalwright.worker.runtime import Runtime
from evalwright.worker.trial import Trial

__all__ = [
    "attempt",
    "execute",
    "lock_of",
    "outcome_record",
    "read_outcome",
    "shut_down",
    "worker_command",
    "write_failure",
]

REFUSAL = "this worker has other versions of evalwright or of its plugins than the coordinator"


def attempt(job: Job, *, worker: str, beat: Beat, store: Store | None = None) -> Outcome:
    """Carry out a job in this process and return its outcome; what goes wrong is a ``lost`` one with its reason.

    This is all that a queue's worker has to call. A job whose lock is not that of this process's plugins is refused.
    """
    try:
        spec, runtime = TrialSpec.from_bytes(job.spec), _runtime()
        if job.lock and runtime.lock(spec, runtime.store(spec, store)) != job.lock:
            return Outcome(key=job.key, ended="refused", worker=worker, reason=REFUSAL)
        result = Trial(spec, runtime, store, beat).run(job.bundle)
        data = json.dumps(result).encode("ascii")
    except BaseException as error:
        name = error.code if isinstance(error, EvalwrightError) else type(error).__name__
        transient = isinstance(error, SandboxLost)
        return Outcome(key=job.key, ended="lost", worker=worker, reason=f"{name}: {error}", transient=transient)
    if result["status"] == "canceled":
        return Outcome(key=job.key, ended="canceled", worker=worker)
    return Outcome(key=job.key, ended="done", worker=worker, result=data, bundle=result.get("bundle"))


def execute(spec: bytes, *, store: Store | None, bundle: Path | None, beat: Beat) -> bytes:
    """Carry out one trial and return its result as JSON: status, scores, digests, warnings, usage.

    ``store`` is where inputs come from; ``None`` means the directory that the spec names. With ``bundle`` the evidence is
    written there and sealed last; without one it goes into the store as a tree that the result names. ``beat`` is asked
    several times a second whether to go on. Only a defect of the harness itself raises.
    """
    return json.dumps(Trial(TrialSpec.from_bytes(spec), _runtime(), store, beat).run(bundle)).encode("ascii")


def shut_down() -> None:
    """Close what trials in this process share: plugins, the fork server, scratch directories."""
    if _runtime.cache_info().currsize:
        _runtime().close()
        _runtime.cache_clear()


@lru_cache(maxsize=1)
def _runtime() -> Runtime:
    return Runtime()
