"""Rounds of chaos for experiments: two arms and two passes, killed again and again, then all four runs examined."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.chaos.harness import CALL_SECONDS, PROGRAM, QUEUES, Chaos, environment, unverified
from tests.chaos.invariants import Place, all_violations, left_processes
from tests.chaos.processes import descendants, table

__all__ = ["CELLS", "EXPERIMENT", "ExperimentReport", "Kill", "at_random_times", "chaotic_experiment", "damaged_record"]

EXPERIMENT = "arena"
ARMS = ("one", "two")
REPEATS = 2
CHOSEN = ("edit", "fail", "repair", "write")
CELLS = {f"{EXPERIMENT}.{arm}.{repeat}": (arm, repeat) for repeat in range(1, REPEATS + 1) for arm in ARMS}
SPARE_CALLS = 3
TICK_SECONDS = 0.001
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kill:
    """When a call is killed: so many seconds after it began, or as soon as there are that many directories of runs."""

    seconds: float = 0.0
    runs: int = 0

    def __str__(self) -> str:
        """Return the moment in a few words."""
        return f"run {self.runs}" if self.runs else f"{self.seconds:.3f} s"

    def due(self, place: Place, began: float) -> bool:
        """Tell whether the moment has come; ``began`` is a monotonic time."""
        if not self.runs:
            return time.monotonic() - began >= self.seconds
        return len(list(place.run.parent.glob(f"{EXPERIMENT}.*"))) >= self.runs


@dataclass
class ExperimentReport:
    """What a round did. ``manifests`` are those of the runs, ``seconds`` the time of all calls that ran trials."""

    place: Place
    calls: int = 0
    kills: int = 0
    seconds: float = 0.0
    warnings: set[str] = field(default_factory=set[str])
    looks: list[Record] = field(default_factory=list[Record])
    violations: list[str] = field(default_factory=list[str])
    manifests: dict[str, bytes] = field(default_factory=dict[str, bytes])


def at_random_times(seed: int, seconds: float, most: int = 5) -> list[Kill]:
    """Return one to ``most`` kills, each of a call of its own that would take ``seconds``."""
    choice = random.Random(f"experiment/{seed}")
    return [Kill(seconds=choice.uniform(0.05, seconds)) for _ in range(choice.randint(1, most))]


def chaotic_experiment(
    chaos: Chaos,
    name: str,
    kills: Sequence[Kill],
    *,
    queue: str = "local",
    reference: ExperimentReport | None = None,
    keep: bool = False,
) -> ExperimentReport:
    """Run an experiment, kill each call at its time, resume until it is finished, and examine what is left.

    After each kill the arms are compared, so that looks at growing data come onto the record between the calls. Without a
    ``reference`` nothing is compared with an uninterrupted experiment. Directories of rounds without violations are removed
    unless they are to be kept.
    """
    place = replace(chaos.place(name), run_id=EXPERIMENT)
    _add_arms(place.project / "evals" / "suites" / "chaos" / "suite.json")
    report = ExperimentReport(place)
    began = time.monotonic()
    for kill in [*kills, *[None] * SPARE_CALLS]:
        if _call(report, queue, kill):
            break
    else:
        report.violations.append(f"finish: the experiment is not finished after {report.calls} calls")
    report.seconds = time.monotonic() - began
    _examine(report, reference)
    if not report.violations and not keep:
        shutil.rmtree(place.root)
    return report


def damaged_record(place: Place, looks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The record has each cell once, each run linked once, and every look that was taken, in the order of their taking."""
    directory = _directory(place)
    lines = (directory / "ledger.jsonl").read_bytes().splitlines()
    events: list[Record] = [json.loads(line) for line in lines]
    planned = [event["data"]["run_id"] for event in events if event["type"] == "CELL_PLANNED"]
    linked = [event["data"]["run"] for event in events if event["type"] == "RUN_LINKED"]
    looked = [event["data"] for event in events if event["type"] == "LOOKED"]
    found = [f"cells: {name} is planned {planned.count(name)} times" for name in CELLS if planned.count(name) != 1]
    found += [f"cells: {name} is linked {linked.count(name)} times" for name in CELLS if linked.count(name) != 1]
    found += [f"cells: {name} is none of the plan" for name in sorted({*planned, *linked} - set(CELLS))]
    if looked != list(looks):
        found.append(f"looks: {looked} are on record, {list(looks)} were taken")
    if sorted(json.loads((directory / "experiment.json").read_bytes())["arms"]) != sorted(ARMS):
        found.append("cells: the record has other arms")
    if (directory / ".queue").exists():
        found.append("file: the queue's directory is left")
    found += [f"file: {path.name} is left beside the record" for path in sorted(directory.glob(".*.json.*"))]
    found += [f"file: {path.name} is left beside the runs" for path in sorted(place.run.parent.glob(".*")) if path.is_dir()]
    return found


