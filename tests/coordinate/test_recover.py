"""Recovery: what a run's dead owner left alive is ended by the next verb that is given the run; a live run is not touched."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened

from evalwright.coordinate import Lease
from evalwright.coordinate.recover import recover
from evalwright.processes import current_process, living_strays
from evalwright.processes.identity import parent_of, state_of
from evalwright.rundir import RunDirectory
from evalwright.testing import soon

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
ONE_MEANS = {"EVALWRIGHT_SUPERVISION": "process"}
VERBS = [
    ("status", "r"),
    ("report", "r"),
    ("jobs", "get", "r"),
    ("explain", "r", "a"),
    ("verify", "r"),
    ("run", "--resume", "r"),
]


def living(file: Path) -> list[int]:
    """Return those processes named in a file that still run; zombies do not."""
    pids = [int(word) for word in file.read_text().split()] if file.exists() else []
    return [pid for pid in pids if state_of(pid) not in {"", "Z", "X"}]


def above(pid: int, top: int) -> list[int]:
    """Return the ancestors of a process below ``top``."""
    found: list[int] = []
    parent = parent_of(pid)
    while parent and parent != top:
        found.append(parent)
        parent = parent_of(parent)
    assert parent == top, "the command does not descend from its harness"
    return found


class Scene:
    """A run of one trial that hangs in two sessions until the file ``go`` exists, unless ``hang`` did not when it began."""

    def __init__(self, project: Project, shell_runner: Shell) -> None:
        self.project = project
        self.run = RunDirectory(project.run_dir("r"))
        self.pids = project.path / "pids"
        self.go = project.path / "go"
        self.hang = project.path / "hang"
        self.hang.touch()
        line = (
            f"if [ -e {self.hang} ]; then echo $$ >> {self.pids}; (setsid sh -c 'echo $$ >> {self.pids}; "
            f"while [ ! -e {self.go} ]; do sleep 0.1; done' &); while [ ! -e {self.go} ]; do sleep 0.1; done; fi; printf ok"
        )
        runner = shell_runner(line, timeout_seconds=50)
        project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "ok"}}], scorers=[{"use": "exact"}])

    def start(self) -> subprocess.Popen[bytes]:
        """Start the run and return once its trial hangs and is in the journal."""
        process = self.project.start("run", "demo", "--run-id", "r", "--json", env=ONE_MEANS)
        if not soon(lambda: len(living(self.pids)) == 2 and self.journaled(), 15):
            process.kill()
            raise AssertionError(process.communicate())
        return process

    def journaled(self) -> bool:
        text = self.run.journal.read_text() if self.run.journal.exists() else ""
        command = self.pids.read_text().split()[0]
        return f'"pid": {command},' in text

    def orphan(self) -> None:
        """Kill harness, fork server and supervisor at one moment, so that none of them can end the trial."""
        process = self.start()
        leader = int(self.pids.read_text().split()[0])
        process.send_signal(signal.SIGSTOP)
        assert soon(lambda: state_of(process.pid) == "T")
        doomed = above(leader, process.pid)
        for pid in reversed(doomed):
            os.kill(pid, signal.SIGSTOP)
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate(timeout=120)
        assert len(living(self.pids)) == 2
        self.hang.unlink()

    def end(self) -> None:
        for pid in living(self.pids):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def scene(project: Project, shell_runner: Shell) -> Iterator[Scene]:
    scene = Scene(project, shell_runner)
    yield scene
    scene.end()


@pytest.mark.parametrize("words", shortened(VERBS, [VERBS[0], VERBS[-1]]), ids=lambda words: " ".join(words))
def test_verb_that_is_given_a_run_ends_what_its_dead_owner_left(scene: Scene, words: tuple[str, ...]) -> None:
    scene.orphan()

    answer = scene.project.call(*words, "--json")

    assert living(scene.pids) == []
    assert "W_STRAYS_ENDED" in answer.warning_codes
    assert not scene.run.journal.exists()


def test_doctor_counts_strays_without_ending_them_and_names_the_way(scene: Scene) -> None:
    scene.orphan()

    entry = scene.project.call("doctor", "--component", "processes", "--json").data["components"]["processes"]

    assert entry["state"] == "degraded"
    assert re.search(r"\b[2-9] of run r\b", entry["details"])
    assert entry["recommended_action"]["command"] == "evalwright status r"
    assert len(living(scene.pids)) == 2


def test_live_run_is_never_touched_by_a_verb_that_looks_at_it(scene: Scene) -> None:
    process = scene.start()
    try:
        for words in VERBS:
            answer = scene.project.call(*words, "--json")
            assert "W_STRAYS_ENDED" not in answer.warning_codes
        doctor = scene.project.call("doctor", "--component", "processes", "--json")
        assert doctor.data["components"]["processes"]["state"] == "healthy"
        scene.project.call("jobs", "prune", "--yes", "--json")
        assert len(living(scene.pids)) == 2
        assert scene.run.journal.exists()
    finally:
        scene.go.touch()
        stdout, _ = process.communicate(timeout=120)
    assert json.loads(stdout)["data"]["run"]["status_counts"]["pass"] == 1


def test_finished_run_keeps_no_journal(scene: Scene) -> None:
    scene.hang.unlink()

    answer = scene.project.call("run", "demo", "--run-id", "r", "--json")

    assert answer.data["run"]["status_counts"]["pass"] == 1
    assert not scene.run.journal.exists()


class Warnings:
    """Takes warnings."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def __call__(self, code: str, message: str) -> None:
        self.found.append((code, message))


def left(tmp_path: Path) -> tuple[RunDirectory, subprocess.Popen[bytes]]:
    """Return a run with a journal that names a process which works in its trial's directory, and that process."""
    run, place = RunDirectory(tmp_path / "r"), tmp_path / "evalwright-0" / "1-1-1" / "0123456789abcdef"
    run.path.mkdir()
    place.mkdir(parents=True)
    run.journal.write_text(json.dumps({"by": current_process().as_json(), "place": str(place), "processes": []}) + "\n")
    return run, subprocess.Popen(["sleep", "60"], cwd=place, start_new_session=True)


@pytest.fixture
def abandoned(tmp_path: Path) -> Iterator[RunDirectory]:
    run, process = left(tmp_path)
    yield run
    process.kill()
    process.wait()


def test_run_whose_lock_is_held_is_left_alone_though_its_record_names_nobody(abandoned: RunDirectory) -> None:
    warnings = Warnings()

    with Lease.locked(abandoned):
        recover(abandoned, warnings)

    assert warnings.found == []
    assert living_strays(abandoned.journal) == 1


def test_run_that_a_living_process_reserved_is_left_alone(abandoned: RunDirectory) -> None:
    lease = Lease.take(abandoned, 60)
    try:
        recover(abandoned, Warnings())
        assert living_strays(abandoned.journal) == 1
    finally:
        lease.release()


def test_run_that_nobody_works_on_is_recovered_once_with_the_number_of_what_was_ended(abandoned: RunDirectory) -> None:
    warnings = Warnings()

    recover(abandoned, warnings)
    recover(abandoned, warnings)

    ((code, message),) = warnings.found
    assert code == "W_STRAYS_ENDED"
    assert message.startswith("1 processes")
    assert not abandoned.journal.exists()
