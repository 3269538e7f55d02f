"""The rows, by id: what each measures, and the function that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tests.bench.bench import Bench
from tests.bench.lines import Line
from tests.bench.rows import (
    durability,
    fixtures,
    isolation,
    judges,
    output,
    reading,
    resampling,
    scale,
    starting,
    trials,
)

__all__ = ["ROWS", "Measure"]

Measure = Callable[[Bench], Iterator[Line]]
ROWS: Mapping[str, tuple[str, Measure]] = {
    "P1": ("answers that need nothing; the floor is Python's start", starting.answers),
    "P1b": ("a run up to its first command, and a run of one trial; the floor is Python's start", starting.first_command),
    "P2": ("CPU of one more trial that does nothing; the floor spawns and copies, one after the other", trials.marginal_cpu),
    "P3": ("wall time of the same", trials.marginal_wall),
    "P4": ("disk of the same; the floor is the copied fixture", trials.disk),
    "P5": ("a trial on a fixture of many files; the floor copies and looks twice, or mounts an overlay", fixtures.many_files),
    "P6": ("a trial on a fixture of large files; the floor copies in the kernel", fixtures.large_files),
    "P7": ("an agent that prints without end; the floor is a bounded reader", output.flood),
    "P8": ("report and status of a finished run; the floor is Python's start", reading.reports),
    "P9": ("a list of runs; the floor is Python's start", reading.listing),
    "P10": ("a resume up to the first trial that it finishes; the floor is Python's start", reading.resuming),
    "P11": ("a durable commit; the floor writes and syncs the same bytes", durability.commits),
    "P12": ("many trials that wait, all at once; the floor spawns as many", trials.waiting),
    "P13": ("questions to a judge whose server takes 50 ms; the floor is a plain socket", judges.judge_calls),
    "P14": ("a command under bubblewrap; the floor is a bare bwrap", isolation.bubblewrap),
    "P15": ("a virtual machine from its snapshot to its first command done", isolation.vm),
    "P16": ("a paired hierarchical bootstrap; the floor resamples by index with numpy", resampling.bootstraps),
    "P17": ("memory of a run of many trials", scale.memory),
    "S1": ("runs of growing size, each measured once", scale.curve),
    "S2": ("a report over the largest of them; the floor is Python's start", scale.report),
    "S3": ("a long list of runs; the floor is Python's start", scale.long_list),
    "S4": ("a large suite validated; the floor is Python's start", scale.large_suite),
}
