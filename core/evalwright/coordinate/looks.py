"""How often growing data were looked at: on record, since every look spends some of the chance of a false alarm."""

from __future__ import annotations

from evalwright.report import ExperimentView
from evalwright.rundir import Layout
from evalwright.rundir.experiment import ExperimentRecord

__all__ = ["take_look"]


def take_look(layout: Layout, view: ExperimentView, metric: str) -> int:
    """Return the number of this look at the experiment's arms, from 1, and put it on record when it is a new one.

    A look at the same trials by the same metric is the same look, and one at no trials is none.
    Raises ``DiskFull`` when it cannot be written.
    """
    if view.trials and (metric, len(view.trials)) not in view.looked:
        record = ExperimentRecord(layout.experiment(view.id))
        record.log(("LOOKED", {"metric": metric, "trials": len(view.trials)}))
    return view.look
