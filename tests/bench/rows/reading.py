"""What it costs to read runs again: a report, a status, a list of runs, a resume."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.bench import Bench, Tool
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import environment, figure, in_turns, spent
from tests.bench.suites import write_suite

__all__ = ["listing", "reports", "resuming", "runs_of_each"]

LOOK_SECONDS = 0.0005
PATIENCE_SECONDS = 600
AFRESH = "fresh run + 4 starts"


def reports(bench: Bench) -> Iterator[Line]:
    """Measure ``report`` and ``status`` of a finished run; ours verifies every digest."""
    count = bench.count(1000, 50)
    project = bench.place("reports")
    write_suite(project, "s", count)
    ids = {tool.name: f"r{bench.run(tool, 's', project)['number']:.0f}" for tool in bench.tools()}
    for words, times in ((["report", "--format", "json"], 10.0), (["status", "--json"], 4.0)):
        verb, *flags = words
        sides = bench.calls(project, {name: [verb, run, *flags] for name, run in ids.items()})
        cpu = figure(in_turns(sides, bench.rounds), "cpu")
        yield Line(label=f"CPU of {verb}, {count:,} trials", unit="ms", sides=cpu, targets=[Target(times, FLOOR)])


def listing(bench: Bench) -> Iterator[Line]:
    """Measure ``jobs list``. The peers list the runs of the first of them."""
    runs, trials = bench.count(50, 5), bench.count(300, 20)
    yield listed(bench, runs, trials, [Target(5.0, FLOOR)])


def listed(bench: Bench, runs: int, trials: int, targets: list[Target]) -> Line:
    """Make so many runs of so many trials and return the line of ``jobs list``."""
    projects = runs_of_each(bench, runs, trials)
    sides = {
        tool.name: lambda tool=tool: spent([tool.program, "jobs", "list", "--json"], projects[tool.ours])
        for tool in bench.tools()
    }
    measured = in_turns(sides | bench.python_start(), bench.rounds)
    label = f"CPU of jobs list, {runs} runs x {trials} trials"
    return Line(label=label, unit="ms", sides=figure(measured, "cpu"), targets=targets)


def runs_of_each(bench: Bench, runs: int, trials: int) -> dict[bool, Path]:
    """Make so many runs with Evalwright (``True``) and with a peer (``False``), and return the projects."""
    projects: dict[bool, Path] = {}
    for tool in bench.tools()[:2]:
        project = projects[tool.ours] = bench.place("runs")
        write_suite(project, "s", trials)
        for _ in range(runs):
            bench.run(tool, "s", project)
    return projects


def resuming(bench: Bench) -> Iterator[Line]:
    """Measure a resume with half of the trials done, up to the next one done, beside a fresh run up to its first."""
    count = bench.count(1000, 60)
    project = bench.place("resuming")
    write_suite(project, "s", count)
    ours = bench.tools()[0]
    _until(ours, project, ["s", "--run-id", "half"], lambda: _done(project, "half") >= count // 2)
    done = _done(project, "half")

    def resumed() -> dict[str, float]:
        copy = bench.place("copy") / "p"
        shutil.copytree(project, copy, symlinks=True)
        return _until(ours, copy, ["--resume", "half"], lambda: _done(copy, "half") > done)

    def fresh() -> dict[str, float]:
        run_id = f"r{next(bench.numbers)}"
        return _until(ours, project, ["s", "--run-id", run_id], lambda: _done(project, run_id) > 0)

    sides: dict[str, Callable[[], dict[str, float]]] = {OURS: resumed, "fresh run": fresh}
    measured = in_turns(sides | bench.python_start(), bench.rounds)
    for name, shown in (("cpu", "CPU"), ("wall", "wall")):
        figures = figure(measured, name)
        figures[AFRESH] = figures["fresh run"] + 4 * figures[FLOOR]
        targets = [Target(1.0, AFRESH)] if name == "cpu" else []
        label = f"{shown} to the first trial done on resume, {done:,} of {count:,} done"
        yield Line(label=label, unit="ms", sides=figures, targets=targets)


def _until(tool: Tool, project: Path, words: list[str], happened: Callable[[], bool]) -> dict[str, float]:
    """Run until something happened, and return the CPU of the run's own process and the wall time (ms) until then.

    The run is interrupted as by Ctrl-C. Raises ``RuntimeError`` when it ends, or ten minutes pass, before it happened.
    """
    call = [tool.program, "run", *words, "--jobs", "2", "--json"]
    begun = time.monotonic()
    process = subprocess.Popen(call, cwd=project, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not happened():
            if process.poll() is not None or time.monotonic() > begun + PATIENCE_SECONDS:
                raise RuntimeError(f"{' '.join(words)} ended with {process.returncode} before half of its trials were done")
            time.sleep(LOOK_SECONDS)
        return {"cpu": time.clock_gettime((~process.pid << 3) | 2) * 1000, "wall": (time.monotonic() - begun) * 1000}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)


def _done(project: Path, run_id: str) -> int:
    """Return how many trials the run's ledger calls done."""
    try:
        return (project / "evals" / "runs" / run_id / "ledger.jsonl").read_bytes().count(b'"type":"TRIAL_FINISHED"')
    except OSError:
        return 0
