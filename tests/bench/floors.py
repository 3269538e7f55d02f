"""Workspaces against what their way of being made costs at the least, in turns in one process."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evalwright.store import DirectoryStore
from evalwright.workspace import Cloner, Fixture, Scratch
from evalwright.workspace.mounts import mount_overlay, unmount

__all__ = ["workspaces"]

MEBIBYTE = 1 << 20
PER_DIRECTORY = 100
Row = dict[str, float]


def workspaces(*, files: int, file_bytes: int, rounds: int, strategies: Sequence[str]) -> dict[str, Row]:
    """Return, for each strategy, the wall time and CPU time (ms) of a clone and its scan beside those of the floor.

    The last row is the resident memory (MiB) at the most after all of it, beside that before.
    """
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        source = place / "source"
        write_files(source, files, file_bytes)
        store = DirectoryStore(place / "store")
        digest = store.put_tree(source)
        fixture = Fixture(digest, store.tree(digest), store.verified)
        scratch = Scratch(place)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows: dict[str, Row] = {}
        for strategy in strategies:
            cloner = Cloner(strategy)
            floor = _overlay_floor if strategy == "overlay" else _copy_floor
            _ours(cloner, fixture, scratch)
            pairs = [(_ours(cloner, fixture, scratch), floor(source, place)) for _ in range(rounds)]
            for part, unit in enumerate(("wall", "cpu")):
                mine, theirs = (statistics.median(pair[side][part] for pair in pairs) for side in (0, 1))
                rows[f"{strategy}, {unit} (ms)"] = {"ours": mine, "floor": theirs, "ratio": mine / theirs}
        scratch.close()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return rows | {"resident (MiB)": {"ours": after, "floor": before, "ratio": after / before}}


def write_files(root: Path, files: int, file_bytes: int) -> None:
    """Write so many files of that size, a hundred in each directory."""
    block = os.urandom(min(file_bytes, MEBIBYTE))
    for number in range(files):
        path = root / f"d{number // PER_DIRECTORY}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for start in range(0, file_bytes, len(block)):
                file.write(block[: file_bytes - start])


def _ours(cloner: Cloner, fixture: Fixture, scratch: Scratch) -> tuple[float, float]:
    place = scratch.place(0)

    def clone_and_scan() -> None:
        if cloner.clone(fixture, place).scan() != fixture.manifest:
            raise AssertionError("the clone is not the fixture")

    spent = _timed(clone_and_scan)
    scratch.discard(place)
    return spent


def _overlay_floor(source: Path, place: Path) -> tuple[float, float]:
    """Mount an overlay, look at its upper directory."""
    names = [place / f"floor-{name}" for name in ("target", "upper", "work")]
    target, upper, work = names
    for path in names:
        path.mkdir()

    def mount_and_look() -> None:
        mount_overlay(target, [source], (upper, work), volatile=True)
        _look(upper)

    spent = _timed(mount_and_look)
    unmount(target)
    for path in names:
        shutil.rmtree(path)
    return spent


def _copy_floor(source: Path, place: Path) -> tuple[float, float]:
    """Copy every file by the fewest calls, and look at all of them twice."""
    target = place / "floor"

    def copy_and_look() -> None:
        for directory, _, names in os.walk(source):
            goal = f"{target}{directory[len(str(source)) :]}"
            os.mkdir(goal)
            for name in names:
                _copy(f"{directory}/{name}", f"{goal}/{name}")
        _look(target)
        _look(target)

    spent = _timed(copy_and_look)
    shutil.rmtree(target)
    return spent


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


def _timed(action: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
