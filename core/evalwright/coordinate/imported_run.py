"""One run of another harness as a sealed run directory of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import digest_json, finite
from evalwright.coordinate.finalise import seal
from evalwright.errors import PluginInvalid
from evalwright.interfaces import ImportedRun, ImportedTrial
from evalwright.ledger import Ledger
from evalwright.model import Completed, Manifest, Output, RunnerResult
from evalwright.redaction import Redactor
from evalwright.rundir import OUR_FORMAT, BundleWriter, RunDirectory, disk_errors, identity_in_brief, write_document
from evalwright.scoring import fold_status, score_record
from evalwright.suite import Description
from evalwright.worker.evidence import runner_record

__all__ = ["ImportedRunWriter"]

Record = dict[str, Any]
NOTHING = Manifest().as_json()


class ImportedRunWriter:
    """Writes one run into a directory that has its suite snapshot already; :meth:`finish` seals it."""

    def __init__(
        self,
        place: RunDirectory,
        experiment: str,
        run: ImportedRun,
        described: Description,
        provenance: Mapping[str, Any],
        redactor: Redactor,
    ) -> None:
        self.run_id = place.path.name
        self.arm = run.arm
        self.created = run.created
        self.source = run.source
        self.evidence = run.evidence
        self.run = place
        self.statuses: list[str] = []
        self.arm_record: Record = {"tables": dict(run.settings), "arm_digest": digest_json(dict(run.settings))}
        self._imported = run
        self._cases = {str(case["id"]): case for case in described.cases}
        self._waiting: list[ImportedTrial] = []
        self._experiment = experiment
        self._provenance = provenance
        self._redactor = redactor
        self._document = described.document

    def add(self, trial: ImportedTrial) -> None:
        """Take one trial. Raises ``PluginInvalid`` when its case is unknown or was given before."""
        if trial.case_id not in self._cases:
            raise PluginInvalid(f"the trial {trial.case_id} has no case", hint="describe every case before the first run")
        if any(other.case_id == trial.case_id for other in self._waiting):
            raise PluginInvalid(f"the case {trial.case_id} has two trials in one run", hint="use another repeat")
        self._waiting.append(trial)

    @property
    def cell(self) -> Record:
        """Return what the experiment's ledger says was planned."""
        return {"arm": self.arm, "repeat": self._imported.repeat, "cases": len(self.statuses), "run_id": self.run_id}

    @property
    def identity(self) -> Record:
        """Return ``suite_identity``; nobody knows fixtures and gold of an imported run, so their digests are of nothing."""
        ids = sorted(trial.case_id for trial in self._waiting)
        return {
            "suite_name": self._document["name"],
            "suite_hash": digest_json(self._document),
            "cases": [[case_id, digest_json(self._cases[case_id])] for case_id in ids],
            "fixtures_hash": digest_json([[], []]),
            "hidden_hash": digest_json([[], None]),
            "arm_digest": self.arm_record["arm_digest"],
            "repeat": self._imported.repeat,
        }

    def finish(self) -> None:
        """Write every trial and seal the run. Raises ``PluginInvalid`` for a run without trials."""
        if not self._waiting:
            raise PluginInvalid(f"the run {self.run_id} has no trial", hint="yield its trials after it")
        write_document(self.run.run_json, self._record())
        with disk_errors(self.run.ledger), Ledger(self.run.ledger, run=self.run_id) as ledger:
            measured = identity_in_brief(self.identity)
            ledger.append("RUN_STARTED", {"trials": len(self._waiting), "identity": measured, "sandbox": "none"})
            for trial in self._waiting:
                ledger.append("TRIAL_FINISHED", self._bundle(trial))
            ledger.commit()
            seal(self.run, ledger, [trial.case_id for trial in self._waiting])

    def _record(self) -> Record:
        return {
            "format": OUR_FORMAT,
            "schema_version": 1,
            "run_id": self.run_id,
            "created_ts": self.created,
            "suite_identity": self.identity,
            "experiment": {"id": self._experiment, "arm": self.arm, "repeat": self._imported.repeat},
            "execution": {"mode": "imported", "jobs": 1, "timeout_seconds": None, "sandbox": "none", "queue": "none"},
            "replayed_from": None,
            "imported_from": {"run": self.source, "evidence": self.evidence},
            "suite_dir": None,
            "queue": None,
            "inputs": None,
            "resolved": {"tables": dict(self._imported.settings)},
            "provenance": dict(self._provenance),
        }

    def _bundle(self, trial: ImportedTrial) -> Record:
        """Write the evidence of one trial and return its TRIAL_FINISHED."""
        case_id, case = trial.case_id, self._cases[trial.case_id]
        hide = self._redactor
        given = [score_record(s.scorer, s.score, required=s.required, advisory=s.advisory) for s in trial.scores]
        records = [hide.json(finite(record)) for record in given]
        status = fold_status(records, broken=trial.error is not None)
        fault = None if status != "error" else trial.fault if trial.error is not None else "harness"
        bundle = BundleWriter(self.run.case(case_id))
        bundle.write_document("input.json", case)
        bundle.write_text("task.txt", case["task"])
        bundle.write_text("output.txt", hide.text(trial.output))
        bundle.write_document("runner.json", hide.json(_runner(trial, status)))
        for name in ("before", "after"):
            bundle.write_document(f"workspace-{name}.json", NOTHING)
        bundle.write_document("workspace-diff.json", {"changed_paths": []})
        bundle.write_bytes("workspace.diff", hide.bytes(trial.diff))
        for record in records:
            bundle.write_document(f"scorers/{record['scorer']}.json", record)
        for name, content in sorted(trial.artifacts.items()):
            bundle.write_bytes(name, hide.bytes(content))
        score = {"case_id": case_id, "status": status, "ok": status == "pass", "scores": records}
        bundle.write_document("score.json", score | ({"fault": fault} if fault else {}))
        facts: Record = {"attempt": 1, "status": status, "fault": fault}
        bundle.seal({"case_id": case_id, **facts})
        write_document(bundle.directory / "state.json", {"id": case_id, "status": status, "completed_ts": self.created})
        self.statuses.append(status)
        usage = trial.usage.as_json() if trial.usage else None
        outcome = {"seal": bundle.digests["bundle.json"], "usage": usage, "duration_ms": _milliseconds(trial.duration)}
        return {"case": case_id, **facts, **outcome, "error": hide.json(_error(trial))}


def _runner(trial: ImportedTrial, status: str) -> Record:
    """Return ``runner.json``: what is not known of a foreign run is ``null``."""
    answer = Output(head=trial.output.encode("utf-8", "replace"), total_bytes=len(trial.output.encode("utf-8", "replace")))
    result = RunnerResult(completed=Completed(duration=trial.duration or 0.0), usage=trial.usage)
    record = runner_record(result, answer, None, _error(trial), Redactor())
    duration = _milliseconds(trial.duration)
    row = {"attempt": 1, "status": status, "error": _error(trial), "duration_ms": duration, "counted": True}
    return record | {"isolation": None, "duration_ms": duration, "attempts": [row]}


def _error(trial: ImportedTrial) -> Record | None:
    if trial.error is None:
        return None
    known = {"code": "E_RUNNER_FAILED", "kind": "imported", "transient": False}
    return {**known, "message": str(finite(trial.error)), "fault": trial.fault}


def _milliseconds(duration: float | None) -> int | None:
    return None if duration is None else round(duration * 1000)
