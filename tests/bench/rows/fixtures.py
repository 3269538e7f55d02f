"""Trials on large fixtures, beside what their workspace costs at the least: a mount, or a copy that is looked at twice."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.bench import Bench, Tool
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import Figures, figure, in_turns, marginal, timed
from tests.bench.suites import write_files, write_suite

from evalwright.workspace.mounts import mount_overlay, unmount

__all__ = ["large_files", "many_files"]

SMALL_TRIAL = "two small files"
COPIED, MOUNTED = 3, 41
LARGE = "large"


def many_files(bench: Bench) -> Iterator[Line]:
    """Measure a trial on a fixture of many files, where an overlay is mounted and where they are copied."""
    files = bench.count(20_000, 500)
    project, fixture = _project(bench, files, 1_000)
    label = f"a trial on {files:,} files"
    measured = in_turns(_sides(bench, project, fixture, "copy") | _peers(bench, project), bench.rounds)
    yield from _cost(f"{label}, copied", measured, 1.3)
    if not _overlays(bench, fixture):
        missing = "no overlay can be mounted here"
        yield Line(label=f"CPU of {label}, overlay", unit="ms", sides={}, targets=[Target(6, FLOOR)], note=missing)
        return
    write_files(write_suite(project, f"s{MOUNTED}", MOUNTED, small=False), files, 1_000)
    measured = in_turns(_sides(bench, project, fixture, "overlay"), bench.rounds)
    yield from _cost(f"{label}, overlay", measured, 6.0)


def large_files(bench: Bench) -> Iterator[Line]:
    """Measure a trial on few large files that are copied: CPU, wall, and how much more memory a run of it needs."""
    size = bench.count(200_000_000, 2_000_000)
    project, fixture = _project(bench, 3, size)
    write_suite(project, "small", 1)
    (project / LARGE).touch()
    ours = bench.tools()[0]
    sides = _sides(bench, project, fixture, "copy") | _peers(bench, project)
    sides[SMALL_TRIAL] = lambda: {"rss": bench.run(ours, "small", project)["rss"] + 8}
    measured = in_turns(sides, bench.rounds)
    yield from _cost(f"a trial on 3 x {size // 1_000_000} MB, copied", measured, 1.3)
    memory = {f"{SMALL_TRIAL} + 8" if side == SMALL_TRIAL else side: value for side, value in figure(measured, "rss").items()}
    yield Line(label="peak memory", unit="MiB", sides=memory, targets=[Target(1.0, f"{SMALL_TRIAL} + 8")])


def _cost(label: str, measured: dict[str, dict[str, float]], times: float) -> Iterator[Line]:
    for name, shown in (("cpu", "CPU"), ("wall", "wall")):
        yield Line(label=f"{shown} of {label}", unit="ms", sides=figure(measured, name), targets=[Target(times, FLOOR)])


def _project(bench: Bench, files: int, file_bytes: int) -> tuple[Path, Path]:
    """Make suites of one case and of :data:`COPIED` on such a fixture, and return the project and the first's fixture."""
    project = bench.place("fixtures")
    fixture, other = (write_suite(project, f"s{count}", count, small=False) for count in (1, COPIED))
    for place in (fixture, other):
        write_files(place, files, file_bytes)
    return project, fixture


def _sides(bench: Bench, project: Path, fixture: Path, strategy: str) -> dict[str, Callable[[], Figures]]:
    """Return our side and the floor's, both with workspaces on the disk of the scratch directory."""
    place = bench.place("workspaces")
    names = (place / f"floor{number}" for number in itertools.count())
    env = {"EVALWRIGHT_WORKSPACES": str(place), "EVALWRIGHT_CLONE": strategy}
    ours = bench.tools()[0]
    action, many = (_overlay_floor, MOUNTED) if strategy == "overlay" else (_copy_floor, COPIED)
    return {
        OURS: functools.partial(_one_more, bench, project, ours, many, env),
        FLOOR: lambda: action(fixture, next(names)),
    }


def _peers(bench: Bench, project: Path) -> dict[str, Callable[[], Figures]]:
    peer = bench.tools("0.3.0")[1]
    return {peer.name: functools.partial(_one_more, bench, project, peer, COPIED, {})}


def _one_more(bench: Bench, project: Path, tool: Tool, many: int, env: dict[str, str]) -> dict[str, float]:
    """Return what one more trial costs, and the peak memory (MiB) of the larger run.

    Runs of large files are removed at once: the peer keeps every workspace, and few inodes make no big delete.
    """
    peaks: list[float] = []

    def run(count: int) -> dict[str, float]:
        cost = bench.run(tool, f"s{count}", project, "--jobs", "1", env=env)
        peaks.append(cost["rss"])
        if (project / LARGE).exists():
            shutil.rmtree(project / "evals" / "runs" / f"r{cost['number']:.0f}")
        return cost

    return marginal(run, 1, many) | {"rss": max(peaks)}


def _overlays(bench: Bench, source: Path) -> bool:
    try:
        _overlay_floor(source, bench.place("probe"))
    except OSError:
        return False
    return True


def _overlay_floor(source: Path, place: Path) -> dict[str, float]:
    """Mount an overlay and look at its upper directory."""
    target, upper, work = (place / name for name in ("target", "upper", "work"))
    for path in (target, upper, work):
        path.mkdir(parents=True)

    def mount_and_look() -> None:
        mount_overlay(target, [source], (upper, work), volatile=True)
        _look(upper)

    cost = timed(mount_and_look)
    unmount(target)
    return cost


def _copy_floor(source: Path, target: Path) -> dict[str, float]:
    """Copy every file by the fewest calls, and look at all of them twice."""

    def copy_and_look() -> None:
        for directory, _, names in os.walk(source):
            goal = f"{target}{directory[len(str(source)) :]}"
            os.mkdir(goal)
            for name in names:
                _copy(f"{directory}/{name}", f"{goal}/{name}")
        _look(target)
        _look(target)

    return timed(copy_and_look)


def _copy(source: str, target: str) -> None:
    reader = os.open(source, os.O_RDONLY)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    while os.copy_file_range(reader, writer, 1 << 30):
        pass
    os.close(writer)
    os.close(reader)


def _look(root: Path) -> None:
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for item in found:
                item.stat(follow_symlinks=False)
                if item.is_dir(follow_symlinks=False):
                    waiting.append(item.path)
