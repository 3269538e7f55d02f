"""Go on with a run that was interrupted: keep what the ledger says is done, run the rest again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.canonical import digest_json
from evalwright.coordinate.clones import check_clones
from evalwright.coordinate.engine import Engine
from evalwright.coordinate.finalise import finalise, publish, tidy
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.recover import clear_leftovers, end_leftovers
from evalwright.coordinate.request import Selection, select_cases
from evalwright.coordinate.run import ObserverSource, RunOutcome, Warn, driving
from evalwright.errors import RunBusy, RunConflict, RunCorrupt, RunNotFound
from evalwright.ledger import Event, head_of, read_events
from evalwright.model import Case, PluginTable
from evalwright.processes import Stop, boot_id
from evalwright.report import Projection, project
from evalwright.report.projection import OUR_FORMAT
from evalwright.rundir import Layout, RunDirectory, changed_artifacts, read_object, sealed_digests
from evalwright.settings import Settings
from evalwright.store import DirectoryStore
from evalwright.suite import load_suite
from evalwright.workspace import digest_file, remove_tree

__all__ = ["finished_trials", "resume_run"]


def resume_run(
    run: RunDirectory,
    layout: Layout,
    settings: Settings,
    *,
    stop: Stop,
    observers: ObserverSource,
    warn: Warn,
    environment: Mapping[str, str],
) -> RunOutcome:
    """Finish a run; one that is finished already is returned as ``existing`` with W_RESUME_NOTHING_PENDING.

    Raises ``RunBusy`` when another process works on it, ``RunConflict`` when its snapshot is not what was started, and
    otherwise as :func:`run_suite`.
    """
    if run.manifest.is_file():
        warn("W_RESUME_NOTHING_PENDING", "the run is finished")
        return RunOutcome(run=run, report=_completed(run, layout, settings), existing=True)
    record = _record(run)
    settings = _as_started(settings, record)
    lease = _take(run, settings, warn)
    try:
        end_leftovers(run, warn)
        clear_leftovers(layout, settings.workspaces)
        plan, inputs = _planned(run, record, settings)
        _check_identity(run, record, plan, inputs, DirectoryStore(layout.store))
        check_clones(plan, inputs, DirectoryStore(layout.store))
        events = read_events(run.ledger) if run.ledger.is_file() else []
        if not head_of(run.ledger).is_file() and finished_trials(events):
            warn("W_LEDGER_UNVOUCHED", "the ledger's head record is gone: nobody can tell whether events were cut off its end")
        done = _kept(run, events, warn)
    except BaseException:
        lease.release()
        raise
    with driving(lease, layout, plan, inputs, stop, observers, warn, environment, settings) as engine:
        engine.attempts.remember(events)
        _go_on(engine, done, warn)
        return RunOutcome(run=run, report=finalise(engine))


def _as_started(settings: Settings, record: Mapping[str, Any]) -> Settings:
    """Return the settings with the queue and the slots that the run was started with, unless others are asked for now."""
    former = record.get("execution", {}).get("queue")
    queue = settings.queue or former
    slots = settings.slots or (record.get("resolved", {}).get("slots") if queue == former else None)
    return replace(settings, queue=queue, slots=slots)


def _take(run: RunDirectory, settings: Settings, warn: Warn) -> Lease:
    lease = Lease.take(run, settings.reservation_ttl)
    if run.manifest.is_file():
        lease.release()
        raise RunBusy(f"run {run.path.name} was finished by another process just now", hint="ask for its report")
    if lease.reclaimed:
        warn("W_RESERVATION_RECLAIMED", "the run's former owner is gone; its reservation was taken over")
    return lease


def _go_on(engine: Engine, done: Collection[str], warn: Warn) -> None:
    """Carry out what is left: first what the queue still has, then the rest."""
    plan = engine.plan
    pending = [case for case in plan.cases if case.id not in done]
    flying = engine.adopt(pending)
    _clear(engine.run, pending, engine, flying)
    data = {"pending": len(pending), "done": len(done), "adopted": sorted(flying), "sandbox": plan.sandbox}
    event = engine.emit("RUN_RESUMED", data)
    engine.commit()
    engine.observers.call("run_resumed", event=event, total=len(plan.cases), done=len(done))
    if not pending:
        warn("W_RESUME_NOTHING_PENDING", "every trial was done; only the manifest was missing")
    engine.carry_out([case for case in pending if case.id not in flying])


def _completed(run: RunDirectory, layout: Layout, settings: Settings) -> Projection:
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


def _clear(run: RunDirectory, pending: Sequence[Case], engine: Engine, flying: Collection[str]) -> None:
    """Remove what was begun of the trials that will run again."""
    keep = {run.attempt(case_id, engine.attempts.last(case_id)) for case_id in flying}
    for case in pending:
        remove_tree(run.case(case.id), inside=run.cases)
    for path in run.attempts.iterdir() if run.attempts.is_dir() else ():
        if path not in keep:
            remove_tree(path, inside=run.path)


def finished_trials(events: list[Event]) -> dict[str, Event]:
    """Return the last TRIAL_FINISHED of each case."""
    return {event["data"]["case"]: event for event in events if event["type"] == "TRIAL_FINISHED"}


def _record(run: RunDirectory) -> dict[str, Any]:
    if not run.run_json.is_file():
        raise RunNotFound(f"{run.path} has no run.json", hint="list runs: evalwright jobs list")
    record: dict[str, Any] = read_object(run.run_json)
    if record.get("format") != OUR_FORMAT:
        raise RunCorrupt(
            f"run {run.path.name} was started by another tool or version",
            hint="finish it with the tool that started it",
        )
    return record


def _planned(run: RunDirectory, record: Mapping[str, Any], settings: Settings) -> tuple[Plan, Inputs]:
    """Return the plan and inputs as they were, from the run's own record and snapshot."""
    try:
        resolved = record["resolved"]
        chosen = [case_id for case_id, _ in record["suite_identity"]["cases"]]
        checked = load_suite(run.snapshot, fixtures=False)
        cases = select_cases(checked.suite, Selection(cases=chosen))
        former = replace(settings, timeout=resolved["timeout"], keep_workspace=resolved["keep_workspace"], sandbox=None)
        former = replace(former, paranoid=settings.paranoid or resolved.get("paranoid", False))
        chosen_then = replace(checked.suite, sandbox=PluginTable.from_json(resolved["tables"]["sandbox"]))
        plan = make_plan(replace(checked, suite=chosen_then), cases, former)
        plan = replace(plan, tables=resolved["tables"], suite=checked.suite)
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
        whole = _seal(run, case_id) == event["data"].get("seal")
        if whole and rebooted:
            whole = not changed_artifacts(directory, sealed_digests(directory) or {})
        if whole:
            kept.add(case_id)
        else:
            warn("W_TRIAL_REDONE", f"{case_id}: its artifacts did not survive; it runs again")
    return kept


def _seal(run: RunDirectory, case_id: str) -> str | None:
    try:
        return digest_file(run.case(case_id) / "bundle.json")
    except OSError:
        return None
