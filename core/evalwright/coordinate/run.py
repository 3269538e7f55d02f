"""Run a suite: plan, record, carry out, finish; one run, or one per arm and repeat."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.coordinate.clones import check_clones
from evalwright.coordinate.create import create_run, created_timestamp, default_run_id
from evalwright.coordinate.drive import ObserverSource, Part, Surroundings, Warn, drive
from evalwright.coordinate.inputs import Inputs, take_inputs, with_agent_files
from evalwright.coordinate.lease import lease_state
from evalwright.coordinate.openfiles import make_room
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.profile import profile_files
from evalwright.coordinate.recover import clear_leftovers
from evalwright.coordinate.request import RunRequest, check_arms, select_cases
from evalwright.coordinate.variables import moved_variables
from evalwright.errors import RunBusy, RunConflict
from evalwright.model import DEFAULT_ARM, Case
from evalwright.processes import Stop
from evalwright.report import Projection, project, rates
from evalwright.rundir import RunDirectory, check_id, disk_errors, identity_in_brief, read_object
from evalwright.rundir.experiment import Cell, ExperimentRecord
from evalwright.store import DirectoryStore

__all__ = ["ExperimentOutcome", "RunOutcome", "run_experiment", "run_suite"]

UNSANDBOXED = "the runner and its commands run as you, with your files and network; choose a sandbox to isolate them"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A finished run. ``existing`` says that it was finished before and nothing was executed."""

    run: RunDirectory
    report: Projection
    existing: bool = False

    @property
    def profile(self) -> dict[str, str]:
        """Return the paths of its profile's ``table``, ``picture`` and ``spans``, where it has one."""
        return profile_files(self.run)

    @property
    def data(self) -> dict[str, Any]:
        """Return ``{run_id, run_dir, run, report_hash, content_hash}``, and ``profile`` where there is one."""
        data: dict[str, Any] = {
            "run_id": self.report.run_id,
            "run_dir": str(self.run.path),
            "run": self.report.summary,
            "report_hash": self.report.report_hash,
            "content_hash": self.report.content_hash,
        }
        profile = self.profile
        return data | ({"profile": profile} if profile else {}) | ({"existing": True} if self.existing else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOutcome:
    """The finished runs of an experiment, pass by pass."""

    id: str
    runs: Sequence[RunOutcome]

    @property
    def existing(self) -> bool:
        """Tell whether nothing was executed."""
        return all(outcome.existing for outcome in self.runs)

    @property
    def data(self) -> dict[str, Any]:
        """Return what the only run says, or ``{experiment, runs, totals, report_hash: null}``."""
        if len(self.runs) == 1:
            return self.runs[0].data
        data = {
            "experiment": self.id,
            "runs": [outcome.data for outcome in self.runs],
            "totals": rates((case.status, case.fault) for outcome in self.runs for case in outcome.report.cases),
            "report_hash": None,
        }
        return data | ({"existing": True} if self.existing else {})


def run_suite(request: RunRequest, *, stop: Stop, observers: ObserverSource, warn: Warn) -> RunOutcome:
    """Run the selected cases of a suite once. Raises as :func:`run_experiment`."""
    return run_experiment(request, stop=stop, observers=observers, warn=warn).runs[0]


def run_experiment(request: RunRequest, *, stop: Stop, observers: ObserverSource, warn: Warn) -> ExperimentOutcome:
    """Run the selected cases of a suite once per arm and repeat, or return the finished runs of that id and identity.

    Raises ``NothingSelected``, ``CapabilityMissing``, ``RunConflict`` (the id is another run's), ``RunBusy`` (it is
    unfinished), ``UsageError`` for workspaces that cannot be made as asked for, ``Interrupted``, ``CostLimit`` and ``DiskFull``
    (all resumable), or what a plugin raises in preflight.
    """
    suite = request.checked.suite
    cases = select_cases(suite, request.selection)
    arms = check_arms(suite, request.arms) or [DEFAULT_ARM]
    plans = [make_plan(request.checked, cases, request.settings, arm=arm) for arm in arms]
    created_timestamp(request.environment)
    subject = default_run_id(request.layout, suite.name) if request.run_id is None else check_id(request.run_id)
    make_room(len(plans) * request.repeats)
    if not all(plan.isolated for plan in plans):
        warn("W_UNSANDBOXED_RUNNER", UNSANDBOXED)
    passes = _passes(request, plans, cases, subject)
    existing = None if request.replace else _existing(request, passes, subject)
    if existing:
        _tell_moved(existing, plans, warn)
        return existing
    for plan in plans:
        check_clones(plan, passes[0][2], DirectoryStore(request.layout.store))
    record = _recorded(request, passes, subject)
    around = Surroundings(
        layout=request.layout,
        settings=request.settings,
        stop=stop,
        observers=observers,
        warn=warn,
        environment=request.environment,
    )
    cells = [cell for cell, *_ in passes]
    parts = created(request, passes, record)
    del passes  # What they measure is on record now, a line per case.
    alone = len(parts) == 1
    reports = drive(parts, around, subject=subject, queue_directory=None if alone else record.queue, max_cost=request.max_cost)
    runs = [RunOutcome(run=request.layout.run(cell.run_id), report=reports[cell.run_id]) for cell in cells]
    return ExperimentOutcome(id=subject, runs=runs)


Pass = tuple[Cell, Plan, Inputs, dict[str, Any]]


def _passes(request: RunRequest, plans: Sequence[Plan], cases: Sequence[Case], subject: str) -> list[Pass]:
    """Return every run to make, with what it measures; the inputs are in the store then."""
    with disk_errors(request.layout.store):
        clear_leftovers(request.layout, request.settings.workspaces)
        store = DirectoryStore(request.layout.store)
        shared = take_inputs(plans[0].suite, cases, store, request.layout)
        inputs = {plan.arm: with_agent_files(shared, plan.suite, store) for plan in plans}
    gold = store.tree(shared.gold)
    found: list[Pass] = []
    alone = len(plans) * request.repeats == 1
    for repeat in range(1, request.repeats + 1):
        for plan in (replace(plan, repeat=repeat) for plan in plans):
            run_id = subject if alone else check_id(f"{subject}.{plan.arm}.{repeat}")
            cell = Cell(repeat, plan.arm, run_id, len(cases))
            found.append((cell, plan, inputs[plan.arm], plan.identity(inputs[plan.arm], gold)))
    return found


def created(request: RunRequest, passes: Sequence[Pass], record: ExperimentRecord) -> list[Part]:
    """Make the directory of every run, and return the runs leased; a failure gives all leases back."""
    parts: list[Part] = []
    try:
        for cell, plan, inputs, identity in passes:
            lease = create_run(request, plan, inputs, identity, cell.run_id, record.id)
            parts.append(Part(lease=lease, plan=plan, inputs=inputs, identity=identity_in_brief(identity)))
        record.link((cell.run_id for cell, *_ in passes), request.replayed_from)
    except BaseException:
        for part in parts:
            part.lease.release()
        raise
    return parts


def arm_record(plan: Plan, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the experiment keeps of an arm."""
    return {"tables": dict(plan.tables), "arm_digest": identity["arm_digest"], "plugin_lock": plan.lock}


def _recorded(request: RunRequest, passes: Sequence[Pass], subject: str) -> ExperimentRecord:
    """Write the experiment's record and its plan before the first run, so that a crash loses neither."""
    record = ExperimentRecord(request.layout.experiment(subject))
    _, plan, _, identity = passes[0]
    if not any(request.layout.run(name).path.exists() for name in record.runs()):
        record.discard()
    if not record.exists():
        record.create(
            {
                "created_ts": created_timestamp(request.environment),
                "suite": {key: identity[key] for key in ("suite_name", "suite_hash", "fixtures_hash", "hidden_hash")},
                "arms": {plan.arm: arm_record(plan, identity) for _, plan, _, identity in passes},
                "primary": plan.suite.primary,
                "alpha": plan.suite.alpha,
                "max_cost_usd": request.max_cost,
            }
        )
    record.log(*(("CELL_PLANNED", cell.as_json()) for cell, *_ in passes))
    return record


def _existing(request: RunRequest, passes: Sequence[Pass], subject: str) -> ExperimentOutcome | None:
    """Return the finished runs of that id, or ``None`` when the id is free.

    Raises ``RunBusy`` when one is unfinished, ``RunConflict`` when they measure something else.
    """
    record = ExperimentRecord(request.layout.experiment(subject))
    wanted = [cell.run_id for cell, *_ in passes]
    planned = record.runs() if record.exists() else []
    if not any(request.layout.run(name).path.exists() for name in {*wanted, *planned}):
        return None
    if planned and set(planned) != set(wanted):
        raise RunConflict(
            f"the experiment {subject} has other arms or repeats",
            hint=f"extend it: evalwright run --resume {subject} --repeats N; or choose another --run-id",
        )
    runs = [request.layout.run(name) for name in wanted]
    for run, (_, _, _, identity) in zip(runs, passes, strict=True):
        _check_finished(run, identity, subject)
    outcomes = [RunOutcome(run=run, report=project(run), existing=True) for run in runs]
    return ExperimentOutcome(id=subject, runs=outcomes)


def _tell_moved(existing: ExperimentOutcome, plans: Sequence[Plan], warn: Warn) -> None:
    """Say that the first run of an arm was made with other variables than a new one would get."""
    for outcome, plan in zip(existing.runs, plans, strict=False):
        for warning in moved_variables(read_object(outcome.run.run_json), plan.suite.agent, os.environ):
            warn(warning["code"], warning["message"])


def _check_finished(run: RunDirectory, identity: Mapping[str, Any], subject: str) -> None:
    name = run.path.name
    if not run.manifest.is_file():
        if run.path.exists() and not run.run_json.is_file():
            raise RunConflict(f"{run.path} exists and is no run", hint="choose another --run-id")
        if lease_state(run) == "held":
            raise RunBusy(f"run {name} is running", hint=f"watch it: evalwright status {subject}")
        raise RunBusy(f"run {name} is unfinished", hint=f"go on with: evalwright run --resume {subject}")
    known: Mapping[str, Any] = read_object(run.run_json).get("suite_identity", {}) if run.run_json.is_file() else {}
    differing = sorted(key for key in identity if known.get(key) != identity[key])
    if differing:
        raise RunConflict(
            f"run {name} measured something else: {', '.join(differing)} differ",
            hint="choose another --run-id",
            differing=differing,
        )
