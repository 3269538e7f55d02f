"""``evalwright worker``: one trial in a process of its own, which ends with its spec, its coordinator or a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.interfaces import Job, Outcome
from evalwright.model import TrialSpec
from evalwright.processes import current_process
from evalwright.processes.identity import identity_of, state_of
from evalwright.registry import Registry
from evalwright.rundir import changed_artifacts, sealed_digests
from evalwright.store import DirectoryStore
from evalwright.testing import SmallProject, soon
from evalwright.testing._detached_queue import PlainStore
from evalwright.worker import lock_of, read_outcome

if TYPE_CHECKING:
    from tests.conftest import Project

HANGING = """
echo $$ >> {pids}
setsid sh -c 'trap "" TERM INT HUP; echo $$ >> {pids}; sleep 60; sleep 60' &
trap '' TERM
until [ "$(wc -l < {pids})" = 2 ]; do sleep 0.01; done
touch {started}
sleep 60
sleep 60
"""


def living(file: Path) -> list[int]:
    """Return those processes named in a file that still run; zombies do not."""
    pids = [int(word) for word in file.read_text().split()] if file.exists() else []
    return [pid for pid in pids if state_of(pid) not in {"", "Z", "X"}]


class Scene:
    """One trial's spec on disk, and the command line that carries it out."""

    def __init__(self, project: Project, task: str = "printf right") -> None:
        self.project = project
        self.pids = project.path / "pids"
        self.started = project.path / "started"
        self.scratch = project.path / "scratch"
        self.out = project.path / "outcome.json"
        self.bundle = project.path / "bundle"
        self.spec = project.path / "spec.json"
        task = task.format(pids=self.pids, started=self.started)
        self.small = SmallProject(project.path, {"one": (task, "right")})
        self.write(self.small.jobs()[0])

    def write(self, job: Job, **changes: Any) -> None:
        spec = replace(TrialSpec.from_bytes(job.spec), workspaces=str(self.scratch), timeout=50.0, **changes)
        self.spec.write_bytes(spec.to_bytes())

    def call(self, *words: str, **more: Any) -> Any:
        return self.project.call("worker", str(self.spec), *words, "--json", **more)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start the worker, and return once its trial hangs."""
        process = self.project.start("worker", str(self.spec), "--json", "--out", str(self.out), *words)
        if not soon(self.started.exists, 15):
            process.kill()
            raise AssertionError(process.communicate())
        assert len(living(self.pids)) == 2
        return process

    def outcome(self) -> Outcome:
        outcome = read_outcome(self.out)
        assert outcome is not None
        return outcome

    def end(self) -> None:
        for pid in living(self.pids):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def scene(project: Project) -> Scene:
    return Scene(project)


@pytest.fixture
def hanging(project: Project) -> Iterator[Scene]:
    """Return a scene whose trial hangs in two sessions until it is killed."""
    scene = Scene(project, HANGING)
    yield scene
    scene.end()


def test_trial_is_carried_out_and_its_outcome_lies_in_the_file(scene: Scene) -> None:
    answer = scene.call("--out", str(scene.out), "--bundle", str(scene.bundle))

    assert answer.exit_code == 0
    assert (answer.data["key"], answer.data["ended"], answer.data["out"]) == ("direct/one/1", "done", str(scene.out))
    outcome = scene.outcome()
    assert (outcome.key, outcome.ended, outcome.bundle) == ("direct/one/1", "done", None)
    result = json.loads(outcome.result or b"")
    assert (result["status"], result["digests"]) == ("pass", dict(sealed_digests(scene.bundle) or {}))
    assert changed_artifacts(scene.bundle, result["digests"]) == []
    assert list(scene.scratch.glob("*/*")) == []


def test_outcome_is_the_answer_where_no_file_is_named(scene: Scene) -> None:
    answer = scene.call("--bundle", str(scene.bundle))

    assert (answer.data["ended"], answer.data["result"]["status"]) == ("done", "pass")
    assert answer.data["worker"]


def test_bundle_is_in_the_store_where_no_directory_is_named(scene: Scene, tmp_path: Path) -> None:
    tree = scene.call().data["bundle"]

    place = tmp_path / "restored"
    place.mkdir()
    DirectoryStore(scene.small.layout.store).restore(tree, place)
    digests = sealed_digests(place)
    assert digests
    assert changed_artifacts(place, digests) == []


def test_store_is_all_that_a_worker_needs_whatever_its_home_and_directory(scene: Scene, tmp_path: Path) -> None:
    home, elsewhere, store = tmp_path / "home", tmp_path / "elsewhere", DirectoryStore(tmp_path / "remote")
    home.mkdir()
    elsewhere.mkdir()
    scene.write(scene.small.jobs(remote=PlainStore(store))[0])
    (tmp_path / "evals").rename(tmp_path / "hidden-from-workers")

    project = replace(scene.project, path=elsewhere)
    answer = project.call("worker", str(scene.spec), "--store", str(store.root), "--json", env={"HOME": str(home)})

    assert (answer.exit_code, answer.data["ended"]) == (0, "done"), answer.stdout
    assert answer.data["result"]["status"] == "pass"
    assert "bundle.json" in {entry.path for entry in store.tree(answer.data["bundle"]).entries}
    assert list(elsewhere.iterdir()) == []


def test_worker_with_other_versions_refuses_and_begins_nothing(project: Project) -> None:
    scene = Scene(project, "touch {started}; printf right")

    answer = scene.call("--lock", "sha256:other", "--out", str(scene.out), "--bundle", str(scene.bundle))

    assert (answer.exit_code, answer.data["ended"]) == (3, "refused")
    assert "versions" in answer.data["reason"]
    assert (scene.outcome().ended, scene.outcome().result) == ("refused", None)
    assert not scene.started.exists()
    assert not scene.bundle.exists()


def test_worker_with_the_same_versions_does_not_refuse(scene: Scene) -> None:
    lock = lock_of(TrialSpec.from_bytes(scene.spec.read_bytes()).tables, Registry(scene.small.suite))

    assert scene.call("--lock", lock, "--bundle", str(scene.bundle)).data["ended"] == "done"


def test_trial_that_cannot_be_carried_out_is_lost_for_good_with_its_reason(scene: Scene) -> None:
    record = json.loads(scene.spec.read_bytes()) | {"fixture_digest": "sha256:" + "0" * 64}
    scene.spec.write_text(json.dumps(record))

    answer = scene.call("--out", str(scene.out), "--bundle", str(scene.bundle))

    assert (answer.exit_code, answer.data["ended"]) == (3, "lost")
    assert answer.data["reason"].startswith("E_STORE_FAILED: ")
    assert scene.outcome().transient is False


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"\xff\xfe", b"[]", b"7", b"null", b"{}", b'{"run_id": "r"}', b"newer"],
    ids=["missing", "empty", "cut", "not UTF-8", "list", "number", "null", "nothing in it", "incomplete", "newer version"],
)
def test_file_that_is_no_spec_of_this_version_is_refused_by_name(scene: Scene, content: bytes | None) -> None:
    whole = json.loads(scene.spec.read_bytes())
    scene.spec.unlink()
    if content is not None:
        scene.spec.write_bytes(json.dumps(whole | {"of_the_future": 1}).encode() if content == b"newer" else content)

    answer = scene.call("--out", str(scene.out))

    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    (error,) = answer.envelope["errors"]
    assert str(scene.spec) in error["message"]
    assert error["hint"]
    assert not scene.out.exists()


@pytest.mark.parametrize("text", ["nobody", "{", '{"pid": "x"}', '{"pid": 1}'])
def test_coordinator_that_names_no_process_is_refused(scene: Scene, text: str) -> None:
    assert scene.call("--coordinator", text).exit_code == 1


def test_worker_whose_spec_is_removed_ends_its_trial(hanging: Scene) -> None:
    process = hanging.start("--bundle", str(hanging.bundle))

    hanging.spec.unlink()
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert (hanging.outcome().ended, hanging.outcome().result) == ("canceled", None)
    assert living(hanging.pids) == []
    assert not (hanging.bundle / "bundle.json").exists()
    assert list(hanging.scratch.glob("*/*")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_signal_ends_the_trial_and_leaves_nothing_alive(hanging: Scene, number: signal.Signals) -> None:
    process = hanging.start("--bundle", str(hanging.bundle))

    process.send_signal(number)
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert hanging.outcome().ended == "canceled"
    assert living(hanging.pids) == []
    assert list(hanging.scratch.glob("*/*")) == []


def test_killed_worker_leaves_nothing_alive_and_no_outcome(hanging: Scene) -> None:
    process = hanging.start("--bundle", str(hanging.bundle))

    process.kill()
    process.communicate(timeout=120)

    assert soon(lambda: not living(hanging.pids), 5)
    assert not hanging.out.exists()


@pytest.fixture
def coordinator() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that does nothing but live."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_worker_ends_its_trial_and_itself_when_its_coordinator_is_gone(
    hanging: Scene, coordinator: subprocess.Popen[bytes]
) -> None:
    identity = identity_of(coordinator.pid)
    assert identity is not None
    process = hanging.start("--bundle", str(hanging.bundle), "--coordinator", json.dumps(identity.as_json()))

    coordinator.kill()
    coordinator.wait()
    process.communicate(timeout=120)

    assert process.returncode == 130
    assert hanging.outcome().ended == "canceled"
    assert living(hanging.pids) == []


def elsewhere(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"host": "another-host", "start_time": 1}


def alive(record: dict[str, Any]) -> dict[str, Any]:
    return record


def reused(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"start_time": record["start_time"] + 1}


@pytest.mark.parametrize(("change", "ended"), [(alive, "done"), (elsewhere, "done"), (reused, "canceled")])
def test_only_a_dead_coordinator_of_this_host_ends_a_worker(
    scene: Scene, change: Callable[[dict[str, Any]], dict[str, Any]], ended: str
) -> None:
    who = json.dumps(change(current_process().as_json()))

    assert scene.call("--bundle", str(scene.bundle), "--coordinator", who).data["ended"] == ended
