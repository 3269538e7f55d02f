"""Rounds of chaos: a small suite, run by the command line, killed by a plan, resumed until it is finished, then examined."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.invariants import Place, all_violations, left_processes
from tests.chaos.processes import Seen, descendants, marked, table

__all__ = [
    "CASES",
    "PROGRAM",
    "QUEUES",
    "RUN_ID",
    "Chaos",
    "Report",
    "Strike",
    "Target",
    "at_each_event",
    "at_event",
    "at_random",
    "environment",
    "targets",
    "unverified",
]

RUN_ID = "chaos"
PROGRAM = (sys.executable, "-m", "evalwright")
QUEUES: Mapping[str, str] = {"local": "local", "spoolctl": "spoolctl", "detached": "evalwright.testing:DetachedQueue"}
CASES = ("crash", "daemon", "edit", "fail", "quick", "repair", "slow", "write")
STATUSES = {"crash": "fail", "fail": "fail"}
RETRIES = 8
SPARE_CALLS = 3
CALL_SECONDS = 60.0
TICK_SECONDS = 0.001
MEANS_VARIABLE = "EVALWRIGHT_SUPERVISION"
LOOK_SECONDS = 0.01
DROPPED = ("EVALWRIGHT_", "EVALCTL_", "SOURCE_DATE_EPOCH", "NO_COLOR", "PYTHONWARNINGS")
AGENT = """
task=$(cat "$EVALWRIGHT_TASK_FILE")
case $task in
  crash) echo half > half.txt; exit 3 ;;
  daemon) setsid sh -c 'trap "" TERM INT HUP; sleep 60; sleep 60' >/dev/null 2>&1 & sleep 0.1 ;;
  edit) echo more >> a.txt; mkdir -p sub/deep; echo deep > sub/deep/new.txt ;;
  fail) task=wrong ;;
  repair) echo repaired > answer.txt ;;
  slow) sleep 0.4; echo late > late.txt ;;
  write) for name in 1 2 3 4 5; do echo $name > file-$name.txt; done ;;
esac
printf %s "$task"
"""
CHECK = 'test "$(cat answer.txt)" = repaired && sleep 0.1\n'


class Target(StrEnum):
    """Which process a strike kills: the harness, a worker, the fork server or a supervisor of trials, those of workers."""

    HARNESS = "harness"
    WORKER = "worker"
    SERVER = "server"
    SUPERVISOR = "supervisor"
    WORKERS_SERVER = "workers-server"
    WORKERS_SUPERVISOR = "workers-supervisor"


SUPERVISORS = (Target.SUPERVISOR, Target.WORKERS_SUPERVISOR)


@dataclass(frozen=True)
class Strike:
    """One kill: whom, and when: once the ledger has that many lines, or that many seconds after the call began."""

    target: Target
    lines: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the strike in a few words."""
        return f"{self.target}@{self.lines}" if self.lines else f"{self.target}@{self.seconds:.3f}s"


@dataclass
class Report:
    """What a round did: how many calls and kills, which strikes never came to pass, and every violation."""

    place: Place
    calls: int = 0
    kills: int = 0
    missed: list[Strike] = field(default_factory=list[Strike])
    warnings: set[str] = field(default_factory=set[str])
    violations: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def targets(queue: str) -> tuple[Target, ...]:
    """Return whom to kill under a queue.

    The local one has no workers. The detached one's workers are told nothing, so they have supervisors only without cgroups.
    """
    trials = (Target.SERVER,) if queue == "detached" else (Target.SERVER, Target.SUPERVISOR)
    workers = () if queue == "local" else (Target.WORKER, Target.WORKERS_SERVER, Target.WORKERS_SUPERVISOR)
    return (Target.HARNESS, *trials, *workers)


def at_event(lines: int, target: Target = Target.HARNESS) -> list[Strike]:
    """Kill once, when the n-th event of the ledger appears."""
    return [Strike(target, lines=lines)]


def at_each_event(step: int, kills: int, target: Target = Target.HARNESS) -> list[Strike]:
    """Kill at every ``step``-th event of the whole run, resumed calls included."""
    return [Strike(target, lines=number * step) for number in range(1, kills + 1)]


def at_random(seed: int, queue: str, seconds: float) -> list[Strike]:
    """Kill one to five processes, each at a random time within a call that would take ``seconds``."""
    choice = random.Random(f"{seed}/{queue}")
    return [Strike(choice.choice(targets(queue)), seconds=choice.uniform(0.05, seconds)) for _ in range(choice.randint(1, 5))]


