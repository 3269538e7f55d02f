"""How soon a call does what it is for: answers that need nothing, and a run up to its first command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.bench import Bench, Tool
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import figure, in_turns
from tests.bench.peers import PEERS
from tests.bench.suites import write_suite

__all__ = ["answers", "first_command"]

LITERALS = {"--version": 2.0, "--help": 3.0, "capabilities": 4.0}
AGENT = """
import os, sys, time
pid, used, found = os.getppid(), 0.0, 0.0
while pid > 1:
    used += time.clock_gettime((~pid << 3) | 2)
    if b"run" in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0"):
        found = used
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
open(sys.argv[1], "w").write(str(found * 1000))
"""
"""Adds up the CPU clocks of the processes above it, up to the one that was called with ``run``; ids as in posix-timers.h."""


def answers(bench: Bench) -> Iterator[Line]:
    """Measure the calls that answer from literals."""
    for verb, times in LITERALS.items():
        words = [verb, "--json"] if verb == "capabilities" else [verb]
        sides = bench.calls(bench.scratch, {tool.name: words for tool in bench.tools()})
        cpu = figure(in_turns(sides, bench.rounds), "cpu")
        below = [Target(1, f"evalctl {version}") for version in PEERS]
        yield Line(label=f"CPU of {verb}", unit="ms", sides=cpu, targets=[Target(times, FLOOR), *below])


def first_command(bench: Bench) -> Iterator[Line]:
    """Measure the CPU of a run up to its first command, told by that command; and of a whole run of one trial."""
    project = bench.place("first")
    told = project / "told"
    write_suite(project, "telling", 1, [sys.executable, "-I", "-c", AGENT, str(told)])
    write_suite(project, "one", 1)

    def measure(tool: Tool) -> dict[str, float]:
        whole = bench.run(tool, "one", project)
        return whole | {"first": first_command_of(bench, tool, project, told)}

    measured = in_turns(bench.sides(measure) | bench.python_start(), bench.rounds)
    targets = [Target(3.5, f"evalctl {version}") for version in PEERS]
    yield Line(label="CPU up to the first command", unit="ms", sides=figure(measured, "first"), targets=targets)
    yield Line(label="CPU of a run of one trial", unit="ms", sides=figure(measured, "cpu"), targets=targets)
    yield Line(label="wall of a run of one trial", unit="ms", sides=figure(measured, "wall"))


def first_command_of(bench: Bench, tool: Tool, project: Path, told: Path) -> float:
    """Run the suite whose command tells the CPU used before it, and return that (ms)."""
    bench.run(tool, "telling", project)
    used = float(told.read_text())
    told.unlink()
    if used <= 0:
        raise AssertionError(f"the command of {tool.name if tool.name != OURS else 'evalwright'} found no run above it")
    return used
