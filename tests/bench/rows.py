"""The rows of the bench. Each sets up, interleaves ours and its floor, and returns medians of CPU time in milliseconds."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Row = dict[str, float]
ROUNDS = 5
PYTHON = sys.executable
FLOOR = [PYTHON, "-I", "-c", "pass"]
SPAWN_AND_COPY = """
import os, shutil, sys
for number in range(int(sys.argv[1])):
    shutil.copytree(sys.argv[2], f"{sys.argv[3]}/{number}")
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
"""


def start() -> dict[str, Row]:
    """Return the CPU of the verbs that answer from literals, against an empty Python."""
    calls = {name: [PYTHON, "-m", "evalwright", *words] for name, words in STARTS.items()}
    return {name: _compared(lambda call=call: _cpu(call), lambda: _cpu(FLOOR)) for name, call in calls.items()}


def trial() -> dict[str, Row]:
    """Return the CPU per no-op trial (two files, ``/bin/true``, three scorers, two jobs), against spawn and copy alone."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        few, many = 20, 120
        for count in (few, many):
            _write_suite(root, count)
        numbers = iter(range(1000))

        def ours(count: int) -> float:
            words = ["run", f"noop{count}", "--run-id", f"r{next(numbers)}", "--jobs", "2"]
            return _cpu([PYTHON, "-m", "evalwright", *words], cwd=root)

        def floor(count: int) -> float:
            target = root / f"floor{next(numbers)}"
            target.mkdir()
            fixture = str(root / "evals/suites/noop20/fixtures/w")
            return _cpu([PYTHON, "-I", "-c", SPAWN_AND_COPY, str(count), fixture, str(target)])

        difference = many - few
        return {
            "cpu per trial": _compared(
                lambda: (ours(many) - ours(few)) / difference, lambda: (floor(many) - floor(few)) / difference
            )
        }


STARTS: Mapping[str, Sequence[str]] = {"--version": ["--version"], "--help": ["--help"], "capabilities": ["capabilities"]}
ROWS: Mapping[str, Callable[[], dict[str, Row]]] = {"start": start, "trial": trial}


def _compared(ours: Callable[[], float], floor: Callable[[], float]) -> Row:
    pairs = [(ours(), floor()) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"ours": mine, "floor": theirs, "ratio": mine / theirs}


def _cpu(command: Sequence[str], cwd: Path | None = None) -> float:
    """Run a command and return the CPU that it and its children used, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _write_suite(root: Path, count: int) -> None:
    directory = root / "evals" / "suites" / f"noop{count}"
    (directory / "fixtures" / "w").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (directory / "fixtures" / "w" / name).write_text(name * 20)
    suite = {
        "name": f"noop{count}",
        "runner": {"argv": ["/bin/true"]},
        "scorers": [{"name": "exit-code"}, {"name": "exact"}, {"name": "workspace-diff"}],
    }
    (directory / "suite.json").write_text(json.dumps(suite))
    case = {"task": "t", "workspace": "fixtures/w", "expect": {"exit_code": 0, "exact": "", "files_forbidden": ["a.txt"]}}
    lines = (json.dumps({"id": f"c{number}", **case}) + "\n" for number in range(count))
    (directory / "cases.jsonl").write_text("".join(lines))
