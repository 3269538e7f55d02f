"""Run a suite: plan, record, carry out, finish."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.coordinate.attempts import Attempts
from evalwright.coordinate.create import create_run, created_timestamp, default_run_id
from evalwright.coordinate.delivery import Delivery
from evalwright.coordinate.engine import Engine
from evalwright.coordinate.experiment import ExperimentRecord
from evalwright.coordinate.finalise import finalise
from evalwright.coordinate.guard import GuardedQueue
from evalwright.coordinate.inputs import Inputs, take_inputs
from evalwright.coordinate.lease import Lease, lease_state
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.request import RunRequest, select_cases
from evalwright.errors import RunBusy, RunConflict
from evalwright.hooks import Observers
from evalwright.interfaces import Deadline, QueueRun
from evalwright.judging import judge_variables
from evalwright.ledger import Ledger
from evalwright.processes import Stop
from evalwright.redaction import credential_names
from evalwright.registry import PluginHost, Registry
from evalwright.report import Projection, project
from evalwright.rundir import Layout, RunDirectory, check_id, disk_errors, read_object
from evalwright.store import DirectoryStore
from evalwright.worker import shut_down

__all__ = ["RunOutcome", "driving", "run_suite"]

START_SECONDS = 600.0
CLOSE_SECONDS = 30.0
Warn = Callable[[str, str], None]
ObserverSource = Callable[[Callable[[str], None]], Observers]
UNSANDBOXED = "the runner and its commands run as you, with your files and network; choose a sandbox to isolate them"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A finished run. ``existing`` says that it was finished before and nothing was executed."""

    run: RunDirectory
    report: Projection
    existing: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """Return ``{run_id, run_dir, run, report_hash}``."""
        data: dict[str, Any] = {
            "run_id": self.report.run_id,
            "run_dir": str(self.run.path),
            "run": self.report.summary,
            "report_hash": self.report.report_hash,
            "content_hash": self.report.content_hash,
        }
        return data | ({"existing": True} if self.existing else {})


def run_suite(request: RunRequest, *, stop: Stop, observers: ObserverSource, warn: Warn) -> RunOutcome:
    """Run the selected cases of a suite, or return the finished run of that id and identity.

    Raises ``NothingSelected``, ``CapabilityMissing``, ``RunConflict`` (the id is another run's), ``RunBusy`` (it is
    unfinished), ``Interrupted`` and ``DiskFull`` (both resumable), or what a plugin raises in preflight.
    """
    suite = request.checked.suite
    cases = select_cases(suite, request.selection)
    plan = make_plan(request.checked, cases, request.settings)
    created_timestamp(request.environment)
    run_id = default_run_id(request.layout, suite.name) if request.run_id is None else check_id(request.run_id)
    if not plan.isolated:
        warn("W_UNSANDBOXED_RUNNER", UNSANDBOXED)
    with disk_errors(request.layout.store):
        store = DirectoryStore(request.layout.store)
        store.tidy()
        inputs = take_inputs(suite, cases, store)
    identity = plan.identity(inputs, store.tree(inputs.gold))
    existing = None if request.replace else _existing(request.layout.run(run_id), identity)
    if existing:
        return existing
    experiment = _record_experiment(request, plan, identity, run_id)
    lease = create_run(request, plan, inputs, identity, run_id, experiment.id)
    experiment.log(
        "RUN_LINKED", {"run": run_id, "relation": _relation(request), "of": request.replayed_from, "evidence": "full"}
    )
    with driving(lease, request.layout, plan, inputs, stop, observers, warn, request.environment, request.settings) as engine:
        event = engine.emit("RUN_STARTED", {"trials": len(cases), "identity": identity, "sandbox": plan.sandbox})
        engine.commit()
        engine.observers.call("run_started", event=event, total=len(cases))
        engine.carry_out(cases)
        return RunOutcome(run=engine.run, report=finalise(engine))


