"""Write what an importer describes: a suite, or an experiment with runs that read like our own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_json
from evalwright.coordinate.finalise import publish
from evalwright.coordinate.imported_run import ImportedRunWriter
from evalwright.errors import PluginInvalid, RunConflict, UsageError
from evalwright.interfaces import Imported, ImportedCase, ImportedFile, ImportedRun, ImportedSuite, ImportedTrial
from evalwright.redaction import Redactor
from evalwright.rundir import Layout, RunDirectory, check_id, disk_errors
from evalwright.rundir.experiment import ExperimentRecord
from evalwright.suite import Description, describe, place_aside, settle
from evalwright.workspace import copy_tree, remove_tree

__all__ = ["write_import"]

Record = dict[str, Any]
NO_SECRETS = Redactor()


def write_import(
    items: Iterator[Imported],
    *,
    out: str | None,
    layout: Layout,
    provenance: Mapping[str, Any],
    redactor: Redactor = NO_SECRETS,
) -> Record:
    """Write a suite or an experiment and return the answer's ``{out, suite, case_count, unsupported[], summary{}}``.

    For runs, ``out`` is the experiment's id, and ``{experiment, runs[]}`` come with the answer. ``provenance`` goes into each
    run's record; ``redactor`` takes secrets out of what trials bring. Raises ``RunConflict`` when the place is taken,
    ``PluginInvalid`` for a description that makes no sense, and whatever the importer raises; then nothing is left behind.
    """
    target = Path(out) if out else None
    with place_aside(target, layout.suites) as suite:
        described = describe(items, suite)
        if described.run is None:
            return settle(described, suite, target, layout.suites)
        with disk_errors(layout.runs):
            layout.runs.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(dir=layout.runs, prefix=".new-"))
        try:
            return _Experiment(described, suite, aside, out, layout, provenance, redactor).write(items)
        finally:
            remove_tree(aside, inside=layout.runs)


class _Experiment:
    """The experiment of one import: its runs are built aside and put in place only when all of them are whole."""

    def __init__(
        self,
        described: Description,
        suite: Path,
        aside: Path,
        out: str | None,
        layout: Layout,
        provenance: Mapping[str, Any],
        redactor: Redactor,
    ) -> None:
        first = described.run
        assert first is not None
        self.id = _experiment_id(out or first.experiment)
        self.described = described
        self.layout = layout
        self.provenance = provenance
        self.redactor = redactor
        self.runs: list[ImportedRunWriter] = []
        self.suite = suite
        self.aside = aside
        self.record = ExperimentRecord(layout.experiment(self.id))
        if self.record.exists() or layout.run(self.id).path.exists():
            raise RunConflict(f"{self.id} exists already", hint="choose another id with --out")

    def write(self, items: Iterator[Imported]) -> Record:
        """Read the runs to their end, then put everything in place."""
        assert self.described.run is not None
        self._begin(self.described.run)
        for item in items:
            self._take(item)
        self.runs[-1].finish()
        self._settle()
        return self._answer()

    def _begin(self, run: ImportedRun) -> None:
        if self.runs:
            self.runs[-1].finish()
        run_id = check_id(f"{self.id}.{run.arm}.{run.repeat}")
        if run_id in [writer.run_id for writer in self.runs]:
            raise PluginInvalid(f"the importer described {run.arm}, repeat {run.repeat}, twice", hint="number the repeats")
        if self.layout.run(run_id).path.exists():
            raise RunConflict(f"the run {run_id} exists already", hint="choose another id with --out")
        place = RunDirectory(self.aside / run_id)
        with disk_errors(place.path):
            place.cases.mkdir(parents=True, mode=0o700)
            copy_tree(self.suite, place.snapshot)
        self.runs.append(ImportedRunWriter(place, self.id, run, self.described, self.provenance, self.redactor))

    def _take(self, item: Imported) -> None:
        if isinstance(item, ImportedRun):
            self._begin(item)
        elif isinstance(item, ImportedTrial):
            self.runs[-1].add(item)
        elif isinstance(item, ImportedSuite | ImportedCase | ImportedFile):
            raise PluginInvalid(f"the importer gave a {type(item).__name__} after a run", hint="suite and cases come first")
        else:
            self.described.note(item)

    def _settle(self) -> None:
        done: list[Path] = []
        try:
            self.record.create(self._document())
            self.record.log(*(("CELL_PLANNED", writer.cell) for writer in self.runs))
            for writer in self.runs:
                target = self.layout.run(writer.run_id)
                os.rename(writer.run.path, target.path)
                done.append(target.path)
                publish(target, self.layout)
                link = {"run": writer.run_id, "relation": "import", "of": writer.source or None, "evidence": writer.evidence}
                self.record.log(("RUN_LINKED", link))
        except BaseException:
            for path in done:
                remove_tree(path, inside=self.layout.runs)
            remove_tree(self.record.directory, inside=self.layout.experiments)
            raise

    def _document(self) -> Record:
        first = self.runs[0]
        arms: dict[str, Record] = {}
        for writer in self.runs:
            if arms.setdefault(writer.arm, writer.arm_record) != writer.arm_record:
                raise PluginInvalid(f"two runs of the arm {writer.arm} have other settings", hint="give them other arms")
        keys = ("suite_name", "suite_hash", "fixtures_hash", "hidden_hash")
        return {
            "created_ts": first.created,
            "suite": {key: first.identity[key] for key in keys},
            "arms": arms,
            "primary": self.described.document.get("primary"),
            "plugin_lock": digest_json(self.provenance.get("plugins", [])),
        }

    def _answer(self) -> Record:
        return {
            "out": str(self.record.directory),
            "suite": self.described.document["name"],
            "case_count": len(self.described.cases),
            "unsupported": self.described.unsupported,
            "experiment": self.id,
            "runs": [writer.run_id for writer in self.runs],
            "summary": {"cases": len(self.described.cases), **_totals(self.runs), **self.described.summary},
        }


def _totals(runs: Sequence[ImportedRunWriter]) -> Record:
    statuses = [status for writer in runs for status in writer.statuses]
    return {"runs": len(runs), "trials": len(statuses), "passed": statuses.count("pass")}


def _experiment_id(name: str) -> str:
    if "/" in name:
        raise UsageError(f"--out {name}: what is imported are runs, and --out is their experiment's id", hint="give an id")
    return check_id(name, "experiment id")
