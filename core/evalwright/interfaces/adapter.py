"""Importers and exporters: foreign formats in and out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol, TypeVar

from evalwright.interfaces.imported_runs import ImportedRun, ImportedSummary, ImportedTrial
from evalwright.interfaces.plugin import Plugin

__all__ = [
    "Exporter",
    "Imported",
    "ImportedCase",
    "ImportedFile",
    "ImportedSuite",
    "Importer",
    "RunView",
    "Unsupported",
]

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class ImportedSuite:
    """The ``suite.json`` to write; comes first."""

    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportedCase:
    """One line of ``cases.jsonl``."""

    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file of the suite, by its path inside the suite directory."""

    path: PurePosixPath
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Something the format holds that cannot be run here; listed, never dropped in silence."""

    what: str
    why: str


Imported = ImportedSuite | ImportedCase | ImportedFile | ImportedRun | ImportedTrial | ImportedSummary | Unsupported


class Importer(Plugin[C]):
    """Reads a foreign format. The core writes what the items describe.

    Without runs that is a suite. With an :class:`ImportedRun`, each followed by its trials, it is an experiment with runs over
    that suite, whose cases all come before the first run. ``Config`` takes what the user gives with ``--set``.
    """

    @abstractmethod
    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe what lies at ``source``; ``None`` means the format's own installed data set.

        Raises ``SourceMissing`` when there is nothing.
        """


class RunView(Protocol):
    """A finished run as an exporter sees it.

    ``report`` is what ``report --format json`` gives: ``run``, ``cases``, ``failures``, and for stored runs ``remarks`` and
    ``arm``.
    """

    run_id: str
    suite: str
    report: Mapping[str, Any]

    def artifact(self, case_id: str, name: str) -> bytes:
        """Return a stored artifact of one trial, its digest verified; ``OSError`` when it is absent."""
        ...


class Exporter(Plugin[C]):
    """Writes a run in a foreign format. ``suffix`` ends the name of a target that the user leaves open (``.xml``)."""

    suffix: ClassVar[str] = ""

    @abstractmethod
    def write(self, run: RunView, target: Path) -> None:
        """Write the run to ``target``."""
