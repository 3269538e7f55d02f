"""What may be removed of experiments, and what must stay."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.rundir.experiment import ExperimentRecord
from evalwright.rundir.layout import RUN_ID, Layout

__all__ = ["discard_experiment", "empty_experiments", "needed_runs"]

YOUNG_SECONDS = 60.0


def needed_runs(layout: Layout, names: Collection[str]) -> set[str]:
    """Return those of the named runs that an experiment needs: one of which another run exists that is not named."""
    needed: set[str] = set()
    for record, runs in _records(layout):
        if runs is None:
            needed |= {name for name in names if name == record.id or name.startswith(f"{record.id}.")}
        elif any(name not in names and layout.run(name).path.exists() for name in runs):
            needed |= runs & set(names)
    return needed


def empty_experiments(layout: Layout, without: Collection[str] = ()) -> list[str]:
    """Return the experiments of which no run exists but those in ``without``.

    One that was written within the last minute is left out, since its runs may be about to be made; so is one that cannot
    be read.
    """
    old = time.time() - YOUNG_SECONDS
    return [
        record.id
        for record, runs in _records(layout)
        if runs is not None
        and not any(name not in without and layout.run(name).path.exists() for name in runs)
        and record.directory.stat().st_mtime < old
    ]


def discard_experiment(layout: Layout, name: str) -> bool:
    """Remove the record of an experiment without runs; tell whether it is gone."""
    if name not in empty_experiments(layout):
        return False
    record = ExperimentRecord(layout.experiment(name))
    record.discard()
    return not record.directory.exists()


def _records(layout: Layout) -> Iterator[tuple[ExperimentRecord, set[str] | None]]:
    """Yield every experiment with all runs that it planned or linked, ``None`` where that cannot be known."""
    if not layout.experiments.is_dir():
        return
    for path in sorted(layout.experiments.iterdir()):
        record = ExperimentRecord(path)
        if not RUN_ID.fullmatch(path.name) or path.is_symlink() or not record.exists():
            continue
        yield record, _runs(record)


def _runs(record: ExperimentRecord) -> set[str] | None:
    try:
        events = record.events()
        runs = {str(event["data"]["run"]) for event in events if event["type"] == "RUN_LINKED"}
        runs |= {cell.run_id for cell in record.cells(events)}
    except (LedgerDamaged, RunCorrupt, KeyError, OSError):
        return None
    return runs if all(RUN_ID.fullmatch(name) for name in runs) else None
