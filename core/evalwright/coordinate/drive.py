"""Carry out runs together: open the queue once, give each run its engine, finish each as soon as it is done."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.coordinate.attempts import Attempts
from evalwright.coordinate.budget import Budget, spent_in
from evalwright.coordinate.delivery import Delivery
from evalwright.coordinate.dispatch import Dispatcher
from evalwright.coordinate.engine import Engine
from evalwright.coordinate.finalise import finalise
from evalwright.coordinate.guard import GuardedQueue
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan
from evalwright.coordinate.profile import Profile
from evalwright.hooks import Observers
from evalwright.interfaces import Deadline, QueueRun
from evalwright.judging import judge_variables
from evalwright.ledger import Event, Ledger
from evalwright.model import Case
from evalwright.processes import Stop
from evalwright.redaction import credential_names
from evalwright.registry import PluginHost, Registry
from evalwright.report import Projection
from evalwright.rundir import Layout, disk_errors
from evalwright.settings import Settings
from evalwright.worker import shut_down
from evalwright.workspace import remove_tree

__all__ = ["ObserverSource", "Part", "Surroundings", "Warn", "drive"]

START_SECONDS = 600.0
CLOSE_SECONDS = 30.0
Warn = Callable[[str, str], None]
ObserverSource = Callable[[Callable[[str], None]], Observers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all runs of a call share."""

    layout: Layout
    settings: Settings
    stop: Stop
    observers: ObserverSource
    warn: Warn
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One leased run to carry out; ``identity`` is what it measures, in brief.

    ``former`` are the events of a run that is resumed, ``done`` its finished trials, ``warnings`` of what
    casts doubt on the others.
    """

    lease: Lease
    plan: Plan
    inputs: Inputs
    identity: Mapping[str, Any]
    former: Sequence[Event] | None = None
    done: Collection[str] = ()
    warnings: Sequence[Mapping[str, str]] = ()


def drive(
    parts: Sequence[Part],
    around: Surroundings,
    *,
    subject: str,
    queue_directory: Path | None = None,
    max_cost: float | None = None,
    spent: float = 0.0,
) -> dict[str, Projection]:
    """Carry out runs under one schedule, and return their verdicts by run id; queue, ledgers and leases are closed after.

    ``subject`` is the id that a user resumes; ``queue_directory`` the queue's place, by default in the only run.
    ``max_cost`` and ``spent`` are in US dollars. Raises as :meth:`Dispatcher.carry_out`.
    """
    reports: dict[str, Projection] = {}
    with contextlib.ExitStack() as cleanup:
        for part in parts:
            cleanup.callback(part.lease.release)
        place = queue_directory or parts[0].lease.run.queue
        queue = _queue(parts, place, subject)
        budget = Budget(max_cost, spent + sum(spent_in(part.former or ()) for part in parts))
        cleanup.callback(_tell_unknown, budget, around.warn)
        ledgers = [_ledger(part, around.warn, cleanup) for part in parts]
        cleanup.callback(shut_down)
        cleanup.callback(lambda: queue.close(Deadline.after(CLOSE_SECONDS)))
        _open(queue, parts, around, place, subject)
        observers = around.observers(lambda message: around.warn("W_PLUGIN_BROKEN", message))
        engines = [_engine(part, ledger, queue, budget, observers, around) for part, ledger in zip(parts, ledgers, strict=True)]

        def finish(engine: Engine) -> None:
            if len(reports) + 1 == len(engines):
                queue.close(Deadline.after(CLOSE_SECONDS))
            reports[engine.id] = finalise(engine)

        dispatcher = Dispatcher(
            queue, engines, width=around.settings.width, stop=around.stop, budget=budget, subject=subject, finish=finish
        )
        _announce(observers, subject, engines)
        dispatcher.carry_out([_begin(engine, part, dispatcher) for engine, part in zip(engines, parts, strict=True)])
        if queue_directory is not None:
            remove_tree(queue_directory, inside=queue_directory.parent)
        observers.call("experiment_finished", experiment=subject)
    return reports


def _tell_unknown(budget: Budget, warn: Warn) -> None:
    """Say that a limit was not held against everything."""
    if budget.limit is not None and budget.unknown:
        attempts = "1 attempt" if budget.unknown == 1 else f"{budget.unknown} attempts"
        warn("W_USAGE_UNKNOWN", f"{attempts} did not tell all that they cost: --max-cost counts what is known")


def _queue(parts: Sequence[Part], place: Path, subject: str) -> GuardedQueue:
    name = parts[0].plan.queue
    registry = Registry(Path())
    return GuardedQueue(registry.create("queue", name, {}, PluginHost(registry)), name, place.parent, subject)


def _open(queue: GuardedQueue, parts: Sequence[Part], around: Surroundings, place: Path, subject: str) -> None:
    """Start the queue. Workers need the credentials too, since they take them out of what they keep."""
    names = set(credential_names(os.environ))
    for part in parts:
        names |= {*part.plan.suite.agent.env_allowlist, *part.plan.suite.agent.redact_env_values}
        names |= set(judge_variables(part.plan.tables.get("judges", {}).values()))
    queue.start(Deadline.after(START_SECONDS))
    queue.open(QueueRun(run_id=subject, directory=place.resolve(), width=around.settings.width, environment=sorted(names)))


def _ledger(part: Part, warn: Warn, cleanup: contextlib.ExitStack) -> Ledger:
    run = part.lease.run
    with disk_errors(run.ledger):
        ledger = cleanup.enter_context(Ledger(run.ledger, run=run.path.name))
    if ledger.repaired:
        warn("W_LEDGER_TAIL_REPAIRED", "the ledger's last line was cut off; it was moved to ledger.jsonl.torn")
    return ledger


def _engine(
    part: Part, ledger: Ledger, queue: GuardedQueue, budget: Budget, observers: Observers, around: Surroundings
) -> Engine:
    attempts = Attempts(part.plan.suite.retry)
    attempts.remember(part.former or ())
    run = part.lease.run
    return Engine(
        run=run,
        layout=around.layout,
        plan=part.plan,
        delivery=Delivery(run, around.layout, part.plan, part.inputs, queue.store()),
        ledger=ledger,
        lease=part.lease,
        observers=observers,
        warn=around.warn,
        environment=around.environment,
        attempts=attempts,
        spend=budget.note,
        profile=Profile(run) if part.plan.profile else None,
    )


def _announce(observers: Observers, subject: str, engines: Sequence[Engine]) -> None:
    runs = [
        {"run": engine.id, "arm": engine.plan.arm, "repeat": engine.plan.repeat, "trials": len(engine.plan.cases)}
        for engine in engines
    ]
    observers.call("experiment_started", experiment=subject, runs=runs)


def _begin(engine: Engine, part: Part, dispatcher: Dispatcher) -> tuple[Engine, Sequence[Case]]:
    """Write down that a run begins or goes on, and return what is to be submitted of it."""
    plan = engine.plan
    if part.former is None:
        data = {"trials": len(plan.cases), "identity": dict(part.identity), "sandbox": plan.sandbox}
        event = engine.emit("RUN_STARTED", data)
        engine.commit()
        engine.observers.call("run_started", event=event, total=len(plan.cases))
        return engine, plan.cases
    pending = [case for case in plan.cases if case.id not in part.done]
    flying = dispatcher.adopt(engine, pending)
    _clear(engine, pending, flying)
    data = {"pending": len(pending), "done": len(part.done), "adopted": sorted(flying), "sandbox": plan.sandbox}
    event = engine.emit("RUN_RESUMED", data | ({"warnings": list(part.warnings)} if part.warnings else {}))
    engine.commit()
    engine.observers.call("run_resumed", event=event, total=len(plan.cases), done=len(part.done))
    return engine, [case for case in pending if case.id not in flying]


def _clear(engine: Engine, pending: Sequence[Case], flying: Collection[str]) -> None:
    """Remove what was begun of the trials that will run again."""
    run = engine.run
    keep = {run.attempt(case_id, engine.attempts.last(case_id)) for case_id in flying}
    begun = {path.name for path in run.cases.iterdir()} if run.cases.is_dir() else set[str]()
    for case in pending:
        if case.id in begun:
            remove_tree(run.case(case.id), inside=run.cases)
    for path in run.attempts.iterdir() if run.attempts.is_dir() else ():
        if path not in keep:
            remove_tree(path, inside=run.path)
