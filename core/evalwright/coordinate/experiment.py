"""The experiment's record: what is compared with what, written before the first run, and its own event log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.ledger import Event, Ledger, read_events
from evalwright.rundir import disk_errors, read_object, write_document

__all__ = ["ExperimentRecord"]

PATIENCE_SECONDS = 10.0


class ExperimentRecord:
    """``experiment.json`` (arms, suite hash, analysis plan) and ``ledger.jsonl`` (cells, runs, looks)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def id(self) -> str:
        """Return the experiment's id."""
        return self.directory.name

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

    def log(self, type: str, data: Mapping[str, Any]) -> None:
        """Write one durable event."""
        with (
            disk_errors(self.directory),
            Ledger(self.directory / "ledger.jsonl", run=self.id, patience=PATIENCE_SECONDS) as ledger,
        ):
            ledger.append(type, data)
            ledger.commit()

    def events(self) -> list[Event]:
        """Return all events, verified."""
        path = self.directory / "ledger.jsonl"
        return read_events(path) if path.is_file() else []

    def runs(self) -> list[str]:
        """Return the ids of its runs, in the order in which they were planned."""
        planned = [event["data"]["run_id"] for event in self.events() if event["type"] == "CELL_PLANNED"]
        return list(dict.fromkeys(planned))
