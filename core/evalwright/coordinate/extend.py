"""Go on with an experiment: finish what was interrupted, add arms and passes, refuse what would measure something else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.coordinate.budget import cost_limit, spent_by
from evalwright.coordinate.drive import ObserverSource, Part, Surroundings, Warn, drive
from evalwright.coordinate.inputs import Inputs, with_agent_files
from evalwright.coordinate.openfiles import make_room
from evalwright.coordinate.plan import Plan
from evalwright.coordinate.request import RunRequest, check_arms
from evalwright.coordinate.resume import as_started, completed, planned, record_of, taken
from evalwright.coordinate.run import ExperimentOutcome, RunOutcome, arm_record, created
from evalwright.coordinate.variables import moved_variables
from evalwright.errors import RunConflict, RunNotFound
from evalwright.processes import Stop
from evalwright.report import Projection
from evalwright.rundir import Layout, RunDirectory, check_id
from evalwright.rundir.experiment import Cell, ExperimentRecord
from evalwright.settings import Settings
from evalwright.store import DirectoryStore
from evalwright.suite import load_suite
from evalwright.workspace import remove_tree

__all__ = ["Extension", "resume_experiment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What a resume may add: arms of the suite as it was, passes up to ``repeats``, a limit in US dollars.

    ``force`` lets runs made by other versions of the plugins be compared with each other.
    """

    arms: Sequence[str] = ()
    repeats: int | None = None
    max_cost: float | None = None
    force: bool = False
    argv: Sequence[str] = field(default=())


def resume_experiment(
    name: str,
    layout: Layout,
    settings: Settings,
    *,
    extension: Extension,
    stop: Stop,
    observers: ObserverSource,
    warn: Warn,
    environment: Mapping[str, str],
) -> ExperimentOutcome:
    """Finish every run of an experiment, after adding the arms and passes that are asked for.

    Raises ``RunConflict`` when an arm or the suite is not what was recorded, or the plugins' versions changed, and otherwise
    as :func:`resume_run`.
    """
    record = ExperimentRecord(layout.experiment(name))
    around = Surroundings(layout=layout, settings=settings, stop=stop, observers=observers, warn=warn, environment=environment)
    return _Resumption(record, around, extension).carry_out()


