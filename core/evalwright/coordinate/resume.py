"""Go on with runs that were interrupted, or extend an experiment: keep what the ledgers say is done, run the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_json, is_object
from evalwright.coordinate.budget import cost_limit, spent_by
from evalwright.coordinate.clones import check_clones
from evalwright.coordinate.drive import ObserverSource, Part, Surroundings, Warn, drive
from evalwright.coordinate.finalise import publish, tidy
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.recover import clear_leftovers, end_leftovers
from evalwright.coordinate.request import Selection, select_cases
from evalwright.coordinate.run import RunOutcome
from evalwright.coordinate.variables import moved_variables
from evalwright.errors import RunBusy, RunConflict, RunCorrupt, RunNotFound
from evalwright.ledger import Event, head_of, read_events
from evalwright.model import DEFAULT_ARM, PluginTable
from evalwright.processes import Stop, boot_id
from evalwright.report import Projection, project
from evalwright.report.projection import is_ours
from evalwright.rundir import (
    Layout,
    RunDirectory,
    changed_artifacts,
    identity_in_brief,
    read_object,
    sealed_digests,
)
from evalwright.rundir.experiment import ExperimentRecord
from evalwright.settings import MAX_JOBS, Settings
from evalwright.store import DirectoryStore
from evalwright.suite import load_suite
from evalwright.workspace import digest_file

__all__ = ["as_started", "completed", "finished_trials", "planned", "record_of", "resume_run", "taken"]


def resume_run(
    run: RunDirectory,
    layout: Layout,
    settings: Settings,
    *,
    stop: Stop,
    observers: ObserverSource,
    warn: Warn,
    environment: Mapping[str, str],
    max_cost: float | None = None,
) -> RunOutcome:
    """Finish a run; one that is finished already is returned as ``existing`` with W_RESUME_NOTHING_PENDING.

    Raises ``RunBusy`` when another process works on it, ``RunConflict`` when its snapshot is not what was started, and
    otherwise as :func:`run_experiment`.
    """
    around = Surroundings(layout=layout, settings=settings, stop=stop, observers=observers, warn=warn, environment=environment)
    if run.manifest.is_file():
        warn("W_RESUME_NOTHING_PENDING", "the run is finished")
        return RunOutcome(run=run, report=completed(run, layout, settings), existing=True)
    record = record_of(run)
    around = replace(around, settings=as_started(settings, record))
    part = taken(run, record, around)
    if len(part.done) == len(part.plan.cases):
        warn("W_RESUME_NOTHING_PENDING", "every trial was done; only the manifest was missing")
    experiment = ExperimentRecord(layout.experiment(record.get("experiment", {}).get("id", run.path.name)))
    others = [name for name in experiment.runs() if name != run.path.name]
    if experiment.exists():
        experiment.link([run.path.name], record.get("replayed_from"))
    limit, spent = cost_limit(experiment, max_cost), spent_by(layout, others)
    reports = drive([part], around, subject=run.path.name, max_cost=limit, spent=spent)
    return RunOutcome(run=run, report=reports[run.path.name])


def taken(run: RunDirectory, record: Mapping[str, Any], around: Surroundings) -> Part:
    """Return an unfinished run, leased; what its former owner left alive is ended."""
    lease = _take(run, around.settings, around.warn)
    try:
        end_leftovers(run, around.warn)
        clear_leftovers(around.layout, around.settings.workspaces)
        cell, tables = _cell_of(run, record)
        settings = as_started(around.settings, record)
        plan, inputs = planned(run, record, settings, cell.get("arm", DEFAULT_ARM), tables)
        plan = replace(plan, repeat=cell.get("repeat", 1))
        _check_identity(run, record, plan, inputs, DirectoryStore(around.layout.store))
        check_clones(plan, inputs, DirectoryStore(around.layout.store))
        events = read_events(run.ledger) if run.ledger.is_file() else []
        if not head_of(run.ledger).is_file() and finished_trials(events):
            message = "the ledger's head record is gone: nobody can tell whether events were cut off its end"
            around.warn("W_LEDGER_UNVOUCHED", message)
        done = _kept(run, events, around.warn)
        warnings = moved_variables(record, plan.suite.agent, os.environ) if len(done) < len(plan.cases) else []
    except BaseException:
        lease.release()
        raise
    return Part(
        lease=lease,
        plan=plan,
        inputs=inputs,
        identity=identity_in_brief(record["suite_identity"]),
        former=events,
        done=done,
        warnings=warnings,
    )


def _cell_of(run: RunDirectory, record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the run's place in its experiment, and the tables that it was started with. Raises ``RunCorrupt``."""
    resolved: Any = record.get("resolved")
    tables = resolved.get("tables") if is_object(resolved) else None
    cell: Any = record.get("experiment") or {}
    if not is_object(tables) or not is_object(cell):
        raise RunCorrupt(f"{run.run_json} does not say what was run", hint="restore the file, or start a new run")
    return cell, tables


