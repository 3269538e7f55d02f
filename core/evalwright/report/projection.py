"""Recompute a run's verdicts from its artifacts, and hash them the way evalctl does."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.canonical import digest_bytes, digest_json, digest_pieces, digest_text, is_array, is_object, stable_pieces
from evalwright.errors import EvalwrightError, LedgerDamaged, RunCorrupt, RunNotFound
from evalwright.ledger import Event, stream_events
from evalwright.model import Total, Usage
from evalwright.report.scores import SCORE, SealedScores
from evalwright.report.totals import mean_score, status_counts, usage_totals
from evalwright.rundir import (
    IDENTITY_CASES,
    OUR_FORMAT,
    RunDirectory,
    changed_artifacts,
    read_around,
    read_object,
    read_rows,
    render_compact,
)
from evalwright.workspace import digest_file

if TYPE_CHECKING:
    from evalwright.report.rescore import Rescorer

__all__ = ["Projection", "ReportedCase", "failure_reason", "is_ours", "project"]

ATTEMPTS = frozenset({"TRIAL_FINISHED", "TRIAL_RETRIED", "TRIAL_LATE"})
CONTENTS = ("input.json", "input.diff", "output.txt", "workspace-after.json")
NOTHING = {"output.txt": digest_bytes(b""), "workspace-diff.json": digest_text(render_compact({"changed_paths": []}))}
"""The digests of what an agent leaves that neither answers nor changes a file."""
IDLE_COUNT, IDLE_SHARE = 3, 0.2
Record = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCase:
    """One case of a report; ``reason`` says what kept an ``error`` from being judged. It is not part of the hash."""

    id: str
    status: str
    scores: Sequence[Mapping[str, Any]]
    fault: str | None = None
    reason: str | None = None

    @property
    def ok(self) -> bool:
        """Tell whether the case passed."""
        return self.status == "pass"

    @property
    def remarks(self) -> Sequence[Mapping[str, Any]]:
        """Return the scores that object to something, decisive or not."""
        return [score for score in self.scores if not score["ok"] or score["findings"]]


@dataclass(frozen=True, kw_only=True)
class Projection:
    """The verdicts of one run. ``sealed`` says whether ledger and digests vouch for them.

    ``usages`` is what each attempt consumed, counted or not, ``None`` where the agent did not tell; it is no part of the hash.
    ``content_hash`` is the digest of inputs, outputs and suite: two runs with equal verdicts but other answers differ here.
    """

    run_id: str
    suite: str
    suite_hash: str
    cases: Sequence[ReportedCase]
    sealed: bool
    warnings: Sequence[Record] = ()
    usages: Sequence[Usage | None] = ()
    content_hash: str = ""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return how often each status occurs."""
        return status_counts(case.status for case in self.cases)

    @property
    def ok(self) -> bool:
        """Tell whether every case passed, and there was one."""
        return bool(self.cases) and all(case.ok for case in self.cases)

    @property
    def verdict(self) -> str:
        """Return ``pass``, ``fail``, or ``error`` where nothing but errors came of the run."""
        return "pass" if self.ok else "error" if 0 < self.counts["error"] == len(self.cases) else "fail"

    @cached_property
    def usage(self) -> dict[str, Total]:
        """Return what the run consumed, every attempt included."""
        return usage_totals(self.usages)

    @cached_property
    def failures(self) -> Sequence[ReportedCase]:
        """Return the cases that did not pass: errors first, then by mean score, then by id."""
        failed = [case for case in self.cases if not case.ok]
        return sorted(failed, key=lambda case: (case.status != "error", mean_score(case.scores), case.id))

    @property
    def remarked(self) -> Sequence[ReportedCase]:
        """Return the cases that passed although a scorer found something: what is advisory is said all the same."""
        return [case for case in self.cases if case.ok and case.remarks]

    @property
    def summary(self) -> dict[str, Any]:
        """Return ``{ok, case_count, status_counts}``."""
        return {"ok": self.ok, "case_count": len(self.cases), "status_counts": self.counts}

    @property
    def normalized(self) -> dict[str, Any]:
        """Return what the report hash covers: verdicts and reasons, no durations, no run id."""
        return {"run": self._run, "failures": list(map(_failure, self.failures)), "cases": list(map(_verdict, self.cases))}

    @cached_property
    def report_hash(self) -> str:
        """Return the digest of :attr:`normalized`, of which only one case is made at a time."""
        cases, failures = map(_verdict, self.cases), map(_failure, self.failures)
        return digest_pieces(stable_pieces({"run": self._run, "failures": failures, "cases": cases}))

    @property
    def _run(self) -> dict[str, Any]:
        return {"ok": self.ok, "suite": self.suite, "case_count": len(self.cases), "status_counts": self.counts}


