"""The evidence of a trial that could not be carried out at all, so that its run can still be finished and reported."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from evalwright.canonical import finite
from evalwright.model import Output, RunnerResult, TrialSpec
from evalwright.redaction import Redactor
from evalwright.rundir import BundleWriter
from evalwright.store import DirectoryStore
from evalwright.worker.evidence import runner_record
from evalwright.worker.runtime import Runtime

__all__ = ["write_failure"]


def write_failure(
    spec: TrialSpec, bundle: Path, reason: str, *, store: DirectoryStore, kind: str = "harness", transient: bool = False
) -> dict[str, Any]:
    """Write and seal a bundle with status ``error``, a harness fault; return the result as ``execute`` would."""
    reason = str(finite(reason))
    case = _runtime().gold_case(store, spec)
    error: dict[str, Any] = {"code": "E_RUNNER_FAILED", "kind": kind, "message": reason, "fault": "harness"}
    error["transient"] = transient
    row = {"attempt": spec.attempt, "status": "error", "error": error, "duration_ms": 0, "counted": True}
    before = store.tree(spec.fixture_digest).as_json()
    writer = BundleWriter(bundle)
    writer.write_document("input.json", case)
    writer.write_text("task.txt", case["task"])
    writer.write_text("output.txt", "")
    writer.write_text("runner.stdout.txt", "")
    writer.write_text("runner.stderr.txt", reason)
    record = runner_record(RunnerResult(), Output(), None, error, Redactor())
    writer.write_document("runner.json", record | {"attempts": [*spec.former_attempts, row], "warnings": []})
    writer.write_document("workspace-before.json", before)
    writer.write_document("workspace-after.json", before)
    writer.write_document("workspace-diff.json", {"changed_paths": []})
    writer.write_text("workspace.diff", "")
    score: dict[str, Any] = {"case_id": spec.case_id, "status": "error", "ok": False, "scores": [], "fault": "harness"}
    writer.write_document("score.json", score)
    facts = {"case_id": spec.case_id, "attempt": spec.attempt, "status": "error", "fault": "harness"}
    sealed = writer.seal(facts)
    return facts | {
        "scores": [],
        "digests": sealed["digests"],
        "seal": writer.digests["bundle.json"],
        "warnings": [],
        "error": error,
        "transient": transient,
        "usage": None,
        "duration_ms": 0,
    }


@lru_cache(maxsize=1)
def _runtime() -> Runtime:
    """Return what keeps parsed gold, so that a thousand lost trials read it once."""
    return Runtime()
