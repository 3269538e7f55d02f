"""Recompute a run's verdicts from its artifacts, and hash them the way evalctl does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.canonical import digest_json, is_array, is_object
from evalwright.errors import EvalwrightError, LedgerDamaged, RunCorrupt, RunNotFound
from evalwright.ledger import Event, read_events
from evalwright.model import Total, Usage
from evalwright.report.totals import mean_score, status_counts, usage_totals
from evalwright.rundir import OUR_FORMAT, RunDirectory, changed_artifacts, read_object
from evalwright.workspace import digest_file

if TYPE_CHECKING:
    from evalwright.report.rescore import Rescorer

__all__ = ["Projection", "ReportedCase", "failure_reason", "is_ours", "project"]

ATTEMPTS = frozenset({"TRIAL_FINISHED", "TRIAL_RETRIED", "TRIAL_LATE"})
Record = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCase:
    """One case of a report; ``reason`` says what kept an ``error`` from being judged. It is not part of the hash."""

    id: str
    status: str
    scores: Sequence[Mapping[str, Any]]
    fault: str | None = None
    reason: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict[str, str])

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
    """

    run_id: str
    suite: str
    suite_hash: str
    cases: Sequence[ReportedCase]
    sealed: bool
    warnings: Sequence[Record] = ()
    usages: Sequence[Usage | None] = ()

    @property
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

    @cached_property
    def normalized(self) -> dict[str, Any]:
        """Return what the report hash covers: verdicts and reasons, no durations, no run id."""
        return {
            "run": {"ok": self.ok, "suite": self.suite, "case_count": len(self.cases), "status_counts": self.counts},
            "failures": [
                {"id": case.id, "status": case.status, "scores": [_shown(score) for score in case.scores]}
                for case in self.failures
            ],
            "cases": [{"id": case.id, "status": case.status, "ok": case.ok} for case in self.cases],
        }

    @cached_property
    def report_hash(self) -> str:
        """Return the digest of :attr:`normalized`."""
        return digest_json(self.normalized)

    @cached_property
    def content_hash(self) -> str:
        """Return the digest of inputs, outputs and suite: two runs with equal verdicts but other answers differ here."""
        names = ("input.json", "input.diff", "output.txt", "workspace-after.json")
        cases = [[case.id, [case.digests.get(name) for name in names]] for case in self.cases]
        return digest_json({"suite": self.suite_hash, "cases": cases})


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


def stored_warnings(run: RunDirectory) -> list[Record]:
    """Return what was said when a run was planned, such as that its agent judges itself. Raises ``RunCorrupt``."""
    return _warnings_in(read_object(run.run_json)) if run.run_json.is_file() else []


def _warnings_in(record: Mapping[str, Any]) -> list[Record]:
    found: Any = record.get("warnings")
    return [dict(one) for one in found if is_object(one) and {"code", "message"} <= one.keys()] if is_array(found) else []


def is_ours(run: RunDirectory) -> bool:
    """Tell whether this program made a run. Raises ``RunCorrupt`` for one that a newer version wrote."""
    form = read_object(run.run_json).get("format") if run.run_json.is_file() else None
    if form != OUR_FORMAT and str(form).startswith(OUR_FORMAT.partition("/")[0] + "/"):
        raise RunCorrupt(
            f"run {run.path.name} was written by a newer version: its format is {form}, this version reads {OUR_FORMAT}",
            hint="install the newer version",
        )
    return form == OUR_FORMAT


