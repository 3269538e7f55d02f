"""Check that an experiment is what was written: its own log, and every run that it linked."""

from __future__ import annotations

from typing import Any

from evalwright.errors import EvalwrightError
from evalwright.ledger import first_damage, read_events
from evalwright.report.verify import verify_run
from evalwright.rundir import Layout, read_object
from evalwright.rundir.experiment import Cell, ExperimentRecord, mismatch

__all__ = ["verify_experiment"]

Record = dict[str, Any]


def verify_experiment(layout: Layout, name: str) -> Record:
    """Return ``{experiment, ok, sealed, events, artifacts, first_damage, runs[]}``; nothing is repaired.

    ``first_damage`` has the path below ``evals/``. ``sealed`` says that every planned run is finished and vouched for. A run
    that was linked must exist, and must be the pass of the arm that was planned, with the arm's digest.
    Raises ``RunCorrupt`` when the record itself cannot be read.
    """
    record = ExperimentRecord(layout.experiment(name))
    document = record.document
    result: Record = {"experiment": name, "ok": True, "sealed": False, "events": 0, "artifacts": 0, "first_damage": None}
    log = record.directory / "ledger.jsonl"
    damage = first_damage(log) if log.is_file() else None
    if damage or not log.is_file():
        where = {"path": f"experiments/{name}/ledger.jsonl"}
        found = damage.as_json() if damage else _damage("missing", "the file is missing")
        return result | {"ok": False, "first_damage": {**found, **where}, "runs": []}
    events = read_events(log)
    linked = record.linked(events)
    arms = record.arms(events)
    runs = [_checked(layout, cell, document, arms, began=cell.run_id in linked) for cell in record.cells(events)]
    broken = [run["first_damage"] for run in runs if not run["ok"]]
    return result | {
        "ok": not broken,
        "sealed": bool(runs) and all(run["sealed"] for run in runs),
        "events": len(events) + sum(run["events"] for run in runs),
        "artifacts": sum(run["artifacts"] for run in runs),
        "first_damage": broken[0] if broken else None,
        "runs": runs,
    }


def _checked(layout: Layout, cell: Cell, document: Record, arms: Record, *, began: bool) -> Record:
    """Return what is found of one planned run; one that never began is no damage."""
    run = layout.run(cell.run_id)
    result: Record = {"run_id": cell.run_id, "ok": True, "sealed": False, "events": 0, "artifacts": 0, "first_damage": None}
    if not run.path.is_dir():
        lost = _damage("missing", "the run is on record and its directory is missing") | {"path": f"runs/{cell.run_id}"}
        return result | ({"ok": False, "first_damage": lost} if began else {})
    try:
        result = verify_run(run)
        if result["ok"] and (why := mismatch(read_object(run.run_json), cell, document.get("suite", {}), arms)):
            wrong = _damage("wrong_identity", why) | {"path": "run.json"}
            result |= {"ok": False, "first_damage": wrong}
    except EvalwrightError as error:
        result |= {"ok": False, "first_damage": _damage("unreadable", error.message) | {"path": ""}}
    if result["first_damage"]:
        path = f"runs/{cell.run_id}/{result['first_damage']['path']}".rstrip("/")
        result["first_damage"] = result["first_damage"] | {"path": path}
    return result


def _damage(code: str, reason: str) -> Record:
    return {"path": "", "line": None, "after_seq": None, "code": code, "reason": reason}
