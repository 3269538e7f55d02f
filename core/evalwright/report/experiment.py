"""An experiment as its readers see it: arms, passes and all trials, finished or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.ledger import Event
from evalwright.model import DEFAULT_ALPHA
from evalwright.report.totals import rates
from evalwright.report.trials import RunRows, Trial, rows_of
from evalwright.rundir import Layout, find_run, is_experiment, read_object
from evalwright.rundir.experiment import Cell, ExperimentRecord, mismatch

__all__ = ["ExperimentView", "read_experiment", "read_subject"]


@dataclass(frozen=True, kw_only=True)
class ExperimentView:
    """What is known of an experiment now.

    ``damaged`` says of each run that cannot be read, or is not what was planned, why: none of its trials is among ``runs``.
    ``looked`` says by which metric somebody compared the arms before, and how many trials were finished then.
    """

    id: str
    suite: str
    primary: str | None
    alpha: float
    cells: Sequence[Cell]
    runs: Sequence[RunRows]
    looked: Sequence[tuple[str, int]] = ()
    max_cost: float | None = None
    damaged: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def arms(self) -> list[str]:
        """Return the names of the arms, in the order in which they were planned."""
        return list(dict.fromkeys(cell.arm for cell in self.cells))

    @property
    def looks(self) -> int:
        """Return how often the arms were compared, each time with more trials than before."""
        return len({trials for _, trials in self.looked})

    @property
    def look(self) -> int:
        """Return the number that a look at the arms as they are now has or would have, from 1."""
        counts = list(dict.fromkeys(trials for _, trials in self.looked))
        now = len(self.trials)
        return counts.index(now) + 1 if now in counts else len(counts) + 1

    @property
    def repeats(self) -> int:
        """Return the number of passes that were planned."""
        return max((cell.repeat for cell in self.cells), default=0)

    @cached_property
    def trials(self) -> list[Trial]:
        """Return every finished trial, pass by pass."""
        return [trial for run in self.runs for trial in run.trials]

    @property
    def planned(self) -> int:
        """Return the number of trials that were planned."""
        return sum(cell.cases for cell in self.cells)

    @property
    def finished(self) -> bool:
        """Tell whether every planned run is finished."""
        return len(self.runs) == len(self.cells) and all(run.finished for run in self.runs)

    @property
    def partial(self) -> bool:
        """Tell whether a planned run is unfinished; one that is damaged is not."""
        return len(self.runs) + len(self.damaged) < len(self.cells) or not all(run.finished for run in self.runs)

    @property
    def warnings(self) -> list[Mapping[str, str]]:
        """Return what nothing vouches for."""
        return [warning for run in self.runs for warning in run.warnings]

    def of_arm(self, arm: str) -> list[Trial]:
        """Return the trials of an arm."""
        return [trial for trial in self.trials if trial.arm == arm]

    def outcomes(self, arm: str, metric: str) -> dict[str, list[float]]:
        """Return ``{case: values}`` of an arm, one value per repeat that has one; cases without any are left out."""
        found: dict[str, list[float]] = {}
        for trial in self.of_arm(arm):
            value = trial.value(metric)
            if value is not None:
                found.setdefault(trial.case, []).append(value)
        return found

    @property
    def totals(self) -> dict[str, Any]:
        """Return the counts and rates over all trials."""
        return rates((trial.status, trial.fault) for trial in self.trials)


def read_experiment(layout: Layout, name: str) -> ExperimentView:
    """Return an experiment, with what can be read of it.

    Raises ``RunCorrupt`` and ``LedgerDamaged`` when its record is damaged, or every run that was made.
    """
    record = ExperimentRecord(layout.experiment(name))
    document, events = record.document, record.events()
    cells = record.cells(events)
    runs, damaged = _read_runs(layout, record, cells, events)
    return ExperimentView(
        id=record.id,
        suite=str(document.get("suite", {}).get("suite_name", "")),
        primary=document.get("primary"),
        alpha=float(document.get("alpha", DEFAULT_ALPHA)),
        cells=cells,
        runs=runs,
        damaged=damaged,
        looked=[(str(e["data"].get("metric")), int(e["data"].get("trials", 0))) for e in events if e["type"] == "LOOKED"],
        max_cost=record.max_cost(events),
    )


def _read_runs(
    layout: Layout, record: ExperimentRecord, cells: Sequence[Cell], events: Sequence[Event]
) -> tuple[list[RunRows], dict[str, str]]:
    """Return the runs that exist, and of those that are damaged why, by id."""
    arms, suite = record.arms(events), record.document.get("suite", {})
    runs: list[RunRows] = []
    damaged: dict[str, str] = {}
    for cell in cells:
        run = layout.run(cell.run_id)
        if not run.path.exists():
            continue
        try:
            if why := mismatch(read_object(run.run_json), cell, suite, arms):
                raise RunCorrupt(why, hint=f"see: evalwright verify {record.id}")
            runs.append(rows_of(run))
        except (RunCorrupt, LedgerDamaged) as error:
            if len(damaged) + 1 == len(cells):
                raise
            damaged[cell.run_id] = error.message
    return runs, damaged


def read_subject(layout: Layout, name: str | None, run_dir: str | None = None) -> ExperimentView:
    """Return the experiment of that id, or a run alone as one of a single cell. Raises ``RunNotFound`` or ``UsageError``."""
    if name is not None and run_dir is None and is_experiment(layout, name):
        return read_experiment(layout, name)
    run = find_run(layout, name, run_dir)
    rows = rows_of(run)
    cell = Cell(rows.repeat, rows.arm, rows.id, len(rows.planned))
    return ExperimentView(id=rows.id, suite=rows.suite, primary=None, alpha=DEFAULT_ALPHA, cells=[cell], runs=[rows])