class _Projector:
    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.manifest = read_object(run.manifest)
        self.warnings: list[Record] = []
        self.usages: list[Usage | None] = []
        self.ours = is_ours(run)

    def project(self) -> Projection:
        self.warnings += stored_warnings(self.run)
        try:
            entries = sorted(self.manifest["cases"], key=lambda entry: entry["id"])
            suite = self.manifest["suite"]
            self._check_entries(entries, suite["case_count"])
            sealed = self._sealed() and not self._suite_changed(suite["hash"])
            cases = [self._case(entry, sealed=sealed) for entry in entries]
        except (KeyError, TypeError, AttributeError) as error:
            raise RunCorrupt(
                f"{self.run.path} does not hold what a run holds: {type(error).__name__} {error}",
                hint="restore the run directory from a copy",
            ) from error
        return Projection(
            run_id=str(self.manifest["run_id"]),
            suite=suite["name"],
            suite_hash=suite["hash"],
            cases=cases,
            sealed=sealed,
            warnings=self.warnings,
            usages=self.usages,
        )

    def _check_entries(self, entries: Sequence[Mapping[str, Any]], count: int) -> None:
        """Refuse a manifest that lists a case twice, or an unsealed one that lists another number than it claims."""
        ids = [entry["id"] for entry in entries]
        doubled = sorted({case_id for case_id in ids if ids.count(case_id) > 1}) if len(set(ids)) < len(ids) else []
        if doubled:
            raise RunCorrupt(f"{self.run.manifest} lists {doubled[0]} twice", hint="restore it from a copy")
        if len(ids) != count and not self.ours:
            raise RunCorrupt(f"{self.run.manifest} lists {len(ids)} of {count} cases", hint="restore it from a copy")

    @cached_property
    def rescorer(self) -> Rescorer:
        from evalwright.report.rescore import Rescorer

        return Rescorer(self.run)

    def _sealed(self) -> bool:
        if not self.ours:
            self._warn("W_UNSEALED", "this run was not written by evalwright: nothing vouches for its artifacts")
            return False
        try:
            events = read_events(self.run.ledger)
        except (OSError, LedgerDamaged) as error:
            self._warn("W_ARTIFACT_TAMPERED", f"the ledger cannot vouch for the run: {error}")
            return False
        self.usages = [_usage(event) for event in events if event["type"] in ATTEMPTS]
        self.warnings += [one for event in events if event["type"] == "RUN_RESUMED" for one in _warnings_in(event["data"])]
        finished = [event["data"] for event in events if event["type"] == "RUN_FINISHED"]
        if not finished or finished[-1].get("manifest_digest") != digest_file(self.run.manifest):
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

    def _case(self, entry: Mapping[str, Any], *, sealed: bool) -> ReportedCase:
        case_id = entry["id"]
        directory = self.run.case(case_id)
        digests: Mapping[str, str] = entry.get("digests") or {}
        changed = changed_artifacts(directory, digests)
        if changed:
            self._warn("W_ARTIFACT_TAMPERED", f"cases/{case_id}: {', '.join(changed)} changed since the run")
        if sealed and digests and not changed:
            score = read_object(directory / "score.json")
            return _reported(case_id, score["status"], score["scores"], score.get("fault"), digests, directory)
        status, scores, fault = self._judged(case_id, directory)
        if self.ours:
            status, fault = "error", "harness"
        return _reported(case_id, status, scores, fault, digests or _content_digests(directory), directory)

    def _judged(self, case_id: str, directory: Path) -> tuple[str, Sequence[Mapping[str, Any]], str | None]:
        try:
            return self.rescorer.judge(directory)
        except (EvalwrightError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            if not self.ours:
                raise RunCorrupt(
                    f"cases/{case_id} cannot be judged again: {error}", hint="restore the case's artifacts"
                ) from error
            return "error", [], "harness"

    def _warn(self, code: str, message: str) -> None:
        self.warnings.append({"code": code, "message": message})


def _reported(
    case_id: Any,
    status: str,
    scores: Sequence[Mapping[str, Any]],
    fault: str | None,
    digests: Mapping[str, str],
    directory: Path,
) -> ReportedCase:
    reason = failure_reason(directory) if status == "error" else None
    return ReportedCase(id=str(case_id), status=status, scores=scores, fault=fault, reason=reason, digests=digests)


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


def _shown(score: Mapping[str, Any]) -> dict[str, Any]:
    return {key: score[key] for key in ("scorer", "ok", "label", "findings", "id") if key in score}


def _content_digests(directory: Path) -> dict[str, str]:
    names = ("input.json", "input.diff", "output.txt", "workspace-after.json")
    return {name: digest_file(directory / name) for name in names if (directory / name).is_file()}
