"""The short chaos: a sample of kills under every queue, and the proof that each check of the harness sees what it is for."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.harness import (
    CASES,
    QUEUES,
    RUN_ID,
    Chaos,
    Report,
    Strike,
    Target,
    at_each_event,
    at_event,
    at_random,
    targets,
    unverified,
)
from tests.chaos.invariants import (
    Place,
    all_violations,
    changed_manifest,
    counted_twice,
    held_locks,
    left_files,
    left_processes,
    lost_trials,
)
from tests.chaos.processes import table
from tests.conftest import shortened

Require = Callable[[str], None]
Sleeper = Callable[..., subprocess.Popen[bytes]]
PARTS = 4
SEEDS = (1, 2)
SAMPLE = (1, 9, 17)
SLOW_QUEUES = ("spoolctl", "detached")
OTHERS = [(queue, target) for queue in QUEUES for target in targets(queue) if target is not Target.HARNESS]
PATCHED = """
import sys
from evalwright.cli import main
{patch}
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    return Chaos(tmp_path_factory.mktemp("chaos"))


@pytest.fixture(scope="module")
def whole(chaos: Chaos) -> Place:
    """Return a run that was not killed."""
    chaos.reference("local")
    return Place((chaos.base / "reference-local").resolve(), RUN_ID, chaos.marker)


@pytest.fixture
def damaged(whole: Place, tmp_path: Path) -> Place:
    """Return a copy of a whole run that a test may damage."""
    root = tmp_path.resolve() / "copy"
    shutil.copytree(whole.root, root, symlinks=True)
    return Place(root, RUN_ID, uuid.uuid4().hex)


def needs(queue: str, require: Require) -> None:
    """Skip where the queue's program is not installed."""
    if queue == "spoolctl":
        require("python:spoolctl")


def told(strikes: list[Strike], report: Report) -> list[str]:
    """Return the violations of a round, each with the plan that led to it."""
    plan = ", ".join(map(str, strikes))
    return [f"[{plan}] {violation}  ({report.place.root})" for violation in report.violations]


def assert_none(violations: list[str]) -> None:
    """Fail with all violations, one a line."""
    assert not violations, "\n" + "\n".join(violations)


@pytest.mark.parametrize("part", shortened(range(PARTS), [0]))
def test_local_run_that_is_killed_at_any_event_is_finished_as_if_it_had_not_been(chaos: Chaos, part: int) -> None:
    violations: list[str] = []
    for lines in itertools.count(part + 1, PARTS):
        report = chaos.round("local", at_event(lines))
        violations += told(at_event(lines), report)
        if report.missed:
            break
    assert_none(violations)


@pytest.mark.parametrize("lines", shortened(SAMPLE, [9]))
@pytest.mark.parametrize("queue", shortened(SLOW_QUEUES, ["spoolctl"]))
def test_run_of_workers_that_is_killed_at_an_event_is_finished_as_if_it_had_not_been(
    chaos: Chaos, require: Require, queue: str, lines: int
) -> None:
    needs(queue, require)
    report = chaos.round(queue, at_event(lines))
    assert report.kills == 1
    assert_none(told(at_event(lines), report))


@pytest.mark.parametrize("other", shortened(OTHERS, OTHERS[:3]), ids=lambda other: "-".join(other))
def test_run_outlives_the_death_of_any_of_its_processes(chaos: Chaos, require: Require, other: tuple[str, Target]) -> None:
    queue, target = other
    needs(queue, require)
    strikes = at_event(3, target)
    report = chaos.round(queue, strikes)
    assert report.kills >= 1
    assert_none(told(strikes, report))


def test_run_that_is_killed_again_and_again_is_finished_in_the_end(chaos: Chaos) -> None:
    strikes = at_each_event(6, 4)
    report = chaos.round("local", strikes)
    assert report.kills >= 3
    assert_none(told(strikes, report))


@pytest.mark.parametrize("seed", shortened(SEEDS, [1]))
@pytest.mark.parametrize("queue", shortened(QUEUES, ["detached"]))
def test_run_outlives_kills_at_random_times(chaos: Chaos, require: Require, queue: str, seed: int) -> None:
    needs(queue, require)
    _, seconds = chaos.reference(queue)
    strikes = at_random(seed, queue, seconds)
    report = chaos.round(queue, strikes, seed=seed)
    assert_none([f"seed {seed}: {violation}" for violation in told(strikes, report)])


