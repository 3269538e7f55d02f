"""The rows of the bench. Each sets up, interleaves ours and its floor, and returns medians in the unit that its label names."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.bench import floors, resampling
from tests.bench.judges import judge_calls

from evalwright.interfaces import Command, Deadline, SandboxRequest
from evalwright.processes import Supervisor
from evalwright.testing import FakeHost
from evalwright_plugins.sandboxes.vm.cache import Cache
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.image import build_image
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox

Row = dict[str, float]
ROUNDS = 5
PYTHON = sys.executable
FLOOR = [PYTHON, "-I", "-c", "pass"]
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
TEN_RUNS = """
import json, sys
from pathlib import Path
from evalwright.coordinate import RunRequest, run_suite
from evalwright.hooks import Observers
from evalwright.processes import Stop
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import load_suite
evals, suite = Path("evals"), sys.argv[1]
sizes = []
for number in range(10):
    request = RunRequest(
        checked=load_suite(evals / "suites" / suite),
        layout=Layout(evals, evals / "runs"),
        settings=Settings(jobs=2),
        run_id=f"{sys.argv[2]}-{number}",
    )
    run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=lambda code, message: None)
    sizes.append(int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024)
print(json.dumps(sizes))
"""


SANDBOX_STARTS = """
import json, os, statistics, sys, tempfile, time
from pathlib import Path
from evalwright.interfaces import Command, Deadline, SandboxRequest, give_tree
from evalwright_plugins.sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox
BARE = ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
BARE += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/true"]
sandbox = BubblewrapSandbox(BubblewrapConfig(), None)
with tempfile.TemporaryDirectory() as scratch:
    root = Path(scratch)
    root.chmod(0o711)
    for name in "wx":
        (root / name).mkdir()
        give_tree(root / name, sandbox.user)
    session = sandbox.open(SandboxRequest(owner="r/c/1", workspace=root / "w", exchange=root / "x"))
    times = []
    for _ in range(int(sys.argv[1])):
        begun = time.perf_counter()
        session.execute(Command(argv=["/usr/bin/true"]))
        between = time.perf_counter()
        os.waitpid(os.posix_spawnp("bwrap", BARE, os.environ), 0)
        times.append((between - begun, time.perf_counter() - between))
    session.destroy(Deadline.after(10))
sandbox.close(Deadline.after(10))
print(json.dumps([statistics.median(side) * 1000 for side in zip(*times)]))
"""


def start() -> dict[str, Row]:
    """Return the CPU of the verbs that answer from literals, against an empty Python."""
    calls = {name: [PYTHON, "-m", "evalwright", *words] for name, words in STARTS.items()}
    return {name: _compared(lambda call=call: _cpu(call), lambda: _cpu(FLOOR)) for name, call in calls.items()}


def trial() -> dict[str, Row]:
    """Return the CPU per no-op trial (two files, ``/bin/true``, three scorers, two jobs), against spawn and copy alone."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        few, many = 20, 120
        for count in (few, many):
            _write_suite(root, count)
        numbers = iter(range(1000))

        def ours(count: int) -> float:
            words = ["run", f"s{count}", "--run-id", f"r{next(numbers)}", "--jobs", "2"]
            return _cpu([PYTHON, "-m", "evalwright", *words], cwd=root)

        def floor(count: int) -> float:
            target = root / f"floor{next(numbers)}"
            target.mkdir()
            fixture = str(root / "evals/suites/s20/fixtures/w")
            return _cpu([PYTHON, "-I", "-c", SPAWN_AND_COPY, str(count), fixture, str(target)])

        difference = many - few
        return {
            "cpu per trial": _compared(
                lambda: (ours(many) - ours(few)) / difference, lambda: (floor(many) - floor(few)) / difference
            )
        }


def parallel() -> dict[str, Row]:
    """Return the wall time of 500 trials of ``sleep 1``, all at once, against a loop of bare ``posix_spawn``; CPU too."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        _write_suite(root, 500, argv=["/bin/sleep", "1"])
        numbers = iter(range(1000))

        def ours() -> tuple[float, float]:
            return _timed([PYTHON, "-m", "evalwright", "run", "s500", "--run-id", f"r{next(numbers)}", "--jobs", "500"], root)

        pairs = [(ours(), _timed([PYTHON, "-I", "-c", SLEEPERS, "500"], root)) for _ in range(ROUNDS)]
        return {
            label: _row(*(statistics.median(pair[side][part] for pair in pairs) for side in (0, 1)))
            for part, label in enumerate(("wall", "cpu"))
        }


def memory() -> dict[str, Row]:
    """Return the memory (MiB) of one process after ten runs of 1,000 no-op trials, against that after its second run."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        _write_suite(root, 1000)
        done = subprocess.run([PYTHON, "-c", TEN_RUNS, "s1000", "m"], cwd=root, capture_output=True, text=True, check=True)
        sizes: list[float] = json.loads(done.stdout)
        return {"resident (MiB)": _row(sizes[-1], sizes[1])}


def bubblewrap() -> dict[str, Row]:
    """Return the time (ms) in which a session of the sandbox runs ``true``, against a bare ``bwrap``."""
    done = subprocess.run([PYTHON, "-c", SANDBOX_STARTS, "100"], capture_output=True, text=True, check=True)
    return {"wall of a command": _row(*json.loads(done.stdout))}


