"""What one more trial costs that does nothing: CPU, wall, disk; and many trials that only wait."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.bench import Bench, Tool
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import Figures, figure, in_turns, marginal, spent
from tests.bench.suites import write_suite

from evalwright.processes.cgroups import Cgroups

__all__ = ["disk", "marginal_cpu", "marginal_wall", "waiting"]

PEER = "evalctl 0.3.0"
TWO_JOBS, BARE = "2 jobs", "same files, bare"
BLOCK_BYTES = 512
WORKSPACES = {"TMPDIR": "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()}
"""Where every side puts the workspaces that it removes: ext4 searches long for an inode when many were just given back, so
that on one disk each side would pay for what another has removed."""
SPAWN_AND_COPY = """
import os, shutil, sys
for number in range(int(sys.argv[1])):
    shutil.copytree(sys.argv[2], f"{sys.argv[3]}/{number}")
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
"""
SLEEPERS = """
import os, sys
pids = [os.posix_spawn("/bin/sleep", ["sleep", "1"], {}) for _ in range(int(sys.argv[1]))]
for pid in pids:
    os.waitpid(pid, 0)
"""

BARE_TRIALS = """
import hashlib, os, sys
count, width, bundle, fixture, target, scratch, *program = sys.argv[1:]
read = lambda place: {item.name: open(item.path, "rb").read() for item in os.scandir(place) if item.is_file()}
evidence, files = read(bundle), read(fixture)
ledger = os.open(f"{target}/ledger", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
flying = {}

def write(path, data):
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(descriptor, data)
    os.close(descriptor)

def begin(number):
    os.write(ledger, b"x" * 400)
    os.mkdir(f"{scratch}/{number}")
    for name, data in files.items():
        write(f"{scratch}/{number}/{name}", data)
    reader, writer = os.pipe2(os.O_CLOEXEC)
    streams = [(os.POSIX_SPAWN_DUP2, writer, stream) for stream in (1, 2)]
    flying[os.posix_spawn(program[0], program, {}, file_actions=streams)] = number, reader
    os.close(writer)

def end(number, reader):
    while os.read(reader, 65536):
        pass
    os.close(reader)
    for name in files:
        os.stat(f"{scratch}/{number}/{name}")
    os.mkdir(f"{target}/b{number}")
    held = {}
    for name, data in evidence.items():
        digest = hashlib.sha256(data).digest()
        if digest in held:
            os.link(held[digest], f"{target}/b{number}/{name}")
        else:
            held[digest] = f"{target}/b{number}/{name}"
            write(held[digest], data)
    os.rename(f"{target}/b{number}", f"{target}/c{number}")
    for name in files:
        os.unlink(f"{scratch}/{number}/{name}")
    os.rmdir(f"{scratch}/{number}")
    os.write(ledger, b"x" * 600)

begun = 0
while begun < int(count) or flying:
    while begun < int(count) and len(flying) < int(width):
        begin(begun)
        begun += 1
    pid, _ = os.waitpid(-1, 0)
    while pid:
        end(*flying.pop(pid))
        pid = os.waitpid(-1, os.WNOHANG)[0] if flying else 0
    os.fdatasync(ledger)
"""


def marginal_cpu(bench: Bench) -> Iterator[Line]:
    """Measure the CPU of one more trial (two files, ``/bin/true``, three scorers, two jobs)."""
    targets = [Target(_times(2.5, 5.0), FLOOR), Target(0.3, PEER)]
    yield Line(label="CPU per trial", unit="ms", sides=figure(_trials(bench), "cpu"), targets=targets, note=_supervision())


def marginal_wall(bench: Bench) -> Iterator[Line]:
    """Measure the wall time of the same, and four jobs against two."""
    measured = _trials(bench)
    sides = {side: value for side, value in figure(measured, "wall").items() if side != TWO_JOBS}
    yield Line(label="wall per trial, 2 jobs", unit="ms", sides=sides, targets=[Target(2.0, FLOOR)])
    jobs = {OURS: measured["4 jobs"]["four"], TWO_JOBS: measured[OURS]["wall"]}
    yield Line(label="wall per trial, 4 jobs", unit="ms", sides=jobs, targets=[Target(1.05, TWO_JOBS)])


def disk(bench: Bench) -> Iterator[Line]:
    """Measure what stays on the disk of one more trial."""
    measured = _trials(bench)
    yield Line(label="disk per trial", unit="KiB", sides=figure(measured, "disk"), targets=[Target(48.0)])
    yield Line(label="files and directories per trial", unit="", sides=figure(measured, "entries"))


def waiting(bench: Bench) -> Iterator[Line]:
    """Measure trials of ``sleep 1``, all at once."""
    count = bench.count(500, 50)
    project = bench.place("waiting")
    write_suite(project, "sleep", count, ["/bin/sleep", "1"])
    sides = bench.sides(lambda tool: bench.run(tool, "sleep", project, "--jobs", str(count), env=WORKSPACES))
    sides[FLOOR] = lambda: spent([sys.executable, "-I", "-c", SLEEPERS, str(count)])
    sides[BARE] = lambda: bare(bench, project, count, count, "/bin/sleep", "1")
    measured = in_turns(sides, bench.rounds)
    label = f"{count} x sleep 1, {count} jobs"
    yield Line(label=f"wall of {label}", unit="ms", sides=figure(measured, "wall"), targets=[Target(1.5, FLOOR)])
    cpu = [Target(_times(2.5, 5.0), FLOOR)]
    yield Line(label=f"CPU of {label}", unit="ms", sides=figure(measured, "cpu"), targets=cpu, note=_supervision())


@functools.cache
def _trials(bench: Bench) -> Mapping[str, Mapping[str, float]]:
    """Return, for each side, the medians of one more trial. Three rows tell of it; it is measured once."""
    project = bench.place("trials")
    few, many = bench.count(40, 10), bench.count(400, 40)
    fixture = write_suite(project, f"s{few}", few)
    write_suite(project, f"s{many}", many)

    def run(tool: Tool, jobs: int, count: int) -> dict[str, float]:
        cost = bench.run(tool, f"s{count}", project, "--jobs", str(jobs), env=WORKSPACES)
        return cost | occupied(project / "evals" / "runs" / f"r{cost['number']:.0f}")

    def four() -> dict[str, float]:
        ours = bench.tools()[0]
        return {"four": marginal(functools.partial(run, ours, 4), few, many)["wall"]}

    def floor(count: int) -> dict[str, float]:
        target = bench.place("floor")
        cost = spent([sys.executable, "-I", "-c", SPAWN_AND_COPY, str(count), str(fixture), str(target)])
        return cost | occupied(target)

    sides = bench.sides(lambda tool: marginal(functools.partial(run, tool, 2), few, many))
    sides[FLOOR] = lambda: marginal(floor, few, many)
    sides[BARE] = lambda: marginal(lambda count: bare(bench, project, count, 2, "/bin/true"), few, many)
    return in_turns(sides | {"4 jobs": four}, bench.rounds)


def bare(bench: Bench, project: Path, count: int, width: int, *program: str) -> Figures:
    """Measure a loop that does for trials what the record on disk asks for, and nothing else; a run was there before.

    It fills a workspace, starts the program, reads its output, looks at the workspace, writes, digests and renames the files
    of a bundle, removes the workspace, and makes two lines of a ledger durable.
    """
    bundle = next(project.glob("evals/runs/*/cases/*"))
    fixture = next(project.glob("evals/suites/*/fixtures/w"))
    target = bench.place("bare")
    with tempfile.TemporaryDirectory(dir=WORKSPACES["TMPDIR"]) as scratch:
        places = [bundle, fixture, target, scratch]
        return spent([sys.executable, "-I", "-c", BARE_TRIALS, str(count), str(width), *places, *program])


def occupied(root: Path) -> dict[str, float]:
    """Return what a directory occupies: ``disk`` (KiB of allocated blocks) and ``entries`` (files and directories)."""
    blocks = entries = 0
    for directory, _, files in os.walk(root):
        for path in (directory, *(f"{directory}/{name}" for name in files)):
            blocks += os.lstat(path).st_blocks
            entries += 1
    return {"disk": blocks * BLOCK_BYTES / 1024, "entries": float(entries)}


@functools.cache
def _has_cgroups() -> bool:
    """Tell whether commands of this machine run in cgroups of their own, which needs no supervisor for each."""
    cgroups = Cgroups.make()
    if cgroups is not None:
        cgroups.root.rmdir()
    return cgroups is not None


def _times(with_cgroups: float, without: float) -> float:
    return with_cgroups if _has_cgroups() else without


def _supervision() -> str:
    return "" if _has_cgroups() else "no cgroup v2 directory is writable here: a supervisor is forked for every command"