def project(run: RunDirectory) -> Projection:
    """Return the verdicts of a finished run, ours or evalctl's.

    A sealed case whose artifacts still have their digests keeps its stored scores. Otherwise the pure scorers judge again,
    for the reasons that are shown; but a case of ours for which nothing vouches any more is ``error``, with
    W_ARTIFACT_TAMPERED, whatever they say. Raises ``RunCorrupt``.
    """
    if not run.manifest.is_file() and is_object(read_object(run.run_json).get("suite_identity")):
        name = run.path.name
        hint = f"watch it: evalwright status {name}; or finish it: evalwright run --resume {name}"
        raise RunNotFound(f"run {name} is unfinished, so there is no report yet", hint=hint)
    return _Projector(run).project()


def _warnings_in(record: Mapping[str, Any]) -> list[Record]:
    found: Any = record.get("warnings")
    return [dict(one) for one in found if is_object(one) and {"code", "message"} <= one.keys()] if is_array(found) else []


def is_ours(run: RunDirectory, record: Mapping[str, Any] | None = None) -> bool:
    """Tell whether this program made a run; ``record`` is what its ``run.json`` says, if that was read already.

    Raises ``RunCorrupt`` for one that a newer version wrote.
    """
    form = (_record_of(run) if record is None else record).get("format")
    if form != OUR_FORMAT and str(form).startswith(OUR_FORMAT.partition("/")[0] + "/"):
        raise RunCorrupt(
            f"run {run.path.name} was written by a newer version: its format is {form}, this version reads {OUR_FORMAT}",
            hint="install the newer version",
        )
    return form == OUR_FORMAT


def _record_of(run: RunDirectory) -> dict[str, Any]:
    """Return the run's record without its list of cases, an empty one where there is none."""
    return read_around(run.run_json, *IDENTITY_CASES)[0] if run.run_json.is_file() else {}


