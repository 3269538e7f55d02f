"""An experiment as data, for ``report --format json``: null where something is unknown, both denominators, nothing folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.arms import arm_figures
from evalwright.report.figures.difference import Difference

__all__ = ["damage_data", "experiment_data"]


def experiment_data(
    view: ExperimentView, *, states: Mapping[str, str], comparisons: Sequence[Difference] = ()
) -> dict[str, Any]:
    """Return ``{experiment, suite, finished, arms[], runs[], totals, comparisons[], ...}``.

    ``states`` are those of the runs by id; one that was planned and never begun is ``pending``,
    one that cannot be read ``damaged``.
    """
    done = {run.id: run for run in view.runs}
    return {
        "experiment": view.id,
        "suite": view.suite,
        "finished": view.finished,
        "primary": view.primary,
        "alpha": view.alpha,
        "looks": view.looks,
        "arms": [arm.as_json(view.primary) for arm in arm_figures(view)],
        "runs": [
            {
                "run_id": cell.run_id,
                "arm": cell.arm,
                "repeat": cell.repeat,
                "state": "damaged" if cell.run_id in view.damaged else states.get(cell.run_id, "pending"),
                "case_count": cell.cases,
                "terminal": len(done[cell.run_id].trials) if cell.run_id in done else 0,
            }
            for cell in view.cells
        ],
        "damaged": damage_data(view),
        "totals": {"planned": view.planned, "missing": view.planned - len(view.trials), **view.totals},
        "comparisons": [difference._asdict() for difference in comparisons],
        "report_hash": None,
    }


def damage_data(view: ExperimentView) -> list[dict[str, str]]:
    """Return ``{run_id, reason}`` of each damaged run."""
    return [{"run_id": run_id, "reason": reason} for run_id, reason in view.damaged.items()]
