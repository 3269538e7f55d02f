"""Supervision without privileges: the same promises when harness and agents run as a user who owns nothing but a directory."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project, clean_environment
from tests.plugins.conftest import descendants, identities, mentioning

from evalwright.rundir import RunDirectory
from evalwright.testing import soon

Shell = Callable[..., dict[str, Any]]
NOBODY = 65534
PACKAGES = ("evalwright", "evalwright_plugins", "evalwright_adapters", "evalwright_scorers")
PROBE = """
import os, subprocess, sys
import evalwright.cli.dispatch, evalwright.coordinate, regex
subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True, env={}, cwd="/")
assert os.getuid() != 0
"""
RUN = ("run", "demo", "--run-id", "r", "--json")
DAEMON = "(setsid sh -c '(setsid sh -c \"echo \\$\\$ >> {pids}; exec sleep 60\" &) &' &); until [ -s {pids} ]; do :; done"


@dataclass(frozen=True)
class Plain:
    """A user without privileges, the Python that this user can run, and a project that this user owns."""

    python: str
    path: str
    user: int | None
    project: Project

    @property
    def place(self) -> Path:
        return self.project.path

    @property
    def pids(self) -> Path:
        return self.place / "pids"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        for path in (self.place, *self.place.rglob("*")):
            if self.user is not None:
                os.chown(path, self.user, self.user, follow_symlinks=False)
        own = {"HOME": str(self.place), "TMPDIR": str(self.place), "EVALWRIGHT_WORKSPACES": str(self.place / "scratch")}
        return subprocess.Popen(
            [self.python, "-m", "evalwright", *words],
            cwd=self.place,
            env=clean_environment() | own | {"PYTHONPATH": self.path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            user=self.user,
            group=self.user,
            extra_groups=groups_of(self.user),
        )

    def call(self, *words: str) -> Any:
        """Call the command line and return its envelope."""
        process = self.start(*words)
        try:
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        assert stdout, stderr
        return json.loads(stdout)

    def hang(self, runner: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """Start a run and return once its agent and a daemon of it have noted their pids."""
        self.project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": ""}}])
        process = self.start(*RUN)
        assert soon(lambda: len(self.noted()) == 2 and RunDirectory(self.project.run_dir("r")).journal.exists(), 20)
        return process

    def noted(self) -> list[int]:
        """Return the pids that agents have noted."""
        return [int(word) for word in self.pids.read_text().split()] if self.pids.exists() else []


def groups_of(user: int | None) -> list[int] | None:
    """Return the further groups of a user, ``None`` for those of this process."""
    return None if user is None else []


def usable_python(place: Path, user: int | None) -> tuple[str, str]:
    """Return a Python of this version that the user can run, and its path to copies of the packages; skip without one."""
    packages = place / "packages"
    for name in PACKAGES:
        source = Path(str(importlib.import_module(name).__file__)).parent
        shutil.copytree(source, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(packages), sysconfig.get_path("purelib")])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, shutil.which(version, path=f"{os.defpath}:/usr/local/bin")):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            env = {"PYTHONPATH": path, "PATH": os.defpath}
            subprocess.run(
                [python or "", "-c", PROBE],
                cwd=place,
                env=env,
                check=True,
                capture_output=True,
                user=user,
                group=user,
                extra_groups=groups_of(user),
            )
            return str(python), path
    message = f"no {version} that a user without privileges can run"
    if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Return a directory that everybody can enter; pytest's own are closed to other users."""
    made = Path(tempfile.mkdtemp(prefix="evalwright-plain-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def user() -> int | None:
    """Return whom a process is started as: root becomes nobody, anyone else stays."""
    return NOBODY if os.getuid() == 0 else None


@pytest.fixture(scope="module")
def python(place: Path, user: int | None) -> tuple[str, str]:
    """Return the Python to use, and its path."""
    return usable_python(place, user)


@pytest.fixture
def plain(place: Path, python: tuple[str, str], user: int | None) -> Iterator[Plain]:
    """Return the user with an empty project; what still names the project's directory afterwards is killed."""
    project = Path(tempfile.mkdtemp(dir=place))
    (project / "scratch").mkdir()
    yield Plain(python=python[0], path=python[1], user=user, project=Project(project))
    for pid in mentioning(project):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(project)


STUBBORN = (
    "trap '' TERM INT HUP; echo $$ >> {pids}; setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 60' & sleep 60; sleep 60"
)
STORM = (
    "i=0; while [ $i -lt 40 ]; do (setsid sh -c 'trap \"\" TERM; sleep 60 & echo $$ >> {pids}; sleep 60; sleep 60' &); "
    "i=$((i+1)); done; until [ $(wc -l < {pids}) = 40 ]; do :; done"
)


@pytest.mark.parametrize(
    ("line", "seconds", "noted", "status"),
    [
        (DAEMON, 20, 1, "pass"),
        (STUBBORN, 2, 2, "error"),
        ("sleep 60 & echo $! >> {pids}", 20, 1, "pass"),
        (STORM, 20, 40, "pass"),
    ],
    ids=["daemon", "TERM trapped", "holding stdout", "fork storm"],
)
def test_nothing_of_an_agent_outlives_its_trial(
    plain: Plain, shell_runner: Shell, line: str, seconds: int, noted: int, status: str
) -> None:
    runner = shell_runner(line.format(pids=plain.pids), timeout_seconds=seconds)
    plain.project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": ""}}])

    answer = plain.call(*RUN)

    assert answer["data"]["run"]["status_counts"][status] == 1, answer
    assert len(plain.noted()) == noted
    assert identities(plain.noted()) == []
    assert mentioning(plain.place) == []
    record = plain.project.record("r", "a", "runner.json")
    assert record["timed_out"] == (status == "error")
    assert record["leaked_processes"] >= noted - (status == "error")
    assert record["duration_ms"] < 15_000
    assert plain.project.artifact("r", "a", "score.json").stat().st_uid != 0


def test_closed_directory_does_not_keep_planted_configuration_from_being_removed(plain: Plain, shell_runner: Shell) -> None:
    runner = shell_runner("mkdir -p a/b && echo x > a/b/conftest.py && chmod 500 a/b a .")
    scorer = {"use": "tests", "argv": ["/bin/sh", "-c", "! test -e a/b/conftest.py"], "format": "exit"}
    plain.project.suite(runner=runner, scorers=[scorer], cases=[{"id": "a"}])

    answer = plain.call(*RUN)

    assert answer["data"]["run"]["status_counts"]["pass"] == 1, answer


def hanging(plain: Plain) -> str:
    """Return a line that makes a daemon and hangs, deaf to polite signals; once ``go`` exists it ends at once."""
    daemon, go = DAEMON.format(pids=plain.pids), plain.place / "go"
    return f"if [ ! -e {go} ]; then trap '' TERM INT HUP; {daemon}; echo $$ >> {plain.pids}; sleep 60; sleep 60; fi"


def test_killed_harness_leaves_nothing_and_its_run_goes_on(plain: Plain, shell_runner: Shell) -> None:
    process = plain.hang(shell_runner(hanging(plain)))
    everything = identities(descendants(process.pid))

    process.kill()
    process.communicate()

    assert soon(lambda: not any(one.alive for one in everything), 2)
    assert soon(lambda: not mentioning(plain.place), 2)
    (plain.place / "go").touch()
    assert plain.call("run", "--resume", "r", "--json")["data"]["run"]["status_counts"]["pass"] == 1


def test_status_ends_what_is_left_when_everything_that_watched_was_killed_too(plain: Plain, shell_runner: Shell) -> None:
    process = plain.hang(shell_runner(hanging(plain)))
    agents = {pid for noted in plain.noted() for pid in descendants(noted)}
    watchers = [pid for pid in descendants(process.pid) if pid not in agents]
    assert len(watchers) > 1
    stops = [(pid, signal.SIGSTOP) for pid in watchers]
    kills = [(pid, signal.SIGKILL) for pid in reversed(watchers)]  # a parent that dies first has its stopped children go on
    for pid, number in stops + kills:
        with contextlib.suppress(ProcessLookupError):  # one that was only just being started
            os.kill(pid, number)
    process.communicate()
    assert len(identities(plain.noted())) == 2, "nothing was left to end"

    answer = plain.call("status", "r", "--json")

    assert "W_STRAYS_ENDED" in [warning["code"] for warning in answer["warnings"]]
    assert answer["data"]["state"] == "stale"
    assert identities(plain.noted()) == []
    assert mentioning(plain.place) == []


def test_bubblewrap_isolates_for_an_ordinary_user_too(plain: Plain, require: Callable[[str], None]) -> None:
    require("bwrap")
    script = f"ls {plain.place} 2>/dev/null && echo found; id -u; echo b >> a.txt"
    runner = {"shell": True, "command": script}
    plain.project.suite(
        runner=runner, cases=[{"id": "a", "expect": {"exact": "1000\n"}}], scorers=[{"name": "exact"}], sandbox="bubblewrap"
    )
    assert plain.call(*RUN)["ok"]
    assert plain.project.record("r", "a", "runner.json")["isolation"] == "namespaces"
    assert [row["path"] for row in plain.project.record("r", "a", "workspace-diff.json")["changed_paths"]] == ["a.txt"]
