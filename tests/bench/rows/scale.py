"""What grows with the size of a run, of a list of runs and of a suite."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.lines import OURS, Line, Target
from tests.bench.measure import figure, in_turns, spent
from tests.bench.rows.reading import listed
from tests.bench.suites import write_suite

__all__ = ["SIZES", "curve", "large_suite", "long_list", "memory", "report"]

SIZES = (1_000, 2_000, 5_000, 10_000)
QUICK_SIZES = (50, 100, 200)
LABELS = {"cpu": ("CPU per trial", "ms"), "wall": ("wall per trial", "ms"), "rss": ("peak memory", "MiB")}


def memory(bench: Bench) -> Iterator[Line]:
    """Measure the coordinator's memory in the largest run of the curve, and its growth from the smallest on."""
    runs, (_, measured) = _runs(bench)
    sizes = list(runs)
    small, large = sizes[0], sizes[-1]
    peaks = {count: figure(runs[count], "rss") for count in runs}
    yield Line(label=f"peak memory, {large:,} trials", unit="MiB", sides=peaks[large], targets=[Target(64.0)])
    growth = {side: _growth(peaks, side) for side in measured}
    yield Line(
        label="growth per 1,000 trials", unit="MiB", sides=growth, targets=[Target(1.0)], note=f"from {small:,} trials on"
    )


def curve(bench: Bench) -> Iterator[Line]:
    """Measure runs of growing size."""
    runs, _ = _runs(bench)
    for name, (label, unit) in LABELS.items():
        for count, measured in runs.items():
            per = 1 if name == "rss" else count
            sides = {side: value / per for side, value in figure(measured, name).items()}
            yield Line(label=f"{label}, {count:,} trials", unit=unit, sides=sides)


def report(bench: Bench) -> Iterator[Line]:
    """Measure a report over the largest run of the curve."""
    runs, (project, _) = _runs(bench)
    largest = max(runs)
    ours, run_id = bench.tools()[0], f"r{runs[largest][OURS]['number']:.0f}"
    sides = {OURS: lambda: spent([ours.program, "report", run_id, "--format", "json"], project)}
    yield from _costs(f"report, {largest:,} trials", in_turns(sides | bench.python_start(), bench.rounds))


def long_list(bench: Bench) -> Iterator[Line]:
    """Measure ``jobs list`` of many runs."""
    yield listed(bench, bench.count(200, 10), 10, [])


def large_suite(bench: Bench) -> Iterator[Line]:
    """Measure the validation of a suite of many cases."""
    cases = bench.count(50_000, 1_000)
    project = bench.place("validate")
    write_suite(project, "s", cases)
    sides = bench.sides(lambda tool: spent([tool.program, "validate", "s", "--json"], project))
    yield from _costs(f"validate, {cases:,} cases", in_turns(sides | bench.python_start(), bench.rounds))


def _costs(label: str, measured: Mapping[str, Mapping[str, float]]) -> Iterator[Line]:
    for name, shown, unit in (("cpu", "CPU", "ms"), ("wall", "wall", "ms"), ("rss", "peak memory", "MiB")):
        yield Line(label=f"{shown} of {label}", unit=unit, sides=figure(measured, name))


@functools.cache
def _runs(bench: Bench) -> tuple[Mapping[int, dict[str, dict[str, float]]], tuple[Path, list[str]]]:
    """Run each size once, the peer too up to 2,000 trials; return what each cost, the project, and the sides' names."""
    project = bench.place("scale")
    ours, peer = bench.tools("0.3.0")
    runs: dict[int, dict[str, dict[str, float]]] = {}
    for count in QUICK_SIZES if bench.quick else [size for size in SIZES if size <= bench.largest]:
        write_suite(project, f"s{count}", count)
        tools = [ours, peer] if count <= SIZES[1] else [ours]
        runs[count] = {tool.name: bench.run(tool, f"s{count}", project, "--jobs", "2") for tool in tools}
    return runs, (project, [ours.name, peer.name])


def _growth(peaks: Mapping[int, Mapping[str, float]], side: str) -> float:
    """Return how much memory (MiB) a thousand more trials need, between a side's smallest and its largest run."""
    sizes = [count for count in peaks if side in peaks[count]]
    first, last = sizes[0], sizes[-1]
    return (peaks[last][side] - peaks[first][side]) / (last - first) * 1000