def test_whole_run_has_no_violation(chaos: Chaos, whole: Place) -> None:
    reference, _ = chaos.reference("local")
    assert_none(all_violations(whole, CASES, reference, redone=False) + unverified(whole))


BROKEN = {
    "ledger that loses every third end of a trial": (
        """
from evalwright.ledger import Ledger
whole, ended = Ledger.append, []
def append(self, type, data, **more):
    if type == "TRIAL_FINISHED":
        ended.append(data)
        if len(ended) % 3 == 0:
            return {"seq": self.seq + 1, "data": dict(data)}
    return whole(self, type, data, **more)
Ledger.append = append
""",
        "counted: ",
        False,
    ),
    "ledger that writes the end of a trial twice": (
        """
from evalwright.ledger import Ledger
whole = Ledger.append
def append(self, type, data, **more):
    if type == "TRIAL_FINISHED":
        whole(self, type, data, **more)
    return whole(self, type, data, **more)
Ledger.append = append
""",
        "counted: ",
        True,
    ),
    "store that loses a bundle": (
        """
import shutil
from evalwright.coordinate.delivery import Delivery
whole = Delivery.settle
def settle(self, spec, state):
    whole(self, spec, state)
    if spec.case_id == "write":
        shutil.rmtree(self._run.case(spec.case_id))
Delivery.settle = settle
""",
        "finish: ",
        False,
    ),
    "process that outlives the harness": (
        """
import subprocess
subprocess.Popen(["sleep", "30"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
""",
        "after kill 1: process: ",
        True,
    ),
    "lease that is not given back": (
        """
from evalwright.coordinate.lease import Lease
Lease.release = lambda self: None
""",
        "lock: ",
        False,
    ),
    "end of a run that does not tidy": (
        """
from evalwright.coordinate import finalise, resume
finalise.tidy = resume.tidy = lambda run: None
""",
        "file: ",
        True,
    ),
    "manifest that tells of interruptions": (
        """
from evalwright.coordinate import finalise
whole = finalise.manifest_of
finalise.manifest_of = lambda run, ids: whole(run, ids) | {"events": run.ledger.read_bytes().count(b"\\n")}
""",
        "manifest: ",
        True,
    ),
}


@pytest.mark.parametrize("defect", shortened(BROKEN, list(BROKEN)[:3]))
def test_harness_sees_a_defect_of_the_program(chaos: Chaos, tmp_path: Path, defect: str) -> None:
    patch, expected, killed = BROKEN[defect]
    broken = Chaos(tmp_path, program=(sys.executable, "-c", PATCHED.format(patch=patch)))
    broken.references, broken.marker = {"local": chaos.reference("local")}, chaos.marker

    report = broken.round("local", at_event(4) if killed else [])

    assert [violation for violation in report.violations if violation.startswith(expected)], report