def vm() -> dict[str, Row]:
    """Return the wall time from opening a session of ``vm`` to the end of its first command, against that of a cold boot."""
    with tempfile.TemporaryDirectory() as scratch, FakeHost() as host, Supervisor() as supervisor:
        build_image(Cache(), "busybox", (), supervisor)
        restoring, booting = (VmSandbox(VmConfig(root="busybox", snapshot=snapshot), host) for snapshot in (True, False))
        numbers = iter(range(1000))

        def first_command(sandbox: VmSandbox) -> float:
            place = Path(scratch, str(next(numbers)))
            for name in ("w", "x"):
                (place / name).mkdir(parents=True)
            started = time.monotonic()
            session = sandbox.open(SandboxRequest(owner="bench", workspace=place / "w", exchange=place / "x"))
            session.execute(Command(argv=["true"], env={"PATH": "/usr/bin"}))
            elapsed = (time.monotonic() - started) * 1000
            session.destroy(Deadline.after(30.0))
            return elapsed

        try:
            restoring.start(Deadline.after(600.0))
            return {"wall to first command": _compared(lambda: first_command(restoring), lambda: first_command(booting))}
        finally:
            for sandbox in (restoring, booting):
                sandbox.close(Deadline.after(30.0))


def workspace_many() -> dict[str, Row]:
    """Return the time of a clone of 20,000 files and of telling its changes; and the CPU of a whole no-op trial on them.

    The floor where overlays work is one that is mounted, looked at and unmounted; elsewhere a lean copy, looked at twice.
    """
    rows = floors.workspaces(files=20_000, file_bytes=1_000, rounds=ROUNDS, strategies=("overlay", "copy"))
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        few, many = 1, 9
        for count in (few, many):
            _write_suite(root, count)
            floors.write_files(root / f"evals/suites/s{count}/fixtures/w", 20_000, 1_000)
        numbers = iter(range(1000))

        def ours(count: int) -> float:
            words = ["run", f"s{count}", "--run-id", f"r{next(numbers)}", "--jobs", "1"]
            return _cpu([PYTHON, "-m", "evalwright", *words], cwd=root)

        trial = statistics.median((ours(many) - ours(few)) / (many - few) for _ in range(ROUNDS))
    return rows | {"overlay, whole trial, cpu (ms)": _row(trial, rows["overlay, cpu (ms)"]["floor"])}


def workspace_large() -> dict[str, Row]:
    """Return the time of a clone of 3 files of 200 MB by copying, and of telling its changes; the floor is ``copy_file_range``.

    The last row is the memory that it needs: before, and at the most.
    """
    return floors.workspaces(files=3, file_bytes=200_000_000, rounds=ROUNDS, strategies=("copy",))


def bootstrap() -> dict[str, Row]:
    """Return the CPU (ms) of a paired hierarchical bootstrap of 2,000 resamples of 10,000 cases x 5 repeats in two arms.

    The floor draws every case and repeat by index, with numpy.
    """
    return resampling.bootstraps(cases=10_000, repeats=5, resamples=2000, rounds=ROUNDS)


STARTS: Mapping[str, Sequence[str]] = {"--version": ["--version"], "--help": ["--help"], "capabilities": ["capabilities"]}
ROWS: Mapping[str, Callable[[], dict[str, Row]]] = {
    "start": start,
    "trial": trial,
    "parallel": parallel,
    "memory": memory,
    "bubblewrap": bubblewrap,
    "vm": vm,
    "workspace-many": workspace_many,
    "workspace-large": workspace_large,
    "bootstrap": bootstrap,
    "judge": judge_calls,
}


def _compared(ours: Callable[[], float], floor: Callable[[], float]) -> Row:
    pairs = [(ours(), floor()) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return _row(mine, theirs)


def _row(ours: float, floor: float) -> Row:
    return {"ours": ours, "floor": floor, "ratio": ours / floor}


def _timed(command: Sequence[str], cwd: Path) -> tuple[float, float]:
    """Run a command and return its wall time and CPU time in milliseconds."""
    started = time.monotonic()
    cpu = _cpu(command, cwd=cwd)
    return (time.monotonic() - started) * 1000, cpu


def _cpu(command: Sequence[str], cwd: Path | None = None) -> float:
    """Run a command and return the CPU that it and its children used, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _write_suite(root: Path, count: int, argv: Sequence[str] = ("/bin/true",)) -> None:
    directory = root / "evals" / "suites" / f"s{count}"
    (directory / "fixtures" / "w").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (directory / "fixtures" / "w" / name).write_text(name * 20)
    suite = {
        "name": f"s{count}",
        "runner": {"argv": list(argv)},
        "scorers": [{"name": "exit-code"}, {"name": "exact"}, {"name": "workspace-diff"}],
    }
    (directory / "suite.json").write_text(json.dumps(suite))
    case = {"task": "t", "workspace": "fixtures/w", "expect": {"exit_code": 0, "exact": "", "files_forbidden": ["a.txt"]}}
    lines = (json.dumps({"id": f"c{number}", **case}) + "\n" for number in range(count))
    (directory / "cases.jsonl").write_text("".join(lines))
