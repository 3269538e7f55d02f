"""What must be true of a finished run, however often it was killed: each check returns its violations as text.

The files are read here without the code under test, so that a defect there cannot hide itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.chaos.processes import Seen, living, marked

__all__ = [
    "Place",
    "all_violations",
    "changed_manifest",
    "counted_twice",
    "held_locks",
    "left_files",
    "left_processes",
    "lost_trials",
]

TEMPORARY = (
    ".attempts",
    ".queue",
    ".processes.jsonl",
    ".manifest.json.new",
    "*.new",
    ".*.json.*",
    ".*.md.*",
    ".new-*",
    ".incoming-*",
)
DEATH_SECONDS = 2.0
LOOK_SECONDS = 0.02
Record = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """The directories of one round: a project with its run, the workspaces, temporary files, what the calls printed."""

    root: Path
    run_id: str
    marker: str

    @property
    def project(self) -> Path:
        """Return where the command line is called."""
        return self.root / "project"

    @property
    def run(self) -> Path:
        """Return the run's directory."""
        return self.project / "evals" / "runs" / self.run_id

    @property
    def manifest(self) -> Path:
        """Return the manifest of the run."""
        return self.run / "manifest.json"

    @property
    def ledger(self) -> Path:
        """Return the event log of the run."""
        return self.run / "ledger.jsonl"

    @property
    def store(self) -> Path:
        """Return the content store."""
        return self.project / "evals" / "store"

    @property
    def scratch(self) -> Path:
        """Return where the trials' workspaces are."""
        return self.root / "scratch"

    @property
    def temporary(self) -> Path:
        """Return the directory for temporary files."""
        return self.root / "tmp"

    @property
    def marks(self) -> tuple[str, str]:
        """Return what the environment or working directory of each of the round's processes holds."""
        return str(self.root), self.marker


def all_violations(place: Place, cases: Sequence[str], reference: bytes, *, redone: bool) -> list[str]:
    """Return the violations of every check of files, locks and processes."""
    checks: list[Callable[[], list[str]]] = [
        lambda: lost_trials(place, cases),
        lambda: counted_twice(place, cases, redone=redone),
        lambda: changed_manifest(place, reference),
        lambda: left_processes(place),
        lambda: held_locks(place),
        lambda: left_files(place),
    ]
    return [violation for check in checks for violation in check()]


def lost_trials(place: Place, cases: Sequence[str]) -> list[str]:
    """Every case has exactly one entry in the manifest, and a score; nothing else is there."""
    manifest = _document(place.manifest)
    entries = [str(entry.get("id")) for entry in manifest.get("cases", ())]
    found = [f"lost: {case} has {entries.count(case)} entries in the manifest" for case in cases if entries.count(case) != 1]
    found += [f"lost: the manifest has an entry for {name}, which is no case" for name in sorted(set(entries) - set(cases))]
    for case in cases:
        if "status" not in _document(place.run / "cases" / case / "score.json"):
            found.append(f"lost: {case} has no score.json")
    return found


def counted_twice(place: Place, cases: Sequence[str], *, redone: bool) -> list[str]:
    """Each case counts once: the attempt whose seal its bundle has is the last that finished, and the only one.

    ``redone`` says that a resume found artifacts gone and ran a finished trial again, the only reason for a second one.
    """
    events = _events(place.ledger)
    statuses = {entry.get("id"): entry.get("status") for entry in _document(place.manifest).get("cases", ())}
    found: list[str] = []
    for case in cases:
        mine = [event for event in events if event["data"].get("case") == case]
        attempts = [event["data"]["attempt"] for event in mine if event["type"] == "TRIAL_ATTEMPT"]
        finished = [event["data"] for event in mine if event["type"] == "TRIAL_FINISHED"]
        seal = _digest(place.run / "cases" / case / "bundle.json")
        sealed = [number for number, data in enumerate(finished) if data["seal"] == seal]
        if sealed != [len(finished) - 1]:
            found.append(
                f"counted: the bundle of {case} is that of {sealed} of its {len(finished)} TRIAL_FINISHED, not the last"
            )
        if len(finished) != 1 and not redone:
            found.append(f"counted: {case} finished {len(finished)} times")
        if any(later <= former for former, later in itertools.pairwise(attempts)):
            found.append(f"counted: the attempts of {case} do not increase: {attempts}")
        if any(data["attempt"] not in attempts for data in finished):
            found.append(f"counted: {case} finished an attempt that was never begun")
        if finished and finished[-1]["status"] != statuses.get(case):
            found.append(f"counted: {case} finished {finished[-1]['status']}, the manifest says {statuses.get(case)}")
    return found


def changed_manifest(place: Place, reference: bytes) -> list[str]:
    """The manifest is, byte for byte, that of an uninterrupted run, and the one that the ledger names."""
    try:
        content = place.manifest.read_bytes()
    except OSError as error:
        return [f"manifest: it cannot be read: {error}"]
    found: list[str] = []
    if content != reference:
        at = next(
            (n for n, (a, b) in enumerate(zip(content, reference, strict=False)) if a != b), min(len(content), len(reference))
        )
        around = slice(max(0, at - 60), at + 60)
        found.append(f"manifest: byte {at} differs: {content[around]!r} stands where {reference[around]!r} belongs")
    named = [event["data"]["manifest_digest"] for event in _events(place.ledger) if event["type"] == "RUN_FINISHED"]
    if named[-1:] != ["sha256:" + hashlib.sha256(content).hexdigest()]:
        found.append("manifest: the ledger's last RUN_FINISHED names another digest")
    return found


def left_processes(place: Place, former: Iterable[Seen] = (), *, seconds: float = DEATH_SECONDS) -> list[str]:
    """Within two seconds nothing lives that names the round's directory or marker, nor anything of ``former``."""
    give_up = time.monotonic() + seconds
    known = list(former)
    while True:
        left = {seen.pid: seen for seen in (*living(known), *marked(place.marks))}
        if not left or time.monotonic() > give_up:
            return [f"process: {seen} lives" for seen in left.values()]
        time.sleep(LOOK_SECONDS)


def held_locks(place: Place) -> list[str]:
    """There is no reservation, and the locks of run and ledger can be taken."""
    found = ["lock: .reservation.json is left"] if (place.run / ".reservation.json").exists() else []
    for path in (place.run, place.ledger):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            found.append(f"lock: {path.name} cannot be opened: {error.strerror}")
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found.append(f"lock: {path.name} is locked by somebody")
        finally:
            os.close(descriptor)
    return found


def left_files(place: Place) -> list[str]:
    """Nothing temporary is in the run, no trial's directory among the workspaces, nothing half-taken in the store."""
    snapshot = place.run / "suite-snapshot"
    paths = [path for path in sorted(place.run.rglob("*")) if snapshot not in path.parents]
    found = [
        f"file: {path.relative_to(place.run)} is left in the run"
        for path in paths
        if any(fnmatch(path.name, pattern) for pattern in TEMPORARY)
    ]
    found += [f"file: {path.relative_to(place.scratch)} is left of a trial" for path in sorted(place.scratch.glob("*/*"))]
    found += [f"file: {path.relative_to(place.store)} is left in the store" for path in sorted(place.store.glob("incoming/*"))]
    return found


def _document(path: Path) -> Record:
    """Return a JSON object, an empty one where there is none."""
    try:
        document: Record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document


def _events(path: Path) -> list[Record]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def _digest(path: Path) -> str | None:
    try:
        return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
