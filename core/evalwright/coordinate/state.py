"""What a run directory tells about its run now: finished, running, or left behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import is_array, is_object
from evalwright.coordinate.lease import lease_state, read_reservation
from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.ledger import Event, read_events
from evalwright.report import project
from evalwright.report.projection import OUR_FORMAT
from evalwright.rundir import RunDirectory, read_object
from evalwright.workspace import digest_file

__all__ = ["classify", "live_cases", "state_of", "summary_of"]

Record = dict[str, Any]
OPEN = frozenset({"pending", "running", "canceled"})


def classify(run: RunDirectory, summaries: Mapping[str, Mapping[str, Any]]) -> Record:
    """Return one entry of ``jobs list``; a run that cannot be read is ``damaged`` and says why."""
    held = lease_state(run)
    entry: Record = {
        "run_id": run.path.name,
        "run_dir": str(run.path),
        "state": state_of(run),
        "reservation": {"present": bool(read_reservation(run)), "live": held == "held"},
        "queue_jobs": [],
        "experiment": _place(run),
    }
    try:
        entry["cases"] = _counts(run)
        if run.manifest.is_file():
            entry |= summary_of(run, summaries.get(run.path.name, {}))
    except (RunCorrupt, LedgerDamaged, KeyError, TypeError) as error:
        entry |= {"damaged": str(error), "cases": {"case_count": 0, "terminal": 0, "pending": 0}}
    return entry


def state_of(run: RunDirectory) -> str:
    """Return ``completed``, ``running``, ``stale`` (left behind, resumable) or ``orphaned`` (left behind for good)."""
    if run.manifest.is_file():
        return "completed"
    lease = lease_state(run)
    if lease == "held":
        return "running"
    return "stale" if lease == "stale" or _resumable(run) else "orphaned"


def summary_of(run: RunDirectory, summary: Mapping[str, Any]) -> Record:
    """Return ``{run, report_hash}``: from the index when it speaks of exactly this manifest, else recomputed."""
    if summary.get("manifest_digest") == digest_file(run.manifest) and {"run", "report_hash"} <= summary.keys():
        return {"run": summary["run"], "report_hash": summary["report_hash"]}
    report = project(run)
    return {"run": report.summary | {"suite": report.suite}, "report_hash": report.report_hash}


def live_cases(run: RunDirectory) -> tuple[list[Record], Record]:
    """Return the cases of an unfinished run with their present status, and its progress."""
    identity = identity_of(run)
    statuses = _statuses(_events(run))
    if lease_state(run) != "held":
        statuses = {case: status for case, status in statuses.items() if status != "running"}
    cases: list[Record] = [{"id": case_id, "status": statuses.get(case_id, "pending")} for case_id, _ in identity["cases"]]
    for case in cases:
        case["ok"] = case["status"] == "pass"
    terminal = sum(case["status"] not in OPEN for case in cases)
    running = sum(case["status"] == "running" for case in cases)
    return cases, {
        "case_count": len(cases),
        "terminal": terminal,
        "running": running,
        "pending": len(cases) - terminal - running,
    }


def identity_of(run: RunDirectory) -> Record:
    """Return what the run measures. Raises ``RunCorrupt`` when its record does not say."""
    identity = read_object(run.run_json).get("suite_identity")
    named = is_object(identity) and isinstance(identity.get("suite_name"), str) and is_array(identity.get("cases"))
    if is_object(identity) and named and all(is_array(case) and len(case) == 2 for case in identity["cases"]):
        return identity
    raise RunCorrupt(f"{run.run_json} does not say what the run measures", hint="restore it from a copy")


def _statuses(events: list[Event]) -> dict[str, str]:
    found: dict[str, str] = {}
    for event in events:
        data = event["data"]
        if event["type"] == "TRIAL_ATTEMPT":
            found[data["case"]] = "running"
        elif event["type"] == "TRIAL_FINISHED":
            found[data["case"]] = data["status"]
        elif event["type"] == "RUN_INTERRUPTED":
            found |= dict.fromkeys(data.get("canceled", ()), "canceled")
        elif event["type"] == "RUN_RESUMED":
            found = {case: status for case, status in found.items() if status not in OPEN}
    return found


def _place(run: RunDirectory) -> Record | None:
    """Return ``{id, arm, repeat}``: the experiment that the run was made for, if its record can be read and names one."""
    try:
        place = read_object(run.run_json).get("experiment")
    except RunCorrupt:
        return None
    return {key: place.get(key) for key in ("id", "arm", "repeat")} if is_object(place) else None


def _counts(run: RunDirectory) -> Record:
    if run.manifest.is_file():
        count = len(read_object(run.manifest)["cases"])
        return {"case_count": count, "terminal": count, "pending": 0}
    _, progress = live_cases(run)
    return {"case_count": progress["case_count"], "terminal": progress["terminal"]} | {
        "pending": progress["case_count"] - progress["terminal"]
    }


def _events(run: RunDirectory) -> list[Event]:
    return read_events(run.ledger) if run.ledger.is_file() else []


def _resumable(run: RunDirectory) -> bool:
    try:
        return bool(read_object(run.run_json).get("format") == OUR_FORMAT)
    except RunCorrupt:
        return False
