"""How often growing data were looked at: on record, since every look spends some of the chance of a false alarm."""

from __future__ import annotations

from evalwright.report import ExperimentView
from evalwright.rundir import Layout
from evalwright.rundir.experiment import ExperimentRecord

__all__ = ["take_look"]


def take_look(layout: Layout, view: ExperimentView, metric: str) -> int:
    """Return the number of this look at the experiment's arms, from 1, and put it on record when it is a new one.

    A look at the same trials by the same metric is the same look. Raises ``DiskFull`` when it cannot be written.
    """
    record = ExperimentRecord(layout.experiment(view.id))
    seen = [event["data"] for event in record.events() if event["type"] == "LOOKED"]
    counts = list(dict.fromkeys(look.get("trials") for look in seen))
    trials = len(view.trials)
    if {"metric": metric, "trials": trials} not in [{key: look.get(key) for key in ("metric", "trials")} for look in seen]:
        record.log(("LOOKED", {"metric": metric, "trials": trials}))
    return counts.index(trials) + 1 if trials in counts else len(counts) + 1