class _Resumption:
    """One resume of an experiment. Runs that are missing are made from the snapshot of the first that exists."""

    def __init__(self, record: ExperimentRecord, around: Surroundings, extension: Extension) -> None:
        self.record = record
        self.extension = extension
        self.events = record.events()
        self.planned = record.cells(self.events)
        self.arms = record.arms(self.events)
        self.source = self._source(around.layout)
        self.source_record = record_of(self.source)
        self.around = replace(around, settings=as_started(around.settings, self.source_record))

    def carry_out(self) -> ExperimentOutcome:
        around, layout = self.around, self.around.layout
        cells = [*self.planned, *self._added()]
        pending = self._pending(cells)
        if not pending:
            around.warn("W_RESUME_NOTHING_PENDING", "every run of the experiment is finished")
            outcome = self._outcome(cells, {})
            remove_tree(self.record.queue, inside=self.record.directory)
            return outcome
        parts = self._parts(pending)
        if all(part.former is not None and len(part.done) == len(part.plan.cases) for part in parts):
            around.warn("W_RESUME_NOTHING_PENDING", "every trial was done; only the manifest was missing")
        reports = drive(
            parts,
            around,
            subject=self.record.id,
            queue_directory=self.record.queue if len(cells) > 1 else None,
            max_cost=cost_limit(self.record, self.extension.max_cost),
            spent=spent_by(layout, [cell.run_id for cell in cells if cell not in pending]),
        )
        return self._outcome(cells, reports)

    def _pending(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for cell in cells if not self.around.layout.run(cell.run_id).manifest.is_file()]

    def _outcome(self, cells: Sequence[Cell], reports: Mapping[str, Projection]) -> ExperimentOutcome:
        layout, settings = self.around.layout, self.around.settings
        runs = [
            RunOutcome(run=layout.run(cell.run_id), report=reports[cell.run_id])
            if cell.run_id in reports
            else RunOutcome(run=run, report=completed(run, layout, settings), existing=True)
            for cell in sorted(cells, key=lambda cell: cell.repeat)
            for run in [layout.run(cell.run_id)]
        ]
        return ExperimentOutcome(id=self.record.id, runs=runs)

    def _source(self, layout: Layout) -> RunDirectory:
        """Return a run of the experiment that exists: its snapshot is the suite of all."""
        for cell in self.planned:
            run = layout.run(cell.run_id)
            if run.run_json.is_file():
                return run
        raise RunNotFound(
            f"the experiment {self.record.id} has no run to go on from", hint="start it again with another --run-id"
        )

    def _added(self) -> list[Cell]:
        """Plan the cells that are asked for and missing, and write that down."""
        wanted = self.extension
        if not wanted.arms and not wanted.repeats:
            return []
        checked = load_suite(self.source.snapshot, fixtures=False)
        unknown = [arm for arm in wanted.arms if arm not in self.arms]
        arms = [*self.arms, *check_arms(checked.suite, unknown)]
        repeats = max([wanted.repeats or 1, *(cell.repeat for cell in self.planned)])
        present = {(cell.arm, cell.repeat) for cell in self.planned}
        count = self.planned[0].cases
        added = [
            Cell(repeat, arm, check_id(f"{self.record.id}.{arm}.{repeat}"), count)
            for repeat in range(1, repeats + 1)
            for arm in arms
            if (arm, repeat) not in present
        ]
        if not added:
            return []
        make_room(len(self._pending([*self.planned, *added])))
        new = {arm: arm_record(plan, self._identity(plan, inputs)) for arm in unknown for plan, inputs in [self._new(arm, 1)]}
        self.record.log(("EXTENDED", {"arms": new, "repeats": repeats}), *(("CELL_PLANNED", cell.as_json()) for cell in added))
        self.arms |= new
        return added

    def _parts(self, cells: Sequence[Cell]) -> list[Part]:
        """Lease every unfinished run, and make those that do not exist yet."""
        make_room(len(cells))
        parts: list[Part] = []
        try:
            for cell in cells:
                run = self.around.layout.run(cell.run_id)
                part = taken(run, record_of(run), self.around) if run.path.exists() else self._made(cell)
                parts.append(part)
                self._check(part)
            self.record.link(part.lease.run.path.name for part in parts)
        except BaseException:
            for part in parts:
                part.lease.release()
            raise
        return parts

    def _made(self, cell: Cell) -> Part:
        plan, inputs = self._new(cell.arm, cell.repeat)
        moved = moved_variables(self.source_record, plan.suite.agent, os.environ)
        plan = replace(plan, warnings=(*plan.warnings, *moved))
        request = RunRequest(
            checked=load_suite(self.source.snapshot, fixtures=False),
            layout=self.around.layout,
            settings=self.around.settings,
            argv=self.extension.argv,
            environment=self.around.environment,
            origin=self.source_record.get("suite_dir"),
        )
        return created(request, [(cell, plan, inputs, self._identity(plan, inputs))], self.record)[0]

    def _new(self, arm: str, repeat: int) -> tuple[Plan, Inputs]:
        """Return plan and inputs of a run that does not exist yet."""
        known = self.arms.get(arm)
        plan, inputs = planned(self.source, self.source_record, self.around.settings, arm, known["tables"] if known else None)
        store = DirectoryStore(self.around.layout.store)
        return replace(plan, repeat=repeat), with_agent_files(inputs, plan.suite, store)

    def _identity(self, plan: Plan, inputs: Inputs) -> dict[str, Any]:
        return plan.identity(inputs, DirectoryStore(self.around.layout.store).tree(inputs.gold))

    def _check(self, part: Part) -> None:
        """Refuse what would not be the same experiment any more."""
        known = self.arms[part.plan.arm]
        suite = {key: self.record.document["suite"].get(key) for key in ("suite_name", "suite_hash", "fixtures_hash")}
        differing = [key for key, value in suite.items() if part.identity.get(key) != value]
        if part.identity["arm_digest"] != known["arm_digest"]:
            differing.append(f"the arm {part.plan.arm}")
        if differing:
            raise RunConflict(
                f"the experiment {self.record.id} would not measure the same thing: {', '.join(differing)} differ",
                hint="start a new experiment",
                differing=differing,
            )
        if known.get("plugin_lock", part.plan.lock) == part.plan.lock:
            return
        message = f"the arm {part.plan.arm} was measured with other versions of evalwright or its plugins"
        if not self.extension.force:
            raise RunConflict(message, hint="install those versions, start a new experiment, or mix them with --force")
        self.around.warn("W_PLUGIN_DRIFT", message)
