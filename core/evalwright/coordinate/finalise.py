"""The end of a run: manifest, report, seal, in the order that a power cut cannot confuse."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

from evalwright.canonical import digest_bytes
from evalwright.coordinate.engine import Engine
from evalwright.coordinate.state import place_of
from evalwright.ledger import Event, Ledger
from evalwright.report import Projection, markdown_report, project, status_counts
from evalwright.rundir import Layout, RunDirectory, append_summary, disk_errors, read_object, write_text
from evalwright.rundir.bundle import is_deterministic
from evalwright.rundir.documents import render_rows
from evalwright.workspace import digest_file, lasting_stamp, remove_tree

__all__ = ["finalise", "manifest_of", "publish", "seal", "tidy"]

MANIFEST_ASIDE = ".manifest.json.new"
ARTIFACTS = {
    "input": "input.json",
    "output": "output.txt",
    "runner": "runner.json",
    "workspace_before": "workspace-before.json",
    "workspace_after": "workspace-after.json",
    "diff_manifest": "workspace-diff.json",
    "diff": "workspace.diff",
    "score": "score.json",
}


def finalise(engine: Engine) -> Projection:
    """Write the manifest and everything that follows from it; return the run's verdicts."""
    run = engine.run
    tidy(run)
    event = seal(run, engine.ledger, [case.id for case in engine.plan.cases])
    report = publish(run, engine.layout)
    engine.observers.call("run_finished", event=event, status_counts=report.counts)
    return report


def seal(run: RunDirectory, ledger: Ledger, case_ids: list[str]) -> Event:
    """Put the manifest in place after everything is durable and the ledger names its digest; return RUN_FINISHED."""
    manifest = manifest_of(run, case_ids)
    content = render_rows(manifest, "cases").encode()
    aside = run.manifest.with_name(MANIFEST_ASIDE)
    with disk_errors(aside):
        aside.write_bytes(content)
        _sync_file_system(run)
    counts = status_counts(entry["status"] for entry in manifest["cases"])
    with disk_errors(ledger.path):
        event = ledger.append("RUN_FINISHED", {"manifest_digest": digest_bytes(content), "status_counts": counts})
        ledger.commit()
    with disk_errors(run.manifest):
        os.replace(aside, run.manifest)
    return event


def publish(run: RunDirectory, layout: Layout) -> Projection:
    """Write the report and the index line of a run that has its manifest; return its verdicts."""
    report = project(run)
    manifest = {"manifest_digest": digest_file(run.manifest), "manifest_stamp": lasting_stamp(run.manifest)}
    summary = {"run_id": run.path.name, "experiment": place_of(run), "report_hash": report.report_hash, **manifest}
    append_summary(layout.index, summary | {"run": report.summary | {"suite": report.suite}})
    write_text(run.report, markdown_report(report))
    return report


def tidy(run: RunDirectory) -> None:
    """Remove what only an unfinished run needs."""
    for directory in (run.attempts, run.queue):
        remove_tree(directory, inside=run.path)
    for file in (run.journal, *run.path.glob(".*.json.*"), *run.path.glob(".*.md.*"), *run.path.glob("*.new")):
        file.unlink(missing_ok=True)


def manifest_of(run: RunDirectory, case_ids: list[str]) -> dict[str, Any]:
    """Return the manifest: evalctl's keys, and per case the digests of its deterministic artifacts."""
    record = read_object(run.run_json)
    identity = record["suite_identity"]
    inputs = dict(identity["cases"])
    return {
        "schema_version": 1,
        "run_id": record["run_id"],
        "suite": {
            "name": identity["suite_name"],
            "hash": identity["suite_hash"],
            "case_count": len(identity["cases"]),
        },
        "created_ts": record["created_ts"],
        "execution": record["execution"],
        "replayed_from": record["replayed_from"],
        "cases": [_entry(run, case_id, inputs[case_id]) for case_id in sorted(case_ids)],
    }


def _entry(run: RunDirectory, case_id: str, input_hash: str) -> dict[str, Any]:
    directory = run.case(case_id)
    score = read_object(directory / "score.json")
    digests: Mapping[str, str] = read_object(directory / "bundle.json")["digests"]
    return {
        "id": case_id,
        "input_hash": input_hash,
        "status": score["status"],
        "scores": [{key: item[key] for key in ("scorer", "ok", "score", "id") if key in item} for item in score["scores"]],
        "artifacts": {name: f"cases/{case_id}/{file}" for name, file in ARTIFACTS.items()},
        "digests": {name: digest for name, digest in digests.items() if is_deterministic(name)},
    }


def _sync_file_system(run: RunDirectory) -> None:
    """Make every artifact durable with one call rather than one per file."""
    descriptor = os.open(run.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(run.path))
    finally:
        os.close(descriptor)
