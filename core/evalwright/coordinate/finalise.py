"""The end of a run: manifest, report, seal, in the order that a power cut cannot confuse."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from evalwright.canonical import digest_pieces
from evalwright.coordinate.engine import Engine
from evalwright.coordinate.state import place_of
from evalwright.errors import RunCorrupt
from evalwright.ledger import Event, Ledger
from evalwright.report import Projection, markdown_lines, project, status_counts
from evalwright.rundir import (
    IDENTITY_CASES,
    Layout,
    RunDirectory,
    append_summary,
    disk_errors,
    read_around,
    read_object,
    read_rows,
    write_pieces,
)
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
    event = seal(run, engine.ledger, (case.id for case in engine.plan.cases))
    report = publish(run, engine.layout)
    if engine.profile:
        engine.profile.publish()
    engine.observers.call("run_finished", event=event, status_counts=report.counts)
    return report


def seal(run: RunDirectory, ledger: Ledger, case_ids: Iterable[str]) -> Event:
    """Put the manifest in place after everything is durable and the ledger names its digest; return RUN_FINISHED."""
    aside = run.manifest.with_name(MANIFEST_ASIDE)
    with disk_errors(aside):
        digest, counts = _write_manifest(run, aside, case_ids)
        _sync_file_system(run)
    with disk_errors(ledger.path):
        event = ledger.append("RUN_FINISHED", {"manifest_digest": digest, "status_counts": counts})
        ledger.commit()
    with disk_errors(run.manifest):
        os.replace(aside, run.manifest)
    return event


def publish(run: RunDirectory, layout: Layout) -> Projection:
    """Write the report and the index line of a run that has its manifest; return its verdicts."""
    report = project(run)
    # The stamp first: whatever is written later has another one.
    manifest = {"manifest_stamp": lasting_stamp(run.manifest), "manifest_digest": digest_file(run.manifest)}
    summary = {"run_id": run.path.name, "experiment": place_of(run), "report_hash": report.report_hash, **manifest}
    append_summary(layout.index, summary | {"run": report.summary | {"suite": report.suite}})
    write_pieces(run.report, (f"{line}\n" for line in markdown_lines(report)))
    return report


def tidy(run: RunDirectory) -> None:
    """Remove what only an unfinished run needs."""
    for directory in (run.attempts, run.queue):
        remove_tree(directory, inside=run.path)
    for file in (run.journal, *run.path.glob(".*.json.*"), *run.path.glob(".*.md.*"), *run.path.glob("*.new")):
        file.unlink(missing_ok=True)


def manifest_of(run: RunDirectory, case_ids: Iterable[str]) -> dict[str, Any]:
    """Return the manifest: evalctl's keys, and per case the digests of its deterministic artifacts.

    The cases are read while they are iterated, which can be done once. Raises ``RunCorrupt``.
    """
    record, count = read_around(run.run_json, *IDENTITY_CASES)
    identity = record["suite_identity"]
    return {
        "schema_version": 1,
        "run_id": record["run_id"],
        "suite": {"name": identity["suite_name"], "hash": identity["suite_hash"], "case_count": count},
        "created_ts": record["created_ts"],
        "execution": record["execution"],
        "replayed_from": record["replayed_from"],
        "cases": (_entry(run, case_id, input_hash) for case_id, input_hash in _inputs(run, sorted(case_ids))),
    }


def _write_manifest(run: RunDirectory, place: Path, case_ids: Iterable[str]) -> tuple[str, dict[str, int]]:
    """Write the manifest; return its digest and how often each status occurs."""
    manifest = manifest_of(run, case_ids)
    statuses: Counter[str] = Counter()

    def counted() -> Iterator[Mapping[str, Any]]:
        for entry in manifest["cases"]:
            statuses[entry["status"]] += 1
            yield entry

    with place.open("w", encoding="utf-8", newline="") as file:
        digest = digest_pieces(_written(render_rows({**manifest, "cases": counted()}, "cases"), file))
    return digest, status_counts(statuses.elements())


def _written(pieces: Iterable[str], file: TextIO) -> Iterator[str]:
    for piece in pieces:
        file.write(piece)
        yield piece


def _inputs(run: RunDirectory, case_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield sorted cases with the digests of their inputs, which the record holds in the same order."""
    recorded = read_rows(run.run_json, *IDENTITY_CASES)
    for wanted in case_ids:
        digest = next((digest for case_id, digest in recorded if case_id == wanted), None)
        if digest is None:
            raise RunCorrupt(f"{run.run_json} does not say what the case {wanted} was", hint="restore it from a copy")
        yield wanted, digest


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
