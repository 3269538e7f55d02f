"""Judge stored trials again, by the suite as it is now, into linked runs: the agent does not run."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evalwright.canonical import digest_json
from evalwright.coordinate.create import created_timestamp, run_record, snapshot_suite
from evalwright.coordinate.finalise import publish, seal
from evalwright.coordinate.inputs import Inputs, left_out
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.request import RunRequest
from evalwright.coordinate.run import ExperimentOutcome, RunOutcome, arm_record
from evalwright.errors import JudgeError, RunConflict, RunCorrupt, TrialError, UsageError
from evalwright.interfaces import Deadline, Judge, JudgeReply, JudgeRequest, Scorer, Session
from evalwright.judging import Judging, Limits, Tally, judge_secrets, spent_on
from evalwright.ledger import Ledger
from evalwright.model import DEFAULT_ARM, Case, PluginTable, ScorerEntry
from evalwright.prices import PriceTable
from evalwright.redaction import Redactor, credential_values
from evalwright.registry import PluginHost
from evalwright.report.rescore import folded, stored_records, stored_trial
from evalwright.rundir import (
    BundleWriter,
    RunDirectory,
    changed_artifacts,
    check_id,
    disk_errors,
    identity_in_brief,
    read_object,
    sealed_digests,
    write_document,
)
from evalwright.rundir.experiment import Cell, ExperimentRecord
from evalwright.scoring import apply_scorers
from evalwright.store import DirectoryStore
from evalwright.workspace import remove_tree

__all__ = ["rescore"]

SCORE_SECONDS = 3600.0
START_SECONDS = 600.0
CLOSE_SECONDS = 30.0
Warn = Callable[[str, str], None]
Record = dict[str, Any]
Scored = tuple[list[Record], Record | None]


def rescore(
    request: RunRequest, sources: Sequence[RunDirectory], *, scorers: Collection[str], judges: Collection[str], warn: Warn
) -> ExperimentOutcome:
    """Return linked runs with new scores of the trials that ``sources`` hold.

    ``scorers`` names those that judge again, by id, ``judges`` those whose questions are asked again; without both every
    scorer does that needs no workspace. The others keep what they said. Cases that the suite has no more, or whose task has
    changed since, are left out with W_REPLAY_CASE_ABSENT. Nothing is left behind when it fails; judges' replies are cached.
    Raises ``UsageError`` for a scorer that cannot judge what is stored, ``RunConflict`` when the id is taken.
    """
    again = _chosen(request, scorers, judges)
    name = check_id(request.run_id or "", "experiment id")
    record = ExperimentRecord(request.layout.experiment(name))
    if record.exists() or request.layout.run(name).path.exists():
        raise RunConflict(f"{name} exists already", hint="choose another --run-id")
    with disk_errors(request.layout.runs):
        request.layout.runs.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=request.layout.runs, prefix=".new-"))
    try:
        runs = [_Rescored(request, source, name, aside, again, warn, alone=len(sources) == 1) for source in sources]
        for run in runs:
            run.write()
        return _settled(request, record, runs)
    finally:
        remove_tree(aside, inside=request.layout.runs)


def _chosen(request: RunRequest, scorers: Collection[str], judges: Collection[str]) -> set[str]:
    """Return the ids of the scorers that judge again."""
    known = {entry.id: scorer for entry, scorer in request.checked.scorers}
    for name in scorers:
        if name not in known:
            raise UsageError(f"the suite has no scorer {name}", hint=f"it has: {', '.join(known)}", key="scorer")
    asked = {name for name, scorer in known.items() if {f"judges.{judge}" for judge in judges} & set(scorer.uses())}
    if judges and not asked:
        raise UsageError(f"no scorer asks {', '.join(judges)}", hint="see judges in suite.json", key="judge")
    if scorers or judges:
        return set(scorers) | asked
    return {name for name, scorer in known.items() if scorer.pure or "needs-judge" in scorer.capabilities}


class _Rescored:
    """One new run beside the one that it takes its trials from."""

    def __init__(
        self,
        request: RunRequest,
        source: RunDirectory,
        experiment: str,
        aside: Path,
        again: Collection[str],
        warn: Warn,
        *,
        alone: bool,
    ) -> None:
        self.request = request
        self.source = source
        self.again = again
        self.former = read_object(source.run_json)
        cell: Mapping[str, Any] = self.former.get("experiment") or {}
        arm, repeat = str(cell.get("arm", DEFAULT_ARM)), int(cell.get("repeat", 1))
        self.cases = self._cases(warn)
        known = arm if arm in request.checked.suite.arms else DEFAULT_ARM
        plan = make_plan(request.checked, self.cases, request.settings, arm=known)
        self.plan: Plan = replace(plan, arm=arm, repeat=repeat)
        self.inputs, self.identity = self._measured()
        self.run_id = experiment if alone else check_id(f"{experiment}.{arm}.{repeat}")
        self.cell = Cell(repeat, arm, self.run_id, len(self.cases))
        self.run = RunDirectory(aside / self.run_id)
        self.experiment = experiment
        self.grading = _Grading(request, self.plan)

    def write(self) -> None:
        """Judge every trial again and seal the run."""
        with disk_errors(self.run.path):
            self.run.cases.mkdir(parents=True)
            snapshot_suite(self.plan, self.run.snapshot, self.request.layout)
        record = run_record(self.request, self.plan, self.inputs, self.identity, self.run_id, self.experiment)
        write_document(self.run.run_json, record | {"rescored_from": self.source.path.name})
        with self.grading, ThreadPoolExecutor(self.request.settings.jobs) as pool:
            finished = list(pool.map(self._trial, self.cases))
        with disk_errors(self.run.ledger), Ledger(self.run.ledger, run=self.run_id) as ledger:
            measured = identity_in_brief(self.identity)
            ledger.append("RUN_STARTED", {"trials": len(finished), "identity": measured, "sandbox": self.plan.sandbox})
            for data in finished:
                ledger.append("TRIAL_FINISHED", data)
            ledger.append("RESCORED", {"of": self.source.path.name, "scorers": sorted(self.again)})
            ledger.commit()
            seal(self.run, ledger, [case.id for case in self.cases])

    def _cases(self, warn: Warn) -> tuple[Case, ...]:
        """Return the cases whose stored trials can be judged by what the suite says now."""
        present = {case.id: case for case in self.request.checked.suite.cases}
        found: list[Case] = []
        for entry in read_object(self.source.manifest)["cases"]:
            case = present.get(entry["id"])
            stored = read_object(self.source.case(entry["id"]) / "input.json")
            if case is None or case.task != stored.get("task"):
                why = "the suite has it no more" if case is None else "its task is another one now"
                warn("W_REPLAY_CASE_ABSENT", f"{self.source.path.name}: {entry['id']}: {why}")
            else:
                found.append(case)
        if not found:
            raise UsageError(f"no trial of {self.source.path.name} belongs to this suite", hint="name its suite with --suite")
        return tuple(found)

    def _measured(self) -> tuple[Inputs, Record]:
        """Return the inputs, fixtures as they were and gold as it is, and what the run measures."""
        store = DirectoryStore(self.request.layout.store)
        suite = self.plan.suite
        gold = store.put_tree(suite.directory, skip=left_out(suite, self.request.layout))
        former: Any = self.former.get("inputs") or {"fixtures": {}, "diffs": {}, "files": None}
        inputs = Inputs.from_json({**former, "gold": gold})
        identity = self.plan.identity(inputs, store.tree(gold))
        return inputs, identity | {"fixtures_hash": self.former["suite_identity"]["fixtures_hash"]}

    def _trial(self, case: Case) -> Record:
        """Write the evidence of one trial with its new scores, and return its TRIAL_FINISHED."""
        former = self.source.case(case.id)
        digests = sealed_digests(former)
        if digests is None or changed_artifacts(former, digests):
            raise RunCorrupt(f"{former} is not what was sealed", hint=f"see: evalwright verify {self.source.path.name}")
        bundle = BundleWriter(self.run.case(case.id))
        for name in filter(self._is_kept, digests):
            bundle.write_bytes(name, (former / name).read_bytes())
        bundle.write_document("input.json", case.record)
        records, judging = self.grading.scores(case, former, bundle, self.again, self.cell.repeat)
        status, fault = folded(former, records)
        score = {"case_id": case.id, "status": status, "ok": status == "pass", "scores": records}
        bundle.write_document("score.json", score | ({"fault": fault} if fault else {}))
        facts: Record = {"attempt": 1, "status": status, "fault": fault}
        bundle.seal({"case_id": case.id, **facts})
        done = {"id": case.id, "status": status, "completed_ts": created_timestamp(self.request.environment)}
        write_document(bundle.directory / "state.json", done)
        runner = read_object(former / "runner.json")
        return {"case": case.id, **facts, "seal": bundle.digests["bundle.json"], "usage": None} | {
            "judging": judging,
            "duration_ms": runner.get("duration_ms"),
            "error": runner.get("error"),
        }

    def _is_kept(self, name: str) -> bool:
        """Tell whether an artifact of a trial stays as it is: all but the case, scores, and what new scores replace."""
        if name.startswith("scorers/"):
            fresh = [f"scorers/{entry}." for entry in self.again]
            return not name.endswith(".json") and not name.startswith(tuple(fresh))
        return name not in ("input.json", "score.json")


class _Grading:
    """The scorers and judges of one arm, started while the block runs."""

    def __init__(self, request: RunRequest, plan: Plan) -> None:
        tables: Mapping[str, Any] = plan.tables.get("judges", {})
        named = {name: PluginTable.from_json(table) for name, table in tables.items()}
        cache = request.layout.evals.resolve() / "cache" / "judge"
        judging = Judging(named, Limits(), cache, PriceTable.from_json(plan.tables.get("prices", ())))
        self.host = PluginHost(request.checked.registry, {"judges": named}, {"judge": judging.make})
        entries = [entry for entry, _ in request.checked.scorers]
        self.scorers: list[tuple[ScorerEntry, Scorer[Any]]] = [
            (entry, request.checked.registry.create("scorer", entry.table.use, entry.table.config, self.host))
            for entry in entries
        ]
        secrets = [*judge_secrets(tables.values()), *plan.suite.agent.redact_env_values]
        self.redactor = Redactor(credential_values(dict(os.environ), secrets), plan.suite.agent.redact_patterns)
        self.native = plan.suite.native
        asked = (reference for _, scorer in self.scorers for reference in scorer.uses())
        self.plugins = [*(scorer for _, scorer in self.scorers), *self.host.reach("judges", asked).values()]

    def __enter__(self) -> None:
        deadline = Deadline.after(START_SECONDS)
        for plugin in self.plugins:
            plugin.start(deadline)

    def __exit__(self, *_: object) -> None:
        deadline = Deadline.after(CLOSE_SECONDS)
        for plugin in self.plugins:
            with contextlib.suppress(Exception):
                plugin.close(deadline)
        self.host.close()

    def scores(self, case: Case, former: Path, bundle: BundleWriter, again: Collection[str], repeat: int) -> Scored:
        """Return the new records of one trial and what judges cost; records that are not pure, and what they keep, are in
        the bundle then."""
        trial = stored_trial(former, native=self.native)
        tallies: dict[str, Tally] = {}

        def context(entry: ScorerEntry) -> _StoredContext:
            tally = tallies.setdefault(entry.id, Tally())
            return _StoredContext(entry, self.host, tally, bundle, self.redactor, repeat)

        def spent(entry: ScorerEntry) -> Record | None:
            return tallies[entry.id].record() if entry.id in tallies else None

        stored = stored_records(former)
        records = apply_scorers(self.scorers, trial, case.expect, context=context, stored=stored, again=again, spent=spent)
        records = [self.redactor.json(record) for record in records]
        pure = {entry.id for entry, scorer in self.scorers if scorer.pure} | {"exit-code"}
        for record in records:
            name = record.get("id", record["scorer"])
            if name not in pure:
                bundle.write_document(f"scorers/{name}.json", record)
        return records, spent_on(tallies.values())


class _StoredContext:
    """What a scorer gets of a stored trial: judges, and no place to run anything in."""

    def __init__(
        self,
        entry: ScorerEntry,
        host: PluginHost,
        tally: Tally,
        bundle: BundleWriter,
        redactor: Redactor,
        repeat: int,
    ) -> None:
        self.entry = entry
        self.host = host
        self.tally = tally
        self.bundle = bundle
        self.redactor = redactor
        self.repeat = repeat
        self.deadline = Deadline.after(SCORE_SECONDS)

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Ask a judge of the suite."""
        judge: Judge[Any] = self.host.create(f"judges.{name}")
        try:
            reply = judge.ask(replace(request, repeat=self.repeat), self.deadline)
        except JudgeError as error:
            self.tally.failed(error.cost)
            raise
        self.tally.answered(reply)
        return reply

    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> AbstractContextManager[Session]:
        """Refuse: the workspace of a stored trial is gone."""
        raise TrialError("no_workspace", f"{self.entry.id} needs the workspace, which is gone: run the suite again")

    def environment(self, session: Session) -> Mapping[str, str]:
        """Refuse as :meth:`session` does."""
        raise TrialError("no_workspace", f"{self.entry.id} needs the workspace, which is gone: run the suite again")

    def keep(self, name: str, content: bytes) -> None:
        """Keep evidence beside the score."""
        self.bundle.write_bytes(f"scorers/{self.entry.id}.{name}", self.redactor.bytes(content))


def _settled(request: RunRequest, record: ExperimentRecord, runs: Sequence[_Rescored]) -> ExperimentOutcome:
    """Put all runs and their experiment in place."""
    first = runs[0]
    record.create(
        {
            "created_ts": created_timestamp(request.environment),
            "suite": {key: first.identity[key] for key in ("suite_name", "suite_hash", "fixtures_hash", "hidden_hash")},
            "arms": {run.plan.arm: arm_record(run.plan, run.identity) for run in runs},
            "primary": first.plan.suite.primary,
            "alpha": first.plan.suite.alpha,
            "scorers": digest_json(sorted(first.again)),
        }
    )
    links = [{"run": run.run_id, "relation": "rescore", "of": run.source.path.name, "evidence": "full"} for run in runs]
    record.log(
        *(("CELL_PLANNED", run.cell.as_json()) for run in runs),
        *(("RUN_LINKED", link) for link in links),
    )
    outcomes: list[RunOutcome] = []
    for run in runs:
        target = request.layout.run(run.run_id)
        os.rename(run.run.path, target.path)
        outcomes.append(RunOutcome(run=target, report=publish(target, request.layout)))
    return ExperimentOutcome(id=record.id, runs=outcomes)