class _Projector:
    """Reads a run case by case: what is held of each is its verdict, and what its scorers objected to."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        record = _record_of(run)
        self.ours = is_ours(run, record)
        self.warnings = _warnings_in(record)
        self.usages: list[Usage | None] = []
        self._idle: list[str] = []
        self._scores = SealedScores()

    def project(self) -> Projection:
        try:
            manifest, entries = self._manifest()
            suite = manifest["suite"]
            sealed = self._sealed() and not self._suite_changed(suite["hash"])
            cases: list[ReportedCase] = []
            contents = {"suite": suite["hash"], "cases": self._contents(entries, cases, sealed=sealed)}
            content_hash = digest_pieces(stable_pieces(contents))
            self._warn_of_idle(len(cases))
        except (KeyError, TypeError, AttributeError) as error:
            raise RunCorrupt(
                f"{self.run.path} does not hold what a run holds: {type(error).__name__} {error}",
                hint="restore the run directory from a copy",
            ) from error
        return Projection(
            run_id=str(manifest["run_id"]),
            suite=suite["name"],
            suite_hash=suite["hash"],
            cases=cases,
            sealed=sealed,
            warnings=self.warnings,
            usages=self.usages,
            content_hash=content_hash,
        )

    def _manifest(self) -> tuple[dict[str, Any], Iterable[Mapping[str, Any]]]:
        """Return the manifest without its cases, and these by id: read once more if they stand in that order, else held.

        Refuses one that lists a case twice, or an unsealed one that lists another number than it claims.
        """
        path, ids = self.run.manifest, _Order()
        manifest, count = read_around(path, "cases", see=lambda entry: ids.see(entry["id"]))
        if not is_array(manifest["cases"]):
            raise TypeError("cases are no list")
        entries: Iterable[Mapping[str, Any]] = read_rows(path, "cases")
        if not ids.rising:
            entries = sorted(entries, key=lambda entry: entry["id"])
            for one, other in itertools.pairwise(entries):
                if one["id"] == other["id"]:
                    raise RunCorrupt(f"{path} lists {one['id']} twice", hint="restore it from a copy")
        if count != manifest["suite"]["case_count"] and not self.ours:
            total = manifest["suite"]["case_count"]
            raise RunCorrupt(f"{path} lists {count} of {total} cases", hint="restore it from a copy")
        return manifest, entries

    def _contents(
        self, entries: Iterable[Mapping[str, Any]], cases: list[ReportedCase], *, sealed: bool
    ) -> Iterator[list[Any]]:
        """Add every case, and yield its part of the content hash."""
        for entry in entries:
            case, digests = self._case(entry, sealed=sealed)
            cases.append(case)
            yield [case.id, [digests.get(name) for name in CONTENTS]]

    @cached_property
    def rescorer(self) -> Rescorer:
        from evalwright.report.rescore import Rescorer

        return Rescorer(self.run)

    def _sealed(self) -> bool:
        if not self.ours:
            self._warn("W_UNSEALED", "this run was not written by evalwright: nothing vouches for its artifacts")
            return False
        usages: list[Usage | None] = []
        warnings: list[Record] = []
        finished: Mapping[str, Any] = {}
        try:
            for event in stream_events(self.run.ledger):
                if event["type"] in ATTEMPTS:
                    usages.append(_usage(event))
                elif event["type"] == "RUN_RESUMED":
                    warnings += _warnings_in(event["data"])
                elif event["type"] == "RUN_FINISHED":
                    finished = event["data"]
        except (OSError, LedgerDamaged) as error:
            self._warn("W_ARTIFACT_TAMPERED", f"the ledger cannot vouch for the run: {error}")
            return False
        self.usages = usages
        self.warnings += warnings
        if finished.get("manifest_digest") != digest_file(self.run.manifest):
            self._warn("W_ARTIFACT_TAMPERED", "manifest.json is not the one that the ledger names")
            return False
        return True

    def _suite_changed(self, suite_hash: str) -> bool:
        try:
            changed = digest_json(read_object(self.run.snapshot / "suite.json")) != suite_hash
        except RunCorrupt:
            changed = True
        if changed:
            self._warn("W_ARTIFACT_TAMPERED", "suite-snapshot/suite.json is not the suite that was run")
        return changed

    def _case(self, entry: Mapping[str, Any], *, sealed: bool) -> tuple[ReportedCase, Mapping[str, str]]:
        """Return a case, and the digests of its artifacts."""
        case_id = entry["id"]
        directory = self.run.case(case_id)
        digests: Mapping[str, str] = entry.get("digests") or {}
        score = self._scores.read(str(directory), case_id, digests.get(SCORE)) if sealed else None
        changed = changed_artifacts(directory, digests, [name for name in digests if score is None or name != SCORE])
        if changed:
            self._warn("W_ARTIFACT_TAMPERED", f"cases/{case_id}: {', '.join(changed)} changed since the run")
        if sealed and digests and not changed:
            if score is None:
                score = read_object(directory / SCORE)
                score["scores"] = self._scores.shared(score["scores"])
            if score["status"] == "fail" and all(digests.get(name) == digest for name, digest in NOTHING.items()):
                self._idle.append(case_id)
            return self._reported(case_id, score["status"], score["scores"], score.get("fault"), directory), digests
        status, scores, fault = self._judged(case_id, directory)
        if self.ours:
            status, fault = "error", "harness"
        case = self._reported(case_id, status, self._scores.shared(scores), fault, directory)
        return case, digests or _content_digests(directory)

    def _reported(
        self, case_id: Any, status: str, scores: Sequence[Mapping[str, Any]], fault: str | None, directory: Path
    ) -> ReportedCase:
        reason = failure_reason(directory) if status == "error" else None
        fault = None if fault is None else sys.intern(str(fault))
        return ReportedCase(id=str(case_id), status=sys.intern(str(status)), scores=scores, fault=fault, reason=reason)

    def _judged(self, case_id: str, directory: Path) -> tuple[str, Sequence[Mapping[str, Any]], str | None]:
        try:
            return self.rescorer.judge(directory)
        except (EvalwrightError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            if not self.ours:
                raise RunCorrupt(
                    f"cases/{case_id} cannot be judged again: {error}", hint="restore the case's artifacts"
                ) from error
            return "error", [], "harness"

    def _warn_of_idle(self, count: int) -> None:
        """Say so when many trials failed for want of any work: then the agent itself is to be looked at, not its answers."""
        idle = self._idle
        if len(idle) >= IDLE_COUNT and len(idle) > IDLE_SHARE * count:
            shown = ", ".join(idle[:IDLE_COUNT]) + (", ..." if len(idle) > IDLE_COUNT else "")
            message = f"in {len(idle)} of {count} trials the agent changed no file, gave no answer, and failed: {shown}"
            self._warn("W_AGENT_IDLE", message)

    def _warn(self, code: str, message: str) -> None:
        self.warnings.append({"code": code, "message": message})


class _Order:
    """Whether names that are seen one after another rise."""

    def __init__(self) -> None:
        self.rising = True
        self._last = ""

    def see(self, name: str) -> None:
        self.rising = self.rising and self._last < name
        self._last = name


def failure_reason(directory: Path) -> str | None:
    """Return what ``runner.json`` says about the trial's own failure."""
    try:
        error = read_object(directory / "runner.json").get("error")
    except RunCorrupt:
        return None
    return str(error.get("message")) if is_object(error) else None


def _usage(event: Event) -> Usage | None:
    usage = event["data"].get("usage")
    return Usage.from_json(usage) if is_object(usage) else None


def _verdict(case: ReportedCase) -> dict[str, Any]:
    return {"id": case.id, "status": case.status, "ok": case.ok}


def _failure(case: ReportedCase) -> dict[str, Any]:
    return {"id": case.id, "status": case.status, "scores": [_shown(score) for score in case.scores]}


def _shown(score: Mapping[str, Any]) -> dict[str, Any]:
    return {key: score[key] for key in ("scorer", "ok", "label", "findings", "id") if key in score}


def _content_digests(directory: Path) -> dict[str, str]:
    return {name: digest_file(directory / name) for name in CONTENTS if (directory / name).is_file()}
