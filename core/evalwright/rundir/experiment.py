"""The experiment's record: what is compared with what, written before the first run, and its own event log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import RunCorrupt
from evalwright.ledger import Event, Ledger, read_events
from evalwright.rundir.documents import disk_errors, read_object, write_document

__all__ = ["Cell", "ExperimentRecord", "mismatch"]

PATIENCE_SECONDS = 10.0


class Cell(NamedTuple):
    """One run of an experiment: a pass of an arm over the suite."""

    repeat: int
    arm: str
    run_id: str
    cases: int

    def as_json(self) -> dict[str, Any]:
        """Return what CELL_PLANNED says."""
        return {"arm": self.arm, "repeat": self.repeat, "cases": self.cases, "run_id": self.run_id}


class ExperimentRecord:
    """``experiment.json`` (arms, suite hash, analysis plan) and ``ledger.jsonl`` (cells, runs, looks)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def id(self) -> str:
        """Return the experiment's id."""
        return self.directory.name

    @property
    def queue(self) -> Path:
        """Return the directory of the queue that serves all runs; gone when they are finished."""
        return self.directory / ".queue"

    @property
    def document(self) -> dict[str, Any]:
        """Return ``experiment.json``. Raises ``RunCorrupt``."""
        content: dict[str, Any] = read_object(self.directory / "experiment.json")
        return content

    def exists(self) -> bool:
        """Tell whether the record was written."""
        return (self.directory / "experiment.json").is_file()

    def create(self, document: Mapping[str, Any]) -> None:
        """Write the record."""
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        write_document(self.directory / "experiment.json", {"schema_version": 1, "id": self.id, **document})

    def discard(self) -> None:
        """Remove a record of which no run exists: a plan that never began, or whose runs were removed."""
        from evalwright.workspace import remove_tree

        if self.directory.is_dir():
            remove_tree(self.directory, inside=self.directory.parent)

    def log(self, *events: tuple[str, Mapping[str, Any]]) -> None:
        """Write events ``(type, data)``, all in one durable commit."""
        with (
            disk_errors(self.directory),
            Ledger(self.directory / "ledger.jsonl", run=self.id, patience=PATIENCE_SECONDS) as ledger,
        ):
            for name, data in events:
                ledger.append(name, data)
            ledger.commit()

    def link(self, runs: Iterable[str], of: str | None = None) -> None:
        """Put executed runs on record, each once. ``of`` is the run whose failures they do again."""
        known = self.linked()
        relation = {"relation": "replay" if of else "executed", "of": of, "evidence": "full"}
        links = [("RUN_LINKED", {"run": run, **relation}) for run in runs if run not in known]
        if links:
            self.log(*links)

    def linked(self, events: Sequence[Event] | None = None) -> set[str]:
        """Return the ids of the runs that were made, whether they still exist or not."""
        return {str(e["data"]["run"]) for e in (self.events() if events is None else events) if e["type"] == "RUN_LINKED"}

    def events(self) -> list[Event]:
        """Return all events, verified. Raises ``LedgerDamaged``."""
        path = self.directory / "ledger.jsonl"
        return read_events(path) if path.is_file() else []

    def arms(self, events: Sequence[Event] | None = None) -> dict[str, dict[str, Any]]:
        """Return ``{name: {tables, arm_digest}}`` of every arm, those that were added later too."""
        found: dict[str, dict[str, Any]] = dict(self.document.get("arms", {}))
        for event in self.events() if events is None else events:
            if event["type"] == "EXTENDED":
                found |= event["data"].get("arms", {})
        return found

    def max_cost(self, events: Sequence[Event] | None = None) -> float | None:
        """Return the limit on the cost of all runs together that was set last, in US dollars."""
        found: float | None = self.document.get("max_cost_usd")
        for event in self.events() if events is None else events:
            if event["type"] == "EXTENDED":
                found = event["data"].get("max_cost_usd", found)
        return found

    def cells(self, events: Sequence[Event] | None = None) -> list[Cell]:
        """Return the planned runs, pass by pass, arms in the order in which they were planned. Raises ``RunCorrupt``."""
        planned = [e["data"] for e in (self.events() if events is None else events) if e["type"] == "CELL_PLANNED"]
        try:
            cells = {d["run_id"]: Cell(d["repeat"], d["arm"], d["run_id"], d["cases"]) for d in planned}
        except (KeyError, TypeError) as error:
            place = self.directory / "ledger.jsonl"
            raise RunCorrupt(f"{place}: a planned run lacks {error}", hint="restore the file") from error
        return sorted(cells.values(), key=lambda cell: cell.repeat)

    def runs(self) -> list[str]:
        """Return the ids of its runs, in the order of :meth:`cells`."""
        return [cell.run_id for cell in self.cells()]


def mismatch(run: Mapping[str, Any], cell: Cell, suite: Mapping[str, Any], arms: Mapping[str, Any]) -> str | None:
    """Return in what a run (its ``run.json``) is not the one that was planned; ``suite`` and ``arms`` are the record's."""
    identity: Mapping[str, Any] = run.get("suite_identity") or {}
    place: Mapping[str, Any] = run.get("experiment") or {}
    if (place.get("arm"), place.get("repeat")) != (cell.arm, cell.repeat):
        return f"it is not pass {cell.repeat} of the arm {cell.arm}"
    if identity.get("arm_digest") != arms.get(cell.arm, {}).get("arm_digest"):
        return f"the arm {cell.arm} had other settings than those on record"
    if identity.get("suite_hash") != suite.get("suite_hash"):
        return "it measured another suite"
    return None