class Chaos:
    """Makes rounds below one directory. All rounds share suite and marker, and one reference run a queue.

    ``program`` is the command line under test.
    """

    def __init__(self, base: Path, *, program: Sequence[str] = PROGRAM) -> None:
        self.base = base
        self.program = tuple(program)
        self.marker = uuid.uuid4().hex
        self.references: dict[str, tuple[bytes, float]] = {}
        self._rounds = 0

    def reference(self, queue: str) -> tuple[bytes, float]:
        """Return the manifest of an uninterrupted run by the real command line, and the seconds that it took."""
        if queue not in self.references:
            attempt = Round(self.place(f"reference-{queue}"), queue, PROGRAM, [])
            attempt.drive()
            manifest = attempt.place.manifest.read_bytes()
            statuses = {entry["id"]: entry["status"] for entry in json.loads(manifest)["cases"]}
            assert statuses == {case: STATUSES.get(case, "pass") for case in CASES}, statuses
            assert attempt.report.calls == 1, attempt.report
            self.references[queue] = manifest, attempt.report.seconds
        return self.references[queue]

    def events(self, queue: str) -> int:
        """Return how many events an uninterrupted run writes."""
        self.reference(queue)
        return Place(self.base / f"reference-{queue}", RUN_ID, self.marker).ledger.read_bytes().count(b"\n")

    def place(self, name: str) -> Place:
        """Make the directories of a round, with the suite in its project."""
        place = Place((self.base / name).resolve(), RUN_ID, self.marker)
        shutil.rmtree(place.root, ignore_errors=True)
        for directory in (place.project, place.scratch, place.temporary):
            directory.mkdir(parents=True)
        _write_suite(place.project / "evals" / "suites" / "chaos", self.marker)
        return place

    def round(self, queue: str, strikes: Sequence[Strike], *, seed: int = 0, keep: bool = False) -> Report:
        """Run, kill by plan, resume until finished, examine. Directories of rounds without violations are removed."""
        reference, _ = self.reference(queue)
        self._rounds += 1
        attempt = Round(self.place(f"round-{self._rounds}-{queue}"), queue, self.program, strikes, seed)
        attempt.drive()
        report, redone = attempt.report, "W_TRIAL_REDONE" in attempt.report.warnings
        report.violations += all_violations(attempt.place, CASES, reference, redone=redone)
        report.violations += unverified(attempt.place)
        for seen in marked(attempt.place.marks):
            with contextlib.suppress(ProcessLookupError):
                os.kill(seen.pid, signal.SIGKILL)
        if not report.violations and not keep:
            shutil.rmtree(attempt.place.root)
        return report


