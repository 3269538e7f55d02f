"""An agent that prints without end: memory and CPU of reading it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.bench.bench import Bench, Tool
from tests.bench.lines import FLOOR, Line, Target
from tests.bench.measure import figure, in_turns, spent
from tests.bench.suites import write_suite

__all__ = ["flood"]

GIBIBYTE = 1 << 30
BOUNDED_READER = """
import os, subprocess, sys
command, kept, left = ["/usr/bin/head", "-c", sys.argv[1], "/dev/zero"], [], 5 << 20
process = subprocess.Popen(command, stdout=subprocess.PIPE)
while block := os.read(process.stdout.fileno(), 1 << 16):
    if left > 0:
        kept.append(block[:left])
        left -= len(block)
sys.exit(process.wait())
"""


def flood(bench: Bench) -> Iterator[Line]:
    """Measure a trial that prints a gibibyte: the peak of memory, and the CPU beyond that of a trial that prints nothing."""
    size = bench.count(GIBIBYTE, GIBIBYTE >> 5)
    project = bench.place("flood")
    write_suite(project, "silent", 1, ["/usr/bin/head", "-c", "0", "/dev/zero"])
    write_suite(project, "flood", 1, ["/usr/bin/head", "-c", str(size), "/dev/zero"])

    def beyond(tool: Tool) -> dict[str, float]:
        silent, loud = (bench.run(tool, suite, project) for suite in ("silent", "flood"))
        return {"cpu": loud["cpu"] - silent["cpu"], "rss": loud["rss"]}

    def floor() -> dict[str, float]:
        silent, loud = (spent([sys.executable, "-I", "-c", BOUNDED_READER, str(count)]) for count in (0, size))
        return {"cpu": loud["cpu"] - silent["cpu"], "rss": loud["rss"]}

    measured = in_turns(bench.sides(beyond) | {FLOOR: floor}, bench.rounds)
    label = f"{size >> 20} MiB of output"
    yield Line(label=f"peak memory, {label}", unit="MiB", sides=figure(measured, "rss"), targets=[Target(48.0)])
    yield Line(label=f"CPU of {label}", unit="ms", sides=figure(measured, "cpu"), targets=[Target(1.3, FLOOR)])
