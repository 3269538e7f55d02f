"""What a run directory tells about its run now: finished, running, or left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalwright.canonical import digest_bytes, is_array, is_object
from evalwright.coordinate.lease import lease_state, read_reservation
from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.rundir import IDENTITY_CASES, OUR_FORMAT, RunDirectory, read_around, read_object
from evalwright.workspace import digest_file, stamp_of

if TYPE_CHECKING:
    from evalwright.ledger import Event

__all__ = ["classify", "live_cases", "place_of", "sealed_state", "state_of"]

Record = dict[str, Any]
OPEN = frozenset({"pending", "running", "canceled"})
RESUMED = b'"type":"RUN_RESUMED"'


def classify(run: RunDirectory, summaries: Mapping[str, Mapping[str, Any]]) -> Record:
    """Return one entry of ``jobs list``; a run that cannot be read is ``damaged`` and says why."""
    held = lease_state(run)
    entry: Record = {
        "run_id": run.path.name,
        "run_dir": str(run.path),
        "state": state_of(run),
        "reservation": {"present": bool(read_reservation(run)), "live": held == "held"},
        "queue_jobs": [],
    }
    summary = summaries.get(run.path.name, {})
    if _speaks_of(summary, run):
        count = summary["run"]["case_count"]
        entry |= {key: summary[key] for key in ("run", "report_hash", "experiment")}
        return entry | {"cases": {"case_count": count, "terminal": count, "pending": 0}}
    entry["experiment"] = place_of(run)
    try:
        entry["cases"] = _counts(run)
        if run.manifest.is_file():
            entry |= _recomputed(run)
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


def sealed_state(run: RunDirectory, summary: Mapping[str, Any]) -> Record | None:
    """Return ``{run_id, run, report_hash, cases}`` of a finished run as its manifest has them, with which its ledger ends.

    ``None`` where that is not so, where there is something to warn of, and where the index does not know the report's hash:
    there the artifacts have to be read. Whether they are still those that were sealed is not looked at here.
    """
    from evalwright.ledger import last_event
    from evalwright.report import status_counts

    try:
        record, content = read_object(run.run_json), run.manifest.read_bytes()
        event = last_event(run.ledger)
        digest = digest_bytes(content)
        named = (summary.get("manifest_digest"), event and event["data"].get("manifest_digest"))
        if named != (digest, digest) or record.get("format") != OUR_FORMAT or record.get("warnings"):
            return None
        if RESUMED in run.ledger.read_bytes():
            return None
        manifest = json.loads(content)
        cases = [{"id": case["id"], "status": case["status"], "ok": case["status"] == "pass"} for case in manifest["cases"]]
        cases.sort(key=lambda case: case["id"])
        counts = status_counts(case["status"] for case in cases)
        ok = 0 < counts["pass"] == len(cases)
        shown = {"ok": ok, "suite": manifest["suite"]["name"], "case_count": len(cases), "status_counts": counts}
        return {"run_id": manifest["run_id"], "run": shown, "report_hash": summary["report_hash"], "cases": cases}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RunCorrupt, LedgerDamaged):
        return None


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


def place_of(run: RunDirectory) -> Record | None:
    """Return ``{id, arm, repeat}``: the experiment that the run was made for, if its record can be read and names one."""
    try:
        place = read_around(run.run_json, *IDENTITY_CASES)[0].get("experiment")
    except RunCorrupt:
        return None
    return {key: place.get(key) for key in ("id", "arm", "repeat")} if is_object(place) else None


def _speaks_of(summary: Mapping[str, Any], run: RunDirectory) -> bool:
    """Tell whether a line of the index is whole, and about exactly the manifest that the run has now."""
    if not {"run", "report_hash", "experiment"} <= summary.keys():
        return False
    try:
        stamp = list(stamp_of(os.lstat(run.manifest)))
        same = summary.get("manifest_stamp") == stamp or summary.get("manifest_digest") == digest_file(run.manifest)
        return same and isinstance(summary["run"]["case_count"], int)
    except (OSError, LookupError, TypeError):
        return False


def _recomputed(run: RunDirectory) -> Record:
    from evalwright.report import project

    report = project(run)
    return {"run": report.summary | {"suite": report.suite}, "report_hash": report.report_hash}


def _counts(run: RunDirectory) -> Record:
    if run.manifest.is_file():
        count = len(read_object(run.manifest)["cases"])
        return {"case_count": count, "terminal": count, "pending": 0}
    _, progress = live_cases(run)
    return {"case_count": progress["case_count"], "terminal": progress["terminal"]} | {
        "pending": progress["case_count"] - progress["terminal"]
    }


def _events(run: RunDirectory) -> list[Event]:
    from evalwright.ledger import read_events

    return read_events(run.ledger) if run.ledger.is_file() else []


def _resumable(run: RunDirectory) -> bool:
    try:
        return bool(read_object(run.run_json).get("format") == OUR_FORMAT)
    except RunCorrupt:
        return False
