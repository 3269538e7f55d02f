"""The way of one trial: fixture, agent, kill, gold, scores, seal."""

from __future__ import annotations

import contextlib
import json
import tempfile
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from evalwright.canonical import finite
from evalwright.errors import DiskFull, SandboxLost, TrialError
from evalwright.interfaces import Beat, Store, give_tree
from evalwright.judging import Tally, spent_on
from evalwright.model import BUILTIN_SCORERS, Change, Manifest, Output, RunnerResult, ScoredTrial, TrialSpec, TrialView
from evalwright.model.manifest import changes_between
from evalwright.rundir import BundleWriter, disk_errors, write_services
from evalwright.scoring import apply_scorers, fold_status, is_pure
from evalwright.spans import NO_SPANS, Spans
from evalwright.store import CachedStore, DirectoryStore, transfer
from evalwright.worker.agent import AgentContext
from evalwright.worker.evidence import (
    answer_of,
    event_lines,
    redact_tree,
    runner_record,
    shown_record,
    text_diff,
    transcript_of,
    write_streams,
)
from evalwright.worker.grader import Grader
from evalwright.worker.meter import Meter
from evalwright.worker.notes import SHORTAGES, Notes
from evalwright.worker.runtime import Runtime
from evalwright.worker.services import TrialServices
from evalwright.worker.usage_file import MAX_MODEL
from evalwright.workspace import Clone, TrialPlace, UnreadableError, copy_tree

__all__ = ["Trial"]


