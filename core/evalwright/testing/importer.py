"""The contract of importers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import pytest

from evalwright.coordinate import write_import
from evalwright.errors import EvalwrightError, SourceMissing
from evalwright.interfaces import (
    Host,
    Imported,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    ImportedSuite,
    ImportedSummary,
    ImportedTrial,
    Importer,
    Unsupported,
)
from evalwright.report import verify_run
from evalwright.rundir import Layout
from evalwright.suite import load_suite
from evalwright.testing._contract import Contract, since
from evalwright.testing._waiting import in_threads

__all__ = ["ImporterContract"]

KNOWN = (ImportedSuite, ImportedCase, ImportedFile, ImportedRun, ImportedTrial, ImportedSummary, Unsupported)


class ImporterContract(Contract[Importer[Any]]):
    """What every importer promises: a suite that loads, or runs that are whole, and nothing dropped in silence.

    Override ``make`` and ``write_source``; ``records`` is how many records of the format ``write_source`` writes.
    """

    kind = "importer"
    records: ClassVar[int | None] = None

    def make(self, host: Host) -> Importer[Any]:
        """Return a new importer."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def write_source(self, place: Path) -> Path:
        """Write something small of the format below ``place`` and return what a user would import."""
        raise NotImplementedError(f"{type(self).__name__} overrides write_source(self, place)")

    def items(self, place: Path) -> Sequence[Imported]:
        """Return everything that a new importer describes."""
        with self.made() as importer:
            return list(importer.read(self.write_source(place)))

    @since("1.0")
    def test_suite_comes_first_and_once(self, tmp_path: Path) -> None:
        """Then cases, files and what is not supported, in any order; runs and their trials last."""
        items = self.items(tmp_path)
        assert items, "the importer described nothing"
        assert all(isinstance(item, KNOWN) for item in items)
        assert isinstance(items[0], ImportedSuite), f"the first item is {items[0]!r}"
        assert sum(isinstance(item, ImportedSuite) for item in items) == 1

    @since("1.0")
    def test_case_ids_and_paths_are_unique(self, tmp_path: Path) -> None:
        """No case and no file is described twice."""
        items = self.items(tmp_path)
        ids = Counter(str(item.record.get("id")) for item in items if isinstance(item, ImportedCase))
        paths = Counter(item.path for item in items if isinstance(item, ImportedFile))
        assert ids, "the importer described no case"
        assert not [name for name, count in ids.items() if count > 1 or name == "None"], "case ids are missing or repeated"
        assert not [path for path, count in paths.items() if count > 1], "a file is described twice"

    @since("1.0")
    def test_paths_stay_inside_the_suite(self, tmp_path: Path) -> None:
        """Relative, without ``..``: a hostile source writes nowhere else."""
        for item in self.items(tmp_path):
            if isinstance(item, ImportedFile):
                assert isinstance(item.path, PurePosixPath)
                assert item.path.parts, "a file has no name"
                assert not item.path.is_absolute(), f"{item.path} is absolute"
                assert ".." not in item.path.parts, f"{item.path} climbs"

    @since("1.0")
    def test_written_suite_loads_with_every_case(self, tmp_path: Path) -> None:
        """What the items describe is a valid suite with exactly these cases, files and all; or runs, each of them whole."""
        items = self.items(tmp_path)
        layout = Layout(tmp_path / "evals", tmp_path / "evals" / "runs")
        described = {item.record["id"]: item.record["task"] for item in items if isinstance(item, ImportedCase)}
        runs = [item for item in items if isinstance(item, ImportedRun)]
        try:
            written = write_import(iter(items), out=None, layout=layout, provenance={})
            cases = {} if runs else {case.id: case.task for case in load_suite(Path(written["out"])).suite.cases}
        except (EvalwrightError, ValueError) as error:
            raise AssertionError(f"what was described is not valid: {error}") from error
        assert cases == ({} if runs else described)
        assert len(written.get("runs", ())) == len(runs)
        assert all(verify_run(layout.run(run))["sealed"] for run in written.get("runs", ()))

    @since("1.0")
    def test_nothing_is_dropped_in_silence(self, tmp_path: Path) -> None:
        """Every record of the source is a case, or is listed as unsupported with a reason."""
        items = self.items(tmp_path)
        refused = [item for item in items if isinstance(item, Unsupported)]
        assert all(item.what.strip() and item.why.strip() for item in refused)
        cases = sum(isinstance(item, ImportedCase) for item in items)
        assert self.records in (None, cases + len(refused)), f"{self.records} records, {cases} cases, {len(refused)} refusals"

    @since("1.0")
    def test_reading_twice_describes_the_same(self, tmp_path: Path) -> None:
        """No clock, no random ids: the same source is the same suite."""
        source = self.write_source(tmp_path)
        with self.made() as importer:
            first = list(importer.read(source))
            assert list(importer.read(source)) == first, "one importer read the source twice and described two suites"
        with self.made() as importer:
            assert list(importer.read(source)) == first, "two importers described different suites"

    @since("1.0")
    def test_missing_source_is_said_to_be_missing(self, tmp_path: Path) -> None:
        """``SourceMissing`` with a hint, not a traceback."""
        with self.made() as importer, pytest.raises(SourceMissing) as caught:
            list(importer.read(tmp_path / "there is nothing here"))
        assert caught.value.hint, "the error gives no hint"

    @since("1.0")
    def test_damaged_source_is_refused_with_an_error(self, tmp_path: Path) -> None:
        """A source cut in half, or of other bytes, gives an ``EvalwrightError`` or fewer cases, never a defect."""
        source = self.write_source(tmp_path)
        if not source.is_file():
            return
        content = source.read_bytes()
        for damaged in (content[: len(content) // 2], b"\xff\xfe\x00\x01" * 50, b""):
            source.write_bytes(damaged)
            with self.made() as importer:
                try:
                    list(importer.read(source))
                except EvalwrightError:
                    continue
                except Exception as error:
                    raise AssertionError(f"a damaged source raised {error!r}; raise UsageError") from error

    @since("1.0")
    def test_eight_threads_read_at_once(self, tmp_path: Path) -> None:
        """One importer may read in several threads."""
        source = self.write_source(tmp_path)
        with self.made() as importer:
            alone = list(importer.read(source))
            assert all(items == alone for items in in_threads(lambda _: list(importer.read(source))))
