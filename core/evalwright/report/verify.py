"""Check that a run is what was written: the ledger's chain, the manifest's digest, every sealed artifact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.canonical import digest_json, is_array, is_object
from evalwright.errors import RunCorrupt
from evalwright.ledger import Event, first_damage, read_events
from evalwright.report.projection import is_ours
from evalwright.rundir import RunDirectory, changed_artifacts, identity_in_brief, read_object, sealed_digests
from evalwright.workspace import digest_file

__all__ = ["verify_run"]

Record = dict[str, Any]


def verify_run(run: RunDirectory) -> Record:
    """Return ``{run_id, ok, sealed, events, artifacts, first_damage}``; nothing is repaired.

    Raises ``RunCorrupt`` when a run of ours lacks its ledger, its head record or its digests.
    """
    record: Record = read_object(run.run_json) if run.run_json.is_file() else {}
    result: Record = {
        "run_id": run.path.name,
        "ok": True,
        "sealed": False,
        "events": 0,
        "artifacts": 0,
        "first_damage": None,
    }
    if not is_ours(run):
        return result
    for path in (run.ledger, run.ledger.with_name("ledger.head.json")):
        if not path.is_file():
            raise RunCorrupt(f"{path} is missing", hint="restore it from a copy", file=str(path))
    damage = first_damage(run.ledger)
    if damage:
        return result | {"ok": False, "first_damage": {"path": "ledger.jsonl", **damage.as_json()}}
    events = read_events(run.ledger)
    result |= {"events": len(events), "sealed": any(event["type"] == "RUN_FINISHED" for event in events)}
    for broken in (*_record_damage(run, record, events), *_damages(run, events, result)):
        return result | {"ok": False, "first_damage": broken}
    return result


def _record_damage(run: RunDirectory, record: Record, events: list[Event]) -> Iterator[Record]:
    """Yield what of the run's own record and of its suite snapshot is not what the ledger says was started."""
    started = next((event for event in events if event["type"] == "RUN_STARTED"), None)
    if started is None:
        return
    identity: Record = started["data"]["identity"]
    if not _is_same(record.get("suite_identity"), identity):
        yield _damage("run.json", started["seq"], "wrong_identity", "suite_identity is not the one that was started")
    suite = run.snapshot / "suite.json"
    try:
        same = digest_json(read_object(suite)) == identity["suite_hash"]
    except RunCorrupt:
        same = False
    if not same:
        yield _damage("suite-snapshot/suite.json", started["seq"], "wrong_digest", "the file is missing or was changed")


def _is_same(recorded: Any, started: Record) -> bool:
    """Compare what the record and the ledger say a run measures; the ledger of an older version names every case."""
    if is_object(recorded) and is_array(recorded.get("cases")) and isinstance(started.get("cases"), str):
        return identity_in_brief(recorded) == started
    return bool(recorded == started)


def _damages(run: RunDirectory, events: list[Event], result: Record) -> Iterator[Record]:
    """Yield what does not have its digest, counting the artifacts that do."""
    last = {event["data"]["case"]: event for event in events if event["type"] == "TRIAL_FINISHED"}
    for event in last.values():
        yield from _bundle_damage(run, event, result)
    finished = [event for event in events if event["type"] == "RUN_FINISHED"]
    if not finished:
        return
    if not run.manifest.is_file():
        yield _damage("manifest.json", finished[-1]["seq"], "missing", "the file is missing")
        return
    if digest_file(run.manifest) != finished[-1]["data"]["manifest_digest"]:
        yield _damage("manifest.json", finished[-1]["seq"], "wrong_digest", "the file is not the one that was sealed")
    for entry in read_object(run.manifest)["cases"]:
        if not entry.get("digests"):
            raise RunCorrupt(f"manifest.json has no digests for {entry['id']}", hint="restore it from a copy")


def _bundle_damage(run: RunDirectory, event: Event, result: Record) -> Iterator[Record]:
    case_id = event["data"]["case"]
    directory = run.case(case_id)
    seal = f"cases/{case_id}/bundle.json"
    if changed_artifacts(directory, {"bundle.json": event["data"]["seal"]}):
        yield _damage(seal, event["seq"], "wrong_digest", "the seal is missing or not the one that the ledger names")
        return
    digests = sealed_digests(directory) or {}
    result["artifacts"] += len(digests) + 1
    for name in changed_artifacts(directory, digests):
        yield _damage(f"cases/{case_id}/{name}", event["seq"], "wrong_digest", "the file is missing or was changed")


def _damage(path: str, seq: int, code: str, reason: str) -> Record:
    return {"path": path, "line": None, "after_seq": seq, "code": code, "reason": reason}