def rewrite(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON document in place."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def lines_of(place: Place, type: str) -> list[bytes]:
    """Return the lines of the ledger that hold events of a type."""
    return [line for line in place.ledger.read_bytes().splitlines(keepends=True) if json.loads(line)["type"] == type]


def extend(place: Place, line: bytes) -> None:
    """Append a line to the ledger."""
    with place.ledger.open("ab") as file:
        file.write(line)


def case_of(line: bytes) -> str:
    """Return the case of an event's line."""
    return str(json.loads(line)["data"]["case"])


def test_case_without_entry_or_score_is_seen(damaged: Place) -> None:
    rewrite(damaged.manifest, lambda document: document["cases"].pop(0))
    (damaged.run / "cases" / "write" / "score.json").unlink()

    assert lost_trials(damaged, CASES) == ["lost: crash has 0 entries in the manifest", "lost: write has no score.json"]


def test_case_with_two_entries_and_an_entry_of_no_case_are_seen(damaged: Place) -> None:
    rewrite(damaged.manifest, lambda document: document["cases"].extend([document["cases"][0], {"id": "stranger"}]))

    assert lost_trials(damaged, CASES) == [
        "lost: crash has 2 entries in the manifest",
        "lost: the manifest has an entry for stranger, which is no case",
    ]


def test_doubled_end_of_a_trial_is_seen(damaged: Place) -> None:
    line = lines_of(damaged, "TRIAL_FINISHED")[0]
    extend(damaged, line)

    found = counted_twice(damaged, CASES, redone=False)

    assert f"counted: {case_of(line)} finished 2 times" in found
    assert len(found) == 2
    assert len(counted_twice(damaged, CASES, redone=True)) == 1


def test_missing_end_of_a_trial_is_seen(damaged: Place) -> None:
    line = lines_of(damaged, "TRIAL_FINISHED")[0]
    damaged.ledger.write_bytes(damaged.ledger.read_bytes().replace(line, b""))

    assert f"counted: {case_of(line)} finished 0 times" in counted_twice(damaged, CASES, redone=False)


def test_bundle_of_another_attempt_is_seen(damaged: Place) -> None:
    rewrite(damaged.run / "cases" / "slow" / "bundle.json", lambda document: document.update(attempt=2))

    (found,) = counted_twice(damaged, CASES, redone=False)

    assert found.startswith("counted: the bundle of slow ")


def test_attempt_that_was_begun_twice_is_seen(damaged: Place) -> None:
    line = lines_of(damaged, "TRIAL_ATTEMPT")[0]
    extend(damaged, line)

    assert counted_twice(damaged, CASES, redone=False) == [f"counted: the attempts of {case_of(line)} do not increase: [1, 1]"]


def test_status_that_the_manifest_does_not_share_is_seen(damaged: Place) -> None:
    rewrite(damaged.manifest, lambda document: document["cases"][0].update(status="pass"))

    assert counted_twice(damaged, CASES, redone=False) == ["counted: crash finished fail, the manifest says pass"]


def test_changed_byte_of_the_manifest_is_seen(damaged: Place) -> None:
    reference = damaged.manifest.read_bytes()
    damaged.manifest.write_bytes(reference.replace(b"fail", b"pass", 1))

    assert [violation.split(" differs")[0] for violation in changed_manifest(damaged, reference)] == [
        f"manifest: byte {reference.index(b'fail')}",
        "manifest: the ledger's last RUN_FINISHED names another digest",
    ]
    assert unverified(damaged)[0].startswith("verify: exit code 1")


def test_changed_artifact_is_seen_by_verify(damaged: Place) -> None:
    (damaged.run / "cases" / "write" / "output.txt").write_text("forged")

    (found,) = unverified(damaged)

    assert "cases/write/output.txt" in found


@pytest.mark.parametrize(
    "name",
    [
        "run/.attempts/write.1/output.txt",
        "run/.queue/queue.db",
        "run/.processes.jsonl",
        "run/.manifest.json.new",
        "run/ledger.head.json.new",
        "run/.run.json.k3x9",
        "run/.report.md.k3x9",
        "run/.new-k3x9/run.json",
        "run/cases/write/.state.json.k3x9",
        "scratch/evalwright-0/1-2-3/w/a.txt",
        "store/incoming/tmp1/content",
    ],
)
def test_file_that_is_left_is_seen(damaged: Place, name: str) -> None:
    top, _, rest = name.partition("/")
    path = {"run": damaged.run, "scratch": damaged.scratch, "store": damaged.store}[top] / rest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()

    (found,) = left_files(damaged)

    assert found.startswith("file: ")


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """Return what starts a process that stays until the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "30"], cwd=cwd, env=env))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_process_that_works_in_the_directory_of_the_round_is_seen(damaged: Place, sleeper: Sleeper) -> None:
    process = sleeper(cwd=damaged.scratch)

    assert left_processes(damaged, seconds=0.3) == [f"process: {process.pid} (sleep 30) lives"]


def test_process_that_has_the_marker_in_its_environment_is_seen(damaged: Place, sleeper: Sleeper) -> None:
    process = sleeper(env=dict(os.environ) | {"CHAOS_MARKER": damaged.marker})

    assert left_processes(damaged, seconds=0.3) == [f"process: {process.pid} (sleep 30) lives"]


def test_process_that_descended_from_the_harness_is_seen(damaged: Place, sleeper: Sleeper) -> None:
    process = sleeper()

    assert left_processes(damaged) == []
    former = table()[process.pid]
    assert len(left_processes(damaged, [former], seconds=0.3)) == 1
    process.kill()
    process.wait()
    assert left_processes(damaged, [former]) == []


@pytest.mark.parametrize("name", ["run", "ledger"])
def test_lock_that_is_held_is_seen(damaged: Place, name: str) -> None:
    path: Path = getattr(damaged, name)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert held_locks(damaged) == [f"lock: {path.name} is locked by somebody"]
    finally:
        os.close(descriptor)
    assert held_locks(damaged) == []


def test_reservation_that_is_left_is_seen(damaged: Place) -> None:
    (damaged.run / ".reservation.json").write_text("{}")

    assert held_locks(damaged) == ["lock: .reservation.json is left"]
