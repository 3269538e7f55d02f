"""What it costs that a finished trial survives a power cut: the ledger's commit, and how many there are."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import environment, figure, in_turns, marginal, timed
from tests.bench.suites import write_suite

from evalwright.ledger import Ledger

__all__ = ["commits"]

SYNCS = "fsync,fdatasync,sync_file_range,syncfs"
TRACE_SECONDS = 600


def commits(bench: Bench) -> Iterator[Line]:
    """Measure one append with its commit, beside the same bytes written and synced; and count the syncs of a run."""
    place = bench.place("ledger")
    data = {"case": "c0", "status": "pass", "digests": {f"file-{number}.json": f"sha256:{number:064}" for number in range(12)}}
    count = bench.count(200, 20)
    with Ledger(place / "ledger.jsonl", run="r") as ledger:
        line = (str(ledger.append("TRIAL_FINISHED", data)) + "\n").encode()
        descriptor = os.open(place / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def commit() -> None:
            ledger.append("TRIAL_FINISHED", data)
            ledger.commit()

        def write() -> None:
            os.write(descriptor, line)
            os.fdatasync(descriptor)

        sides = {OURS: lambda: _each(commit, count), FLOOR: lambda: _each(write, count)}
        measured = in_turns(sides, bench.rounds)
        os.close(descriptor)
    yield Line(label="wall of append + commit", unit="ms", sides=figure(measured, "wall"), targets=[Target(1.6, FLOOR)])
    yield Line(label="CPU of append + commit", unit="ms", sides=figure(measured, "cpu"))
    yield _syncs(bench)


def _each(action: Callable[[], None], count: int) -> dict[str, float]:
    def all_of_them() -> None:
        for _ in range(count):
            action()

    return {name: value / count for name, value in timed(all_of_them).items()}


def _syncs(bench: Bench) -> Line:
    """Count the calls that sync, per trial, as strace sees them."""
    label = "syncs per trial"
    if shutil.which("strace") is None:
        return Line(label=label, unit="", sides={}, targets=[Target(1.0)], note="strace is not installed")
    project = bench.place("syncs")
    few, many = 20, 60
    for count in (few, many):
        write_suite(project, f"s{count}", count)
    sides = bench.sides(lambda tool: marginal(functools.partial(_traced, bench, tool.program, project), few, many))
    return Line(label=label, unit="", sides=figure(in_turns(sides, bench.rounds), "syncs"), targets=[Target(1.0)])


def _traced(bench: Bench, program: Path, project: Path, count: int) -> dict[str, float]:
    told = project / f"trace{next(bench.numbers)}"
    call = ["strace", "-f", "-qq", "-e", f"trace={SYNCS}", "-o", told]
    call += [program, "run", f"s{count}", "--run-id", told.name, "--jobs", "2"]
    subprocess.run(call, cwd=project, env=environment(), check=True, capture_output=True, timeout=TRACE_SECONDS)
    return {"syncs": float(sum("sync" in line and "resumed" not in line for line in told.read_text().splitlines()))}
