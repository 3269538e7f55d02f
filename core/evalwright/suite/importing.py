"""Write the suite that an importer describes: aside, checked, then renamed into place."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.canonical import stable_json
from evalwright.errors import PluginInvalid, RunConflict
from evalwright.interfaces import (
    Imported,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    ImportedSuite,
    ImportedSummary,
    ImportedTrial,
    Unsupported,
)
from evalwright.registry import Registry
from evalwright.suite.author import render
from evalwright.suite.load import load_suite
from evalwright.workspace import remove_tree

__all__ = ["Description", "describe", "place_aside", "settle", "write_imported"]

Record = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Description:
    """What an importer said up to its first run: the suite, which is on disk now, and what goes into the answer."""

    document: Record
    cases: list[Record]
    unsupported: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    summary: Record = field(default_factory=Record)
    run: ImportedRun | None = None

    def note(self, item: Unsupported | ImportedSummary) -> None:
        """Keep what may come at any time."""
        if isinstance(item, Unsupported):
            self.unsupported.append({"what": item.what, "why": item.why})
        else:
            self.summary |= dict(item.values)


def write_imported(items: Iterable[Imported], out: Path | None, suites: Path) -> Record:
    """Write a suite and return ``{out, suite, case_count, unsupported[], summary{}}``.

    Without ``out`` it goes below ``suites``. Raises ``RunConflict`` when the directory exists, ``PluginInvalid`` for a
    description that is no suite, and whatever the
    importer raises; then nothing is left behind.
    """
    with place_aside(out, suites) as aside:
        described = describe(iter(items), aside)
        if described.run is not None:
            raise PluginInvalid("the importer described runs, not only a suite", hint="import them as an experiment")
        return settle(described, aside, out, suites)


@contextlib.contextmanager
def place_aside(out: Path | None, suites: Path) -> Generator[Path]:
    """Give an empty directory beside the place of the new suite; what is left of it is removed after the block."""
    parent = out.parent if out else suites
    parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=parent, prefix=".import-"))
    try:
        yield aside
    finally:
        if aside.exists():
            remove_tree(aside, inside=parent)


def settle(described: Description, aside: Path, out: Path | None, suites: Path) -> Record:
    """Check the suite in ``aside``, put it in place, and return what :func:`write_imported` returns."""
    load_suite(aside, Registry(aside))
    name = str(described.document["name"])
    target = out or suites / name
    if target.exists():
        raise RunConflict(f"{target} exists already", hint="choose another place with --out")
    aside.chmod(0o755)
    os.rename(aside, target)
    count = len(described.cases)
    summary = {"cases": count, **described.summary}
    return {"out": str(target), "suite": name, "case_count": count, "unsupported": described.unsupported, "summary": summary}


def describe(items: Iterator[Imported], directory: Path) -> Description:
    """Write the suite into a directory of ours and return what was said up to the first run, which is taken from ``items``.

    Raises ``PluginInvalid`` when no suite is described, or a trial comes before its run.
    """
    described = Description(document={}, cases=[])
    for item in items:
        if isinstance(item, ImportedSuite):
            described.document = dict(item.document)
        elif isinstance(item, ImportedCase):
            described.cases.append(dict(item.record))
        elif isinstance(item, ImportedFile):
            _write_file(item, directory)
        elif isinstance(item, ImportedRun):
            described.run = item
            break
        elif isinstance(item, ImportedTrial):
            raise PluginInvalid(f"the importer described the trial {item.case_id} before its run", hint="yield the run first")
        else:
            described.note(item)
    _write_suite(described, directory)
    return described


def _write_suite(described: Description, directory: Path) -> None:
    document = described.document
    if not document:
        raise PluginInvalid("the importer described no suite", hint="it must yield an ImportedSuite")
    lines = "".join(stable_json(case) + "\n" for case in described.cases)
    (directory / "suite.json").write_text(render(document), encoding="utf-8", newline="")
    (directory / str(document.get("cases", "cases.jsonl"))).write_text(lines, encoding="utf-8", newline="")


def _write_file(item: ImportedFile, directory: Path) -> None:
    path = item.path
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise PluginInvalid(f"the importer gave the unsafe path {path}", hint="paths lie inside the suite")
    place = directory / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(item.content)
    place.chmod(item.mode)
