"""The contract of exporters."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from evalwright.interfaces import Exporter, Host, RunView
from evalwright.testing._contract import Contract, since
from evalwright.testing._fake_run import FakeRun
from evalwright.testing._waiting import in_threads

__all__ = ["ExporterContract"]


class ExporterContract(Contract[Exporter[Any]]):
    """What every exporter promises: all of the run, at the target, the same each time. Override ``make``.

    ``case_ids`` reads a written target back; the default looks for each case's id in the written bytes.
    """

    kind = "exporter"

    def make(self, host: Host) -> Exporter[Any]:
        """Return a new exporter."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def run_view(self) -> RunView:
        """Return the run to export: four cases, one of each status, with text that breaks careless formats."""
        return FakeRun()

    def case_ids(self, target: Path) -> set[str]:
        """Return the ids of the cases that a written target holds."""
        content = b"".join(_files(target).values())
        return {name for name in _ids(self.run_view()) if name.encode() in content}

    @since("1.0")
    def test_every_case_is_written(self, tmp_path: Path) -> None:
        """Passed, failed, unscored and broken trials alike: an export that drops errors flatters."""
        target = tmp_path / "out" / "target"
        target.parent.mkdir()
        with self.made() as exporter:
            exporter.write(self.run_view(), target)
        assert target.exists(), "nothing was written at the target"
        missing = _ids(self.run_view()) - self.case_ids(target)
        assert not missing, f"the export lacks the cases {sorted(missing)}"

    @since("1.0")
    def test_nothing_is_written_elsewhere(self, tmp_path: Path) -> None:
        """The target is the only thing that appears."""
        with self.made() as exporter:
            exporter.write(self.run_view(), tmp_path / "target")
        assert [path.name for path in tmp_path.iterdir()] == ["target"]

    @since("1.0")
    def test_same_run_is_written_the_same(self, tmp_path: Path) -> None:
        """No clock and no random order: two exports of a run are equal byte for byte."""
        with self.made() as exporter:
            exporter.write(self.run_view(), tmp_path / "first")
            exporter.write(self.run_view(), tmp_path / "second")
        assert _files(tmp_path / "first") == _files(tmp_path / "second")

    @since("1.0")
    def test_run_is_left_as_it_was(self, tmp_path: Path) -> None:
        """The report belongs to the core."""
        run = self.run_view()
        before = copy.deepcopy(dict(run.report))
        with self.made() as exporter:
            exporter.write(run, tmp_path / "target")
        assert run.report == before, "the exporter changed the report"

    @since("1.0")
    def test_run_without_cases_can_be_written(self, tmp_path: Path) -> None:
        """An empty run is written, not a defect."""
        with self.made() as exporter:
            try:
                exporter.write(FakeRun({}), tmp_path / "target")
            except Exception as error:
                raise AssertionError(f"a run without cases raised {error!r}") from error
        assert (tmp_path / "target").exists()

    @since("1.0")
    def test_eight_threads_write_at_once(self, tmp_path: Path) -> None:
        """One exporter may write several runs at the same time."""
        with self.made() as exporter:
            exporter.write(self.run_view(), tmp_path / "alone")
            in_threads(lambda number: exporter.write(self.run_view(), tmp_path / f"target{number}"))
        alone = _files(tmp_path / "alone")
        assert all(_files(tmp_path / f"target{number}") == alone for number in range(8))


def _ids(run: RunView) -> set[str]:
    return {str(case["id"]) for case in run.report["cases"]}


def _files(target: Path) -> dict[str, bytes]:
    if target.is_file():
        return {"": target.read_bytes()}
    return {str(path.relative_to(target)): path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()}
