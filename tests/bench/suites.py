"""Suites that every tool here can run, and what stands in their fixtures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["NOTHING", "write_files", "write_suite"]

NOTHING = ("/bin/true",)
MEBIBYTE = 1 << 20
PER_DIRECTORY = 100


def write_suite(project: Path, name: str, count: int, argv: Sequence[str] = NOTHING, *, small: bool = True) -> Path:
    """Write a suite of so many cases of one fixture, judged by three scorers, and return the fixture's directory.

    The fixture is two small files, or empty when it is not ``small``.
    """
    directory = project / "evals" / "suites" / name
    fixture = directory / "fixtures" / "w"
    fixture.mkdir(parents=True)
    for file in ("a.txt", "b.txt") if small else ():
        (fixture / file).write_text(file * 20)
    scorers = [{"name": "exit-code"}, {"name": "exact"}, {"name": "workspace-diff"}]
    expect = {"exit_code": 0, "exact": "", "files_forbidden": ["a.txt"]}
    suite = {"name": name, "runner": {"argv": list(argv)}, "scorers": scorers}
    (directory / "suite.json").write_text(json.dumps(suite))
    case = {"task": "t", "workspace": "fixtures/w", "expect": expect}
    lines = (json.dumps({"id": f"c{number}", **case}) + "\n" for number in range(count))
    (directory / "cases.jsonl").write_text("".join(lines))
    return fixture


def write_files(root: Path, files: int, file_bytes: int) -> None:
    """Write so many files of that size, a hundred in each directory."""
    block = os.urandom(min(file_bytes, MEBIBYTE))
    for number in range(files):
        path = root / f"d{number // PER_DIRECTORY}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for start in range(0, file_bytes, len(block)):
                file.write(block[: file_bytes - start])
