"""Writes imported suites and runs their drivers the way the ``tests`` scorer does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from evalwright.interfaces import Host, Imported, ImportedCase, ImportedFile, ImportedSuite, Importer, Unsupported

ImporterClass = type[Importer[None]]


@dataclass(frozen=True)
class Verdict:
    """What a driver left behind."""

    returncode: int
    report: str

    @property
    def passed(self) -> bool:
        return self.returncode == 0 and "not ok" not in self.report and "\nok 1 - " in self.report


@dataclass
class WrittenSuite:
    """A suite on disk and its cases by id."""

    root: Path
    document: dict[str, Any] = field(default_factory=dict[str, Any])
    cases: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    unsupported: list[Unsupported] = field(default_factory=list[Unsupported])

    def add(self, item: Imported) -> None:
        match item:
            case ImportedSuite(document):
                self.document = dict(document)
            case ImportedCase(record):
                self.cases[record["id"]] = dict(record)
            case ImportedFile(path, content):
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).write_bytes(content)
            case Unsupported():
                self.unsupported.append(item)
            case _:
                raise AssertionError(f"{item!r} is no part of a suite")

    def judge(self, case_id: str, place: Path, *, gold: bool = False, files: dict[str, str] | None = None) -> Verdict:
        """Run the driver on the fixture, changed by the gold overlay or by ``files``."""
        case, clone, report = self.cases[case_id], place / case_id / "w", place / f"{case_id}.report"
        shutil.copytree(self.root / case["workspace"], clone)
        if gold:
            shutil.copytree(self.root / case["gold"], clone, dirs_exist_ok=True)
        for name, text in (files or {}).items():
            (clone / name).parent.mkdir(exist_ok=True)
            (clone / name).write_text(text)
        shutil.copytree(self.root / case["hidden"], clone, dirs_exist_ok=True)
        scorer = self.document["scorers"][0]
        environment = {"PATH": os.defpath, "EVALWRIGHT_REPORT_FILE": str(report), "EVALCTL_CASE_FILE": "secret"}
        run = subprocess.run(
            scorer["argv"],
            cwd=clone,
            env=environment,
            capture_output=True,
            timeout=scorer["timeout_seconds"],
            check=False,
        )
        return Verdict(run.returncode, report.read_text() if report.exists() else "")


@pytest.fixture
def read() -> Callable[[ImporterClass, Path | None], list[Imported]]:
    """Return a function that lists what an importer describes."""

    def read_all(importer: ImporterClass, source: Path | None) -> list[Imported]:
        items: Iterator[Imported] = importer(None, cast("Host", None)).read(source)
        return list(items)

    return read_all


@pytest.fixture
def write(
    tmp_path: Path, read: Callable[[ImporterClass, Path | None], list[Imported]]
) -> Callable[[ImporterClass, Path | None], WrittenSuite]:
    """Return a function that writes the suite an importer describes."""

    def write_suite(importer: ImporterClass, source: Path | None) -> WrittenSuite:
        suite = WrittenSuite(tmp_path / "suite")
        suite.root.mkdir()
        for item in read(importer, source):
            suite.add(item)
        lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in suite.cases.values()]
        (suite.root / "cases.jsonl").write_text("".join(lines))
        return suite

    return write_suite