class Trial:
    """One trial in the making. :meth:`run` is called once."""

    def __init__(self, spec: TrialSpec, runtime: Runtime, store: Store | None, beat: Beat) -> None:
        self.spec = spec
        self.runtime = runtime
        self.store: DirectoryStore = runtime.store(spec, store)
        self.beat = beat
        self.plugins = runtime.plugins(spec, self.store)
        self.redactor = self.plugins.redactor
        self.notes = Notes(self.redactor)
        self.spans: dict[str, float] = {}
        self.profile = Spans() if spec.profile else NO_SPANS
        self.place: TrialPlace
        self.clone: Clone
        self.bundle: BundleWriter
        self.meter: Meter
        self.services: TrialServices
        self.case: dict[str, Any]
        self.before = Manifest()
        self.after = Manifest()
        self.changes: tuple[Change, ...] = ()
        self.diff = b""
        self.scored_late = False
        self.tallies: dict[str, Tally] = {}

    def run(self, bundle: Path | None) -> dict[str, Any]:
        """Carry the trial out, write and seal its bundle, and return the result."""
        with self.profile.span("worker"):
            result = self._run(bundle)
        return result | self.profile.told()

    def _run(self, bundle: Path | None) -> dict[str, Any]:
        with contextlib.ExitStack() as cleanup:
            with self.profile.span("place"):
                self.before = self.runtime.tree(self.store, self.spec.fixture_digest)
                scratch = self.runtime.scratch(self.spec)
                size = self.runtime.fixture(self.spec, self.store).size_bytes
                self.place = scratch.place(size, owner=self.plugins.sandbox.user)
            cleanup.callback(self._discard)
            self.services = TrialServices(self.plugins.services, warn=self.notes.warn, fail=self.notes.fail)
            cleanup.callback(self.services.close)
            directory = bundle or Path(
                cleanup.enter_context(tempfile.TemporaryDirectory(dir=self.place.root.parent, prefix="b"))
            )
            with self.profile.span("bundle"):
                self.bundle = BundleWriter(directory)
            result = self._carry_out()
            if bundle is None and "digests" in result:
                result["bundle"] = self._publish(directory)
        return result

    def _publish(self, directory: Path) -> str:
        """Put the bundle into the store that the coordinator reads, and return its tree."""
        tree = self.store.put_tree(directory)
        if isinstance(self.store, CachedStore):
            transfer(tree, self.store, self.store.remote)
        return tree

    def _carry_out(self) -> dict[str, Any]:
        with self._span("prepare"), self.runtime.turn(self.profile), disk_errors(self.place.root):
            files = self._prepare()
        self.meter = self.plugins.meter(self.place.exchange)
        with self.profile.span("services"):
            ready = self.services.open(self.spec.seeds, self.store)
        context = AgentContext(
            self.spec,
            self.place,
            self.plugins.sandbox,
            self.redactor,
            self.beat,
            files=files,
            keep=self.bundle.write_bytes,
            meter=self.meter,
            services=self.services,
            spans=self.profile,
        )
        with self._span("agent"):
            result = self._ask(context) if ready else RunnerResult()
        with self._span("kill"):
            self._end(context)
        if self.beat() == "cancel":
            self._release(context)
            return {"status": "canceled"}
        if all(is_pure(scorer) for _, scorer in self.plugins.scorers):
            with self.runtime.turn(self.profile):
                return self._judge(result, context)
        return self._judge(result, context)

    def _judge(self, result: RunnerResult, context: AgentContext) -> dict[str, Any]:
        """Read what the agent left, score it and seal the evidence."""
        with self._span("collect"):
            answer = self._answer(result, context)
            result = self._measured(result, context)
            with self.profile.span("scan"):
                self._rescan(whole=self.spec.paranoid or context.restored)
            with self.profile.span("diff"):
                self.diff = text_diff(self.changes, self.store, self.place.workspace, self.redactor)
        self._fail_by(result)
        with self._span("score"):
            records = self._score(result, answer, transcript_of(result, context.events))
        self._release(context)
        if self.beat() == "cancel":
            return {"status": "canceled"}
        with self._span("seal"):
            return self._seal(result, answer, context, records)

    def _prepare(self) -> Path | None:
        """Fill the workspace and the exchange directory; return where the agent's own files lie."""
        spec, place = self.spec, self.place
        self.clone = self.runtime.clone(spec, self.store, place)
        exchange = place.exchange
        for name, text in (("case.json", json.dumps(spec.case, sort_keys=True)), ("task.txt", spec.case["task"])):
            with open(f"{exchange}/{name}", "wb") as file:
                file.write(text.encode())
        if spec.diff_digest:
            with self.store.open(spec.diff_digest) as file:
                (exchange / "input.diff").write_bytes(file.read())
        give_tree(exchange, place.owner)
        if spec.files_digest is None:
            return None
        files = place.root / "a"
        files.mkdir(mode=0o755)
        self.store.restore(spec.files_digest, files, owner=place.owner)
        return files

    def _ask(self, context: AgentContext) -> RunnerResult:
        """Run the runner; what goes wrong in the harness or in a plugin is noted as this trial's failure."""
        spec = self.spec
        view = TrialView(
            id=spec.case["id"],
            task=spec.case["task"],
            diff=str(self.place.exchange / "input.diff") if spec.diff_digest else None,
            record=spec.case,
            arm=spec.arm,
            repeat=spec.repeat,
            seed=spec.seed,
        )
        try:
            return self.plugins.runner.run(view, context)
        except DiskFull:
            raise
        except (Exception, SystemExit, GeneratorExit) as error:
            self._note(error, "runner", spec.tables["runner"]["use"])
            return RunnerResult()

    def _end(self, context: AgentContext) -> None:
        """Every process of the agent is dead after this; the runner's result is kept even when that fails."""
        try:
            context.end()
        except TrialError as error:
            self.notes.fail("E_RUNNER_FAILED", error.kind, str(error), fault="agent")
        except Exception as error:
            self.notes.fail("E_SANDBOX_LOST", "sandbox_lost", f"the sandbox did not end cleanly: {error}", transient=True)
        self.services.end(self.redactor)

    def _release(self, context: AgentContext) -> None:
        try:
            with self.profile.span("release"):
                context.destroy()
        except Exception as error:
            self.notes.warn("W_SANDBOX_LEFT", f"the sandbox was not released: {error}")

    def _answer(self, result: RunnerResult, context: AgentContext) -> Output:
        max_bytes = self.spec.tables["agent"]["max_output_bytes"]
        try:
            answer = answer_of(result, context.opened, self.redactor, max_bytes)
        except TrialError as error:
            self.notes.fail("E_RUNNER_FAILED", error.kind, str(error), fault="agent")
            return Output()
        except SandboxLost as error:
            self._note(error, "sandbox", self.spec.tables["sandbox"]["use"])
            return Output()
        if answer.truncated or result.completed.stdout.truncated or result.completed.stderr.truncated:
            self.notes.warn("W_OUTPUT_TRUNCATED", f"output was longer than {max_bytes} bytes and is kept in part")
        leaked = context.opened.leaked_processes if context.opened else 0
        if leaked:
            self.notes.warn(
                "W_LEAKED_PROCESSES", f"{leaked} processes were still running when the runner ended; they were killed"
            )
        return answer

    def _measured(self, result: RunnerResult, context: AgentContext) -> RunnerResult:
        """Return the result with the agent's usage, as far as it is known."""
        measured = self.meter.settled(result, context.opened)
        for warning in self.meter.warnings:
            self.notes.warn("W_USAGE_UNKNOWN", self.redactor.text(warning))
        usage = measured.usage
        if usage and usage.model:
            measured = replace(measured, usage=replace(usage, model=self.redactor.text(finite(usage.model))[:MAX_MODEL]))
        return measured

    def _rescan(self, *, whole: bool) -> None:
        try:
            found = self.clone.scan(whole=whole)
            self.after = self.before if found == self.before else found
        except UnreadableError as error:
            self.after = self.before
            _make_directory(self.place.workspace)
            self.notes.warn("W_PATH_UNREADABLE", str(error))
            self.notes.fail("E_RUNNER_FAILED", "workspace_unreadable", str(error), fault="agent")
        self.changes = changes_between(self.before, self.after)

    def _fail_by(self, result: RunnerResult) -> None:
        """Note what the agent's own end means."""
        done = result.completed
        if done.spawn_error is not None:
            self.notes.fail(
                "E_RUNNER_FAILED",
                "spawn_failed",
                self.redactor.text(done.spawn_error),
                transient=done.spawn_errno in SHORTAGES,
            )
        elif done.timed_out and not self.spec.tables["agent"].get("score_on_timeout"):
            self.notes.fail("E_RUNNER_TIMEOUT", "timeout", f"the runner was ended after {self.spec.timeout:g} s", fault="agent")
        elif done.limit:
            self.notes.fail("E_LIMIT", done.limit, f"the runner hit its limit: {done.limit}", fault="agent")
        elif excess := self.meter.excess:
            self.notes.fail("E_LIMIT", excess.kind, excess.message, fault="agent", **asdict(excess))
        elif done.timed_out:
            self.scored_late = True
            why = f"the runner was ended after {self.spec.timeout:g} s; what it left was scored"
            self.notes.warn("W_RUNNER_TIMEOUT", why)

    def _score(self, result: RunnerResult, answer: Output, transcript: str) -> list[dict[str, Any]]:
        spec, plugins, span = self.spec, self.plugins, self.profile.span
        case = self.case = self.runtime.gold_case(self.store, spec)
        grader = Grader(
            spec=spec,
            case=case,
            output=answer.text,
            clone=self.clone,
            plugins=plugins,
            runtime=self.runtime,
            store=self.store,
            redactor=self.redactor,
            gold=self.runtime.tree(self.store, spec.gold_digest),
            canceled=lambda: self.beat() == "cancel",
            keep=self.bundle.write_bytes,
            warn=lambda message: self.notes.warn("W_SANDBOX_LEFT", message),
            tallies=self.tallies,
            spans=self.profile,
        )
        trial = ScoredTrial(
            case_id=spec.case_id,
            task=case["task"],
            expect={},
            output=answer.text,
            output_truncated=answer.truncated,
            exit_code=result.completed.exit_code,
            timed_out=result.completed.timed_out,
            before=self.before,
            after=self.after,
            changes=self.changes,
            diff=self.diff.decode("utf-8", "replace"),
            transcript=transcript,
            native=spec.native,
            meta=case.get("meta", {}),
            services=self.services.records,
        )
        expect: Any = case.get("expect", {})
        records = apply_scorers(plugins.scorers, trial, expect, context=grader.context, spent=grader.spent, span=span)
        pure = {entry.table.use for entry, scorer in plugins.scorers if is_pure(scorer)} | {"exit-code"}
        for record in records:
            if record["scorer"] not in BUILTIN_SCORERS:
                record |= self.redactor.json(record)
            if record["scorer"] not in pure:
                self.bundle.write_document(f"scorers/{record.get('id', record['scorer'])}.json", record)
        return records

    def _seal(
        self, result: RunnerResult, answer: Output, context: AgentContext, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        spec, bundle = self.spec, self.bundle
        case = self.case
        status = fold_status(records, broken=self.notes.failure is not None)
        fault = None if status != "error" else self.notes.failure["fault"] if self.notes.failure else "harness"
        bundle.write_document("input.json", case)
        bundle.write_text("task.txt", case["task"])
        if spec.diff_digest:
            bundle.write_bytes("input.diff", self.store.verified(spec.diff_digest).read_bytes())
        bundle.write_bytes("output.txt", answer.encoded)
        write_streams(bundle, result, self.redactor)
        record = runner_record(result, answer, context.opened, self.notes.failure, self.redactor)
        record |= {"attempts": [*spec.former_attempts, self._row(status, result)], "warnings": list(self.notes.warnings)}
        record |= {"scored_on_timeout": True} if self.scored_late else {}
        bundle.write_document("runner.json", record)
        data = self.runtime.manifest_bytes(spec, self.store, self.before, self.redactor)
        bundle.write_bytes("workspace-before.json", data)
        if self.after is not self.before:
            data = self.runtime.manifest_bytes(spec, self.store, self.after, self.redactor)
        bundle.write_bytes("workspace-after.json", data)
        changed = [shown_record(change.as_json(), self.redactor) for change in self.changes]
        bundle.write_document("workspace-diff.json", {"changed_paths": changed})
        bundle.write_bytes("workspace.diff", self.diff)
        if context.events:
            bundle.write_text("events.jsonl", event_lines(context.events))
        write_services(bundle, self.services.records)
        score = {"case_id": spec.case_id, "status": status, "ok": status == "pass", "scores": records}
        bundle.write_document("score.json", score | ({"fault": fault} if fault else {}))
        self._keep_workspace(status)
        facts = {"case_id": spec.case_id, "attempt": spec.attempt, "status": status, "fault": fault}
        sealed = bundle.seal(facts | {"spans_ms": self.spans})
        return facts | {
            "scores": records,
            "digests": sealed["digests"],
            "seal": bundle.digests["bundle.json"],
            "warnings": self.notes.warnings,
            "error": self.notes.failure,
            "transient": status == "error" and self.notes.transient(records),
            "usage": result.usage.as_json() if result.usage else None,
            "judging": spent_on(self.tallies.values()),
            "duration_ms": round(result.completed.duration * 1000),
            "spans_ms": self.spans,
        }

    def _row(self, status: str, result: RunnerResult) -> dict[str, Any]:
        """Return this attempt's row among the attempts of its trial."""
        duration = round(result.completed.duration * 1000)
        return {
            "attempt": self.spec.attempt,
            "status": status,
            "error": self.notes.failure,
            "duration_ms": duration,
            "counted": True,
        }

    def _keep_workspace(self, status: str) -> None:
        wanted = self.spec.keep_workspace
        if wanted == "all" or (wanted == "failed" and status != "pass"):
            with disk_errors(self.bundle.directory):
                kept = self.bundle.directory / "workspace"
                copy_tree(self.place.workspace, kept, special=True)
                redact_tree(kept, self.redactor)

    def _note(self, error: BaseException, kind: str, use: str) -> None:
        self.notes.defect(error, f"{kind} {use} ({self.plugins.origin(kind, use)})")

    def _discard(self) -> None:
        try:
            with self.profile.span("discard"):
                self.runtime.scratch(self.spec).discard(self.place)
        except OSError as error:
            self.notes.warn("W_SANDBOX_LEFT", f"{self.place.root} was not removed: {error}")

    def _span(self, name: str) -> AbstractContextManager[None]:
        """Measure a stage of the trial, for its record."""
        return self.profile.stage(name, self.spans)


def _make_directory(path: Path) -> None:
    """Put an empty directory where the agent left something else, so that nothing is read through it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        path.mkdir(mode=0o700, parents=True)