def _directory(place: Place) -> Path:
    return place.project / "evals" / "experiments" / EXPERIMENT


def _add_arms(suite: Path) -> None:
    document = json.loads(suite.read_bytes())
    document["arms"] = {name: {"runner": {"env": {"ARM": name, **document["runner"]["env"]}}} for name in ARMS}
    suite.write_text(json.dumps(document))


def _call(report: ExperimentReport, queue: str, kill: Kill | None) -> bool:
    """Start or resume the experiment, kill the call at its time, and tell whether it came to its end."""
    report.calls += 1
    place = report.place
    chosen = [word for case in CHOSEN for word in ("--case", case)]
    arms = [word for arm in ARMS for word in ("--arm", arm)]
    known = any((run / "run.json").is_file() for run in place.run.parent.glob(f"{EXPERIMENT}.*"))
    fresh = (
        "chaos",
        "--run-id",
        EXPERIMENT,
        *arms,
        "--repeats",
        str(REPEATS),
        *chosen,
        "--queue",
        QUEUES[queue],
        "--jobs",
        "3",
    )
    out = place.root / f"call-{report.calls}.out"
    with out.open("wb") as file:
        process = _program(place, file.fileno(), "run", *(("--resume", EXPERIMENT) if known else fresh))
        try:
            killed = _killed(process, report, kill)
            process.wait(CALL_SECONDS)
        except subprocess.TimeoutExpired:
            report.violations.append(f"hang: call {report.calls} did not end within {CALL_SECONDS:g} s")
            return False
        finally:
            process.kill()
            process.wait()
    if killed:
        _look(report)
        return False
    envelope = _envelope(out)
    report.warnings |= {warning["code"] for warning in envelope.get("warnings", ())}
    if not envelope.get("ok"):
        report.violations.append(f"call: {report.calls} ended with {process.returncode}: {out.read_text()[-600:]}")
    return bool(envelope.get("ok"))


def _killed(process: subprocess.Popen[bytes], report: ExperimentReport, kill: Kill | None) -> bool:
    """Kill the harness at its time; all that descended from it must be dead soon. False when it had ended before."""
    began = time.monotonic()
    while kill is not None and process.poll() is None:
        if kill.due(report.place, began):
            family = descendants(process.pid, table())
            process.kill()
            process.wait()
            report.kills += 1
            report.violations += [f"after kill {report.kills}: {found}" for found in left_processes(report.place, family)]
            return True
        time.sleep(TICK_SECONDS)
    return False


def _look(report: ExperimentReport) -> None:
    """Compare the arms as they are, where there is something to compare; what was seen stays on record."""
    if not (_directory(report.place) / "ledger.jsonl").is_file():
        return
    out = report.place.root / f"compare-{report.calls}.out"
    with out.open("wb") as file:
        process = _program(report.place, file.fileno(), "compare", EXPERIMENT)
        process.wait(CALL_SECONDS)
    envelope = _envelope(out)
    codes = {error["code"] for error in envelope.get("errors", ())}
    if codes - {"E_USAGE", "E_NO_CASES_MATCHED"} or not envelope:
        report.violations.append(f"compare: after call {report.calls}: {out.read_text()[-600:]}")
    if envelope.get("ok"):
        done = sum(_finished(report.place, name) for name in CELLS)
        look = {"metric": "pass_rate", "trials": done}
        report.looks += [look] if done and look not in report.looks else []


def _finished(place: Place, name: str) -> int:
    ledger = place.run.parent / name / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines() if ledger.is_file() else []
    return len({json.loads(line)["data"]["case"] for line in lines if b'"TRIAL_FINISHED"' in line and line.endswith(b"}")})


def _examine(report: ExperimentReport, reference: ExperimentReport | None) -> None:
    """Look at the record, and at each run as if it had been made alone.

    Directories that never became runs are pruned first, as a user would a minute later.
    """
    _look(report)
    place = report.place
    for path in place.run.parent.glob(".new-*"):
        os.utime(path, (0, 0))
    with (place.root / "prune.out").open("wb") as file:
        _program(place, file.fileno(), "jobs", "prune", "--yes").wait(CALL_SECONDS)
    report.violations += damaged_record(place, report.looks)
    for name in CELLS:
        run = replace(place, run_id=name)
        report.manifests[name] = run.manifest.read_bytes() if run.manifest.is_file() else b""
        expected = reference.manifests[name] if reference else report.manifests[name]
        redone = "W_TRIAL_REDONE" in report.warnings
        report.violations += [f"{name}: {found}" for found in all_violations(run, CHOSEN, expected, redone=redone)]
    report.violations += unverified(place, EXPERIMENT)


def _program(place: Place, out: int, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *words, "--json"],
        cwd=place.project,
        env=environment(place),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
    )


def _envelope(path: Path) -> Record:
    for line in reversed(path.read_text(errors="replace").splitlines()):
        if line.startswith('{"'):
            document: Record = json.loads(line)
            return document
    return {}