class Round:
    """One run in the making."""

    def __init__(self, place: Place, queue: str, program: Sequence[str], strikes: Sequence[Strike], seed: int = 0) -> None:
        self.place = place
        self.report = Report(place)
        self._queue = QUEUES[queue]
        self._program = program
        self._waiting = list(strikes)
        self._choice = random.Random(seed)
        self._hurt = False
        self._environment = environment(place)
        if any(strike.target in SUPERVISORS for strike in strikes):
            self._environment[MEANS_VARIABLE] = "process"

    def drive(self) -> None:
        """Call until the run is finished; a call that ends without a kill and without a finished run is a violation."""
        began = time.monotonic()
        limit = len(self._waiting) + SPARE_CALLS
        while not self._call():
            if self.report.calls >= limit:
                self.report.violations.append(f"finish: the run is not finished after {self.report.calls} calls")
                break
        self.report.missed = self._waiting
        self.report.seconds = time.monotonic() - began

    def _call(self) -> bool:
        """Start or resume the run, strike as planned, and tell whether it is finished."""
        self.report.calls += 1
        self._hurt = False
        out = self.place.root / f"call-{self.report.calls}.out"
        with out.open("wb") as file:
            process = self._start(file.fileno())
            try:
                if self._strike(process):
                    return False
                process.wait(CALL_SECONDS)
            except subprocess.TimeoutExpired:
                self.report.violations.append(f"hang: call {self.report.calls} did not end within {CALL_SECONDS:g} s")
                self._kill(process)
                return False
            finally:
                process.kill()
                process.wait()
        envelope = _envelope(out)
        self.report.warnings |= {record["code"] for record in envelope.get("warnings", ())}
        if not envelope.get("ok") and not self._hurt:
            self.report.violations.append(f"call: {self.report.calls} ended with {process.returncode}: {_tail(out)}")
        return bool(envelope.get("ok")) and self.place.manifest.is_file()

    def _start(self, out: int) -> subprocess.Popen[bytes]:
        known = (self.place.run / "run.json").is_file()
        words = ("--resume", RUN_ID) if known else ("chaos", "--run-id", RUN_ID, "--queue", self._queue, "--jobs", "3")
        return subprocess.Popen(
            [*self._program, "run", *words, "--json"],
            cwd=self.place.project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )

    def _strike(self, process: subprocess.Popen[bytes]) -> bool:
        """Carry out the strikes whose time comes during this call; tell whether the harness was killed."""
        began = time.monotonic()
        while self._waiting:
            strike = self._waiting[0]
            if not self._until(process, partial(self._due, strike, began), TICK_SECONDS):
                return False
            if strike.target is Target.HARNESS:
                self._waiting.pop(0)
                self._kill(process)
                return True
            if not self._until(process, partial(self._hit, process, strike.target), LOOK_SECONDS):
                return False
            self._waiting.pop(0)
        return False

    def _until(self, process: subprocess.Popen[bytes], condition: Callable[[], bool], pause: float) -> bool:
        """Wait for a condition; return false when the process has ended or hangs."""
        give_up = time.monotonic() + CALL_SECONDS
        while not condition():
            if process.poll() is not None or time.monotonic() > give_up:
                return False
            time.sleep(pause)
        return True

    def _due(self, strike: Strike, began: float) -> bool:
        if not strike.lines:
            return time.monotonic() - began >= strike.seconds
        try:
            return self.place.ledger.read_bytes().count(b"\n") >= strike.lines
        except OSError:
            return False

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the harness; all that descended from it must be dead in time."""
        family = descendants(process.pid, table())
        process.kill()
        process.wait()
        self.report.kills += 1
        for violation in left_processes(self.place, family):
            self.report.violations.append(f"after kill {self.report.kills}: {violation}")

    def _hit(self, process: subprocess.Popen[bytes], target: Target) -> bool:
        """Kill one process of that kind, if there is one now."""
        victims = list(_victims(process.pid, target, workers=self._queue != "local"))
        if not victims:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._choice.choice(victims).pid, signal.SIGKILL)
        self.report.kills += 1
        self._hurt = True
        return True


def unverified(place: Place, name: str = RUN_ID) -> list[str]:
    """``evalwright verify`` says that the run or experiment is whole and sealed."""
    out = place.root / "verify.out"
    with out.open("wb") as file:
        done = subprocess.run(
            [*PROGRAM, "verify", name, "--json"],
            cwd=place.project,
            env=environment(place),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=CALL_SECONDS,
            check=False,
        )
    envelope = _envelope(out)
    data: dict[str, Any] = envelope.get("data") or {}
    if done.returncode == 0 and data.get("ok") and data.get("sealed"):
        return []
    return [f"verify: exit code {done.returncode}: {data.get('first_damage') or envelope.get('errors') or _tail(out)}"]


def _victims(harness: int, target: Target, *, workers: bool) -> Iterator[Seen]:
    """Find the processes of one kind below the harness.

    With ``workers`` the harness's own fork server keeps the workers, and each worker's the commands of a trial. A child of a
    fork server is a supervisor if it has a child itself; else it is a command that was not executed yet.
    """
    processes = table()
    family = descendants(harness, processes)
    servers = {seen.pid: seen for seen in family if seen.is_server and not processes[seen.parent].is_server}
    wanted_outer = target in (Target.WORKERS_SERVER, Target.WORKERS_SUPERVISOR) or not workers
    chosen = {pid for pid, seen in servers.items() if (seen.parent == harness) is wanted_outer}
    parents = {seen.parent for seen in family}
    for seen in family:
        if target is Target.WORKER:
            wanted = seen.is_worker
        elif target in (Target.SERVER, Target.WORKERS_SERVER):
            wanted = seen.pid in chosen
        else:
            wanted = seen.is_server and seen.parent in chosen and seen.pid in parents
        if wanted:
            yield seen


def _write_suite(directory: Path, marker: str) -> None:
    """Write eight cases: some write files, one is slow, two fail, one has hidden tests, one leaves a daemon."""
    for path, content in {"fixtures/w/a.txt": "a\n", "hidden/repair/check.sh": CHECK}.items():
        (directory / path).parent.mkdir(parents=True)
        (directory / path).write_text(content)
    judge = 'test -s "$EVALWRIGHT_TASK_FILE"; printf \'{"ok":true,"score":1,"findings":[]}\''
    suite = {
        "schema_version": 2,
        "name": "chaos",
        "runner": {
            "shell": True,
            "command": AGENT,
            "env_allowlist": ["PATH", MEANS_VARIABLE],
            "env": {"CHAOS_MARKER": marker},
            "timeout_seconds": 30,
        },
        "scorers": [
            {"use": "exact"},
            {"use": "exit-code"},
            {"use": "command", "id": "judge", "shell": True, "command": judge},
            {"use": "tests"},
        ],
        "retry": {"infrastructure": RETRIES, "backoff_seconds": 0},
    }
    (directory / "suite.json").write_text(json.dumps(suite))
    (directory / "cases.jsonl").write_text("".join(json.dumps(_case(name)) + "\n" for name in CASES))


def _case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = {"id": name, "task": name, "workspace": "fixtures/w", "expect": {"exact": name, "exit_code": 0}}
    if name == "repair":
        case |= {"hidden": "hidden/repair", "expect": {"tests": {"argv": ["sh", "check.sh"]}}}
    return case


def environment(place: Place) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    return plain | {
        "SOURCE_DATE_EPOCH": "1700000000",
        "EVALWRIGHT_WORKSPACES": str(place.scratch),
        "TMPDIR": str(place.temporary),
    }


def _envelope(path: Path) -> dict[str, Any]:
    """Return the envelope that a call printed last, an empty one where it printed none."""
    for line in reversed(path.read_text(errors="replace").splitlines()):
        if line.startswith('{"'):
            with contextlib.suppress(ValueError):
                document: dict[str, Any] = json.loads(line)
                return document
    return {}


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-600:]
