"""How long a command waits for its isolation: bubblewrap beside a bare one, a restored machine beside a cold boot."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.bench.bench import Absent, Bench
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import in_turns

from evalwright.errors import EvalwrightError
from evalwright.interfaces import Command, Deadline, SandboxRequest
from evalwright.processes import Supervisor
from evalwright.testing import FakeHost
from evalwright_plugins.sandboxes.vm.cache import Cache
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.image import build_image
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox

__all__ = ["bubblewrap", "vm"]

COLD_BOOT = "cold boot"
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


def bubblewrap(bench: Bench) -> Iterator[Line]:
    """Measure the time in which a session of the sandbox runs ``true``, against a bare ``bwrap``."""
    if shutil.which("bwrap") is None:
        raise Absent("bwrap is not installed")
    done = subprocess.run(
        [sys.executable, "-c", SANDBOX_STARTS, str(bench.count(100, 10))], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise Absent(f"bubblewrap does not work here: {done.stderr.strip().splitlines()[-1]}")
    ours, floor = json.loads(done.stdout)
    yield Line(label="wall of a command", unit="ms", sides={OURS: ours, FLOOR: floor}, targets=[Target(3.0, FLOOR)])


def vm(bench: Bench) -> Iterator[Line]:
    """Measure the wall time from opening a session of ``vm`` to the end of its first command, against that of a cold boot."""
    try:
        with FakeHost() as host, Supervisor() as supervisor:
            build_image(Cache(), "busybox", (), supervisor)
            restoring, booting = (VmSandbox(VmConfig(root="busybox", snapshot=snapshot), host) for snapshot in (True, False))
            try:
                restoring.start(Deadline.after(600.0))
                sides = {OURS: lambda: _first_command(bench, restoring), COLD_BOOT: lambda: _first_command(bench, booting)}
                measured = in_turns(sides, bench.rounds)
            finally:
                for sandbox in (restoring, booting):
                    sandbox.close(Deadline.after(30.0))
    except EvalwrightError as error:
        raise Absent(f"the sandbox vm does not work here: {error}") from error
    wall = {side: figures["wall"] for side, figures in measured.items()}
    yield Line(label="wall to the first command done", unit="ms", sides=wall, targets=[Target(1 / 8, COLD_BOOT)])


def _first_command(bench: Bench, sandbox: VmSandbox) -> dict[str, float]:
    place = bench.place("session")
    for name in ("w", "x"):
        (place / name).mkdir()
    started = time.monotonic()
    session = sandbox.open(SandboxRequest(owner="bench", workspace=place / "w", exchange=place / "x"))
    session.execute(Command(argv=["true"], env={"PATH": "/usr/bin"}))
    elapsed = (time.monotonic() - started) * 1000
    session.destroy(Deadline.after(30.0))
    return {"wall": elapsed}
