"""The importer contract fails on an importer whose runs are broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evalwright.errors import SourceMissing
from evalwright.interfaces import (
    Host,
    Imported,
    ImportedCase,
    ImportedRun,
    ImportedScore,
    ImportedSuite,
    ImportedTrial,
    Importer,
)
from evalwright.model import Score
from evalwright.testing import ImporterContract

SUITE = ImportedSuite({"schema_version": 2, "name": "s", "runner": {"argv": ["false"]}, "scorers": [{"use": "exact"}]})
CASE = ImportedCase({"id": "a", "task": "t", "workspace": "none"})
RUN = ImportedRun(
    experiment="e", arm="one", repeat=1, created="2026-01-01T00:00:00Z", evidence="scores-only", settings={"model": "m"}
)
TRIAL = ImportedTrial(case_id="a", scores=[ImportedScore(scorer="exact", score=Score.passed())])
GOOD = [SUITE, CASE, RUN, TRIAL]


class RunImporter(Importer[None]):
    """Describes what it was told to."""

    api = "importer/1.0"

    def __init__(self, host: Host, items: Sequence[Imported]) -> None:
        super().__init__(None, host)
        self.described = items

    def read(self, source: Path | None) -> Iterator[Imported]:
        if source is None or not source.exists():
            raise SourceMissing("nothing there", hint="give a directory")
        yield from self.described


def importing(items: Sequence[Imported]) -> type[ImporterContract]:
    class Made(ImporterContract):
        records = 1

        def make(self, host: Host) -> RunImporter:
            return RunImporter(host, items)

        def write_source(self, place: Path) -> Path:
            return place

    return Made


class TestRunImporter(importing(GOOD)):
    pass


@pytest.mark.parametrize(
    "items",
    [
        [SUITE, CASE, RUN],
        [SUITE, CASE, TRIAL, RUN],
        [SUITE, CASE, RUN, ImportedTrial(case_id="b")],
        [SUITE, CASE, RUN, TRIAL, RUN, TRIAL],
        [SUITE, CASE, RUN, ImportedTrial(case_id="a", artifacts={"../out": b""})],
    ],
    ids=["no-trial", "trial-first", "no-case", "twice", "climbs"],
)
def test_runs_that_make_no_sense_are_told(tmp_path: Path, items: list[Imported]) -> None:
    check: Callable[[Path], None] = importing(items)().test_written_suite_loads_with_every_case
    with pytest.raises(AssertionError, match="not valid"):
        check(tmp_path)
