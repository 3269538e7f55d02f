"""What a program costs, measured from outside by a small parent; and sides that take turns, with their medians."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["Figures", "figure", "in_turns", "marginal", "spent", "timed"]

Figures = Mapping[str, float]
LONGEST_SECONDS = 1800
PARENT = """
import json, os, resource, sys, time
words = json.load(sys.stdin)
quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1)]
begun = time.perf_counter()
pid = os.posix_spawnp(words[0], words, os.environ, file_actions=quiet)
_, status, used = os.wait4(pid, 0)
wall = time.perf_counter() - begun
print(json.dumps([status, (used.ru_utime + used.ru_stime) * 1000, wall * 1000, used.ru_maxrss / 1024]))
"""


def spent(words: Sequence[str | Path], cwd: Path | None = None, *, env: Mapping[str, str] | None = None) -> dict[str, float]:
    """Run a program to its end and return ``cpu`` and ``wall`` (ms) and ``rss`` (MiB, the largest process's peak).

    CPU is that of the program and of every descendant that was waited for. The parent in between is small, because a
    process's peak begins with that of the one that started it. Raises ``RuntimeError`` with the program's last words
    when it does not end with 0.
    """
    told = json.dumps([str(word) for word in words]).encode()
    parent = [sys.executable, "-I", "-S", "-c", PARENT]
    done = subprocess.run(parent, cwd=cwd, env=env or environment(), input=told, capture_output=True, timeout=LONGEST_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{words[0]} could not be started: {_last_words(done.stderr)}")
    status, cpu, wall, rss = json.loads(done.stdout)
    if status:
        raise RuntimeError(
            f"{' '.join(map(str, words))} ended with {os.waitstatus_to_exitcode(status)}: {_last_words(done.stderr)}"
        )
    return {"cpu": cpu, "wall": wall, "rss": rss}


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without what would steer the programs that are measured."""
    steering = ("EVALWRIGHT_", "EVALCTL_", "PYTHON", "SOURCE_DATE_EPOCH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return kept | {"EVALCTL_ACKNOWLEDGE_UNSANDBOXED_RUNNER": "1"} | more


def timed(action: Callable[[], object]) -> dict[str, float]:
    """Call in this process and return ``cpu`` and ``wall`` (ms)."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return {"wall": (time.perf_counter() - wall) * 1000, "cpu": (time.process_time() - cpu) * 1000}


def in_turns(sides: Mapping[str, Callable[[], Figures]], rounds: int) -> dict[str, dict[str, float]]:
    """Let each side have its turn, so many rounds long, and return the median of each of its figures."""
    taken: dict[str, list[Figures]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, measure in sides.items():
            taken[side].append(measure())
    return {
        side: {name: statistics.median(figures[name] for figures in series) for name in series[0]}
        for side, series in taken.items()
    }


def figure(measured: Mapping[str, Figures], name: str) -> dict[str, float]:
    """Return one figure of every side that has it."""
    return {side: figures[name] for side, figures in measured.items() if name in figures}


def marginal(measure: Callable[[int], Figures], few: int, many: int) -> dict[str, float]:
    """Return what one more costs: the difference of every figure between ``many`` and ``few``, over their difference."""
    less, more = measure(few), measure(many)
    return {name: (more[name] - less[name]) / (many - few) for name in more}


def _last_words(output: bytes) -> str:
    return output.decode(errors="replace").strip()[-500:]