def as_started(settings: Settings, record: Mapping[str, Any]) -> Settings:
    """Return the settings with the queue, slots and jobs that the run was started with, unless others are asked for now."""
    execution = record.get("execution", {})
    former, jobs = execution.get("queue"), execution.get("jobs")
    if not settings.outranks_suite("jobs") and isinstance(jobs, int) and 1 <= jobs <= MAX_JOBS:
        settings = settings._replace(jobs=jobs)
    queue = settings.queue or former
    slots = settings.slots or (record.get("resolved", {}).get("slots") if queue == former else None)
    return settings._replace(queue=queue, slots=slots)


def _take(run: RunDirectory, settings: Settings, warn: Warn) -> Lease:
    lease = Lease.take(run, settings.reservation_ttl)
    if run.manifest.is_file():
        lease.release()
        raise RunBusy(f"run {run.path.name} was finished by another process just now", hint="ask for its report")
    if lease.reclaimed:
        warn("W_RESERVATION_RECLAIMED", "the run's former owner is gone; its reservation was taken over")
    return lease


def completed(run: RunDirectory, layout: Layout, settings: Settings) -> Projection:
    """Return the verdicts of a finished run; what a crash right after its manifest left undone is done now."""
    if run.report.is_file() and not run.reservation.is_file():
        return project(run)
    lease = Lease.take(run, settings.reservation_ttl)
    try:
        clear_leftovers(layout, settings.workspaces)
        tidy(run)
        return publish(run, layout)
    finally:
        lease.release()


def finished_trials(events: list[Event]) -> dict[str, Event]:
    """Return the last TRIAL_FINISHED of each case."""
    return {event["data"]["case"]: event for event in events if event["type"] == "TRIAL_FINISHED"}


def record_of(run: RunDirectory) -> dict[str, Any]:
    """Return ``run.json`` of a run of ours. Raises ``RunNotFound`` or ``RunCorrupt``."""
    if not run.run_json.is_file():
        raise RunNotFound(f"{run.path} has no run.json", hint="list runs: evalwright jobs list")
    record: dict[str, Any] = read_object(run.run_json)
    if not is_ours(run, record):
        raise RunCorrupt(f"run {run.path.name} was started by another tool", hint="finish it with the tool that started it")
    return record


def planned(
    run: RunDirectory, record: Mapping[str, Any], settings: Settings, arm: str, tables: Mapping[str, Any] | None
) -> tuple[Plan, Inputs]:
    """Return plan and inputs of an arm as they were, from a run's own record and snapshot.

    ``tables`` are those that the arm was measured with; ``None`` for one that is new.
    """
    try:
        resolved = record["resolved"]
        chosen = [case_id for case_id, _ in record["suite_identity"]["cases"]]
        checked = load_suite(run.snapshot, fixtures=False).arm(arm)
        cases = select_cases(checked.suite, Selection(cases=chosen))
        former = settings._replace(timeout=None, sandbox=None, keep_workspace=resolved["keep_workspace"])
        former = former._replace(paranoid=settings.paranoid or resolved.get("paranoid", False))
        former = former.overridden(timeout=resolved["timeout"], sandbox=None if tables else resolved.get("sandbox"))
        suite = checked.suite
        if tables is not None:
            suite = replace(suite, sandbox=PluginTable.from_json(tables["sandbox"]), arms={})
        plan = make_plan(replace(checked, suite=suite), cases, former, arm=arm)
        if tables is not None:
            agent = replace(checked.suite.agent, timeout=tables["agent"]["timeout"])
            plan = replace(plan, tables=tables, suite=replace(checked.suite, agent=agent))
        return plan, Inputs.from_json(record["inputs"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunCorrupt(f"{run.run_json} lacks {error}", hint="restore the file, or start a new run") from error


def _check_identity(run: RunDirectory, record: Mapping[str, Any], plan: Plan, inputs: Inputs, store: DirectoryStore) -> None:
    now = plan.identity(inputs, store.tree(inputs.gold))
    differing = [key for key, value in record["suite_identity"].items() if digest_json(now.get(key)) != digest_json(value)]
    if differing:
        raise RunConflict(
            f"the snapshot of run {run.path.name} is not what was started: {', '.join(differing)} differ",
            hint="restore the run directory, or start a new run",
            differing=differing,
        )


def _kept(run: RunDirectory, events: list[Event], warn: Warn) -> set[str]:
    """Return the finished trials to keep; those whose bundle is not what was sealed run again, with a warning.

    All bundles are verified when the machine was restarted since, the seal alone otherwise.
    """
    rebooted = any(
        event["data"].get("boot_id") not in (None, boot_id()) for event in events if event["type"] == "TRIAL_ATTEMPT"
    )
    kept: set[str] = set()
    for case_id, event in finished_trials(events).items():
        directory = run.case(case_id)
        whole = _seal(directory) == event["data"].get("seal")
        if whole and rebooted:
            whole = not changed_artifacts(directory, sealed_digests(directory) or {})
        if whole:
            kept.add(case_id)
        else:
            warn("W_TRIAL_REDONE", f"{case_id}: its artifacts did not survive; it runs again")
    return kept


def _seal(directory: Path) -> str | None:
    try:
        return digest_file(f"{directory}/bundle.json")
    except OSError:
        return None