@contextlib.contextmanager
def driving(
    lease: Lease,
    layout: Layout,
    plan: Plan,
    inputs: Inputs,
    stop: Stop,
    observers: ObserverSource,
    warn: Warn,
    environment: Mapping[str, str],
    settings: Any,
) -> Generator[Engine]:
    """Give the engine of a leased run; queue, plugins, ledger and lease are closed after the block, however it ends."""
    run = lease.run
    registry = Registry(Path())
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lease.release)
        queue = GuardedQueue(registry.create("queue", plan.queue, {}, PluginHost(registry)), plan.queue, run)
        with disk_errors(run.ledger):
            ledger = cleanup.enter_context(Ledger(run.ledger, run=run.path.name))
        if ledger.repaired:
            warn("W_LEDGER_TAIL_REPAIRED", "the ledger's last line was cut off; it was moved to ledger.jsonl.torn")
        cleanup.callback(shut_down)
        cleanup.callback(lambda: queue.close(Deadline.after(CLOSE_SECONDS)))
        width = settings.width
        queue.start(Deadline.after(START_SECONDS))
        queue.open(_queue_run(run, plan, width, os.environ))
        yield Engine(
            run=run,
            layout=layout,
            plan=plan,
            delivery=Delivery(run, layout, plan, inputs, queue.store()),
            queue=queue,
            ledger=ledger,
            lease=lease,
            observers=observers(lambda message: warn("W_PLUGIN_BROKEN", message)),
            stop=stop,
            width=width,
            warn=warn,
            environment=environment,
            attempts=Attempts(plan.suite.retry),
        )


def _queue_run(run: RunDirectory, plan: Plan, width: int, environment: Mapping[str, str]) -> QueueRun:
    """Return what the queue may know. Workers need the credentials too, since they take them out of what they keep."""
    agent = plan.suite.agent
    names = {*agent.env_allowlist, *agent.redact_env_values, *credential_names(environment)}
    names |= set(judge_variables(plan.tables.get("judges", {}).values()))
    return QueueRun(run_id=run.path.name, directory=run.queue.resolve(), width=width, environment=sorted(names))


def _existing(run: RunDirectory, identity: Mapping[str, Any]) -> RunOutcome | None:
    """Return the finished run of that id, or ``None`` when the id is free."""
    if not run.path.exists():
        return None
    name = run.path.name
    if not run.manifest.is_file():
        if not run.run_json.is_file():
            raise RunConflict(f"{run.path} exists and is no run", hint="choose another --run-id")
        if lease_state(run) == "held":
            raise RunBusy(f"run {name} is running", hint=f"watch it: evalwright status {name}")
        raise RunBusy(f"run {name} is unfinished", hint=f"go on with: evalwright run --resume {name}")
    known: Mapping[str, Any] = read_object(run.run_json).get("suite_identity", {}) if run.run_json.is_file() else {}
    differing = sorted(key for key in identity if known.get(key) != identity[key])
    if differing:
        raise RunConflict(
            f"run {name} measured something else: {', '.join(differing)} differ",
            hint="choose another --run-id",
            differing=differing,
        )
    return RunOutcome(run=run, report=project(run), existing=True)


def _record_experiment(request: RunRequest, plan: Plan, identity: Mapping[str, Any], run_id: str) -> ExperimentRecord:
    """Write the experiment's record before its first run, so that a crash loses no plan."""
    record = ExperimentRecord(request.layout.experiment(run_id))
    if not record.exists():
        record.create(
            {
                "created_ts": created_timestamp(request.environment),
                "suite": {key: identity[key] for key in ("suite_name", "suite_hash", "fixtures_hash", "hidden_hash")},
                "arms": {plan.arm: {"tables": dict(plan.tables), "arm_digest": identity["arm_digest"]}},
                "primary": plan.suite.primary,
                "plugin_lock": plan.lock,
            }
        )
    cells = {"arm": plan.arm, "repeat": plan.repeat, "cases": len(plan.cases), "run_id": run_id}
    record.log("CELL_PLANNED", cells)
    return record


def _relation(request: RunRequest) -> str:
    return "replay" if request.replayed_from else "executed"
