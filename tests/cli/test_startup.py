"""Which heavy modules a command loads: stable under load, where milliseconds are not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from evalwright.cli.contract import VERBS

if TYPE_CHECKING:
    from tests.conftest import Project

HEAVY = {"pydantic", "pydantic_settings", "httpx", "rich", "pluggy", "stevedore", "asyncio"}
PROBE = """
import json, sys
from evalwright.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stdout.flush()
print()
print(json.dumps(sorted(sys.modules)))
"""
READING = [["report", "r", "--format", "json"], ["status", "r"], ["jobs", "list"]]
RUNNING = (
    *("audit", "coordinate.plan", "coordinate.run", "interfaces.plugin", "judging.patient", "processes.supervisor"),
    *("registry.catalog", "report.figures", "scoring", "stats.rates", "store", "suite.shape", "worker.trial"),
)
UNASKED = ("judging.patient", "report.experiment", "report.figures", "stats.rates", "suite.author", "worker.hidden")


def loaded(project: Project, *words: str) -> set[str]:
    """Return the modules that a command loads, and the packages in which these are."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], cwd=project.path, capture_output=True, text=True, timeout=120, check=True
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return {*names, *(name.partition(".")[0] for name in names)}


def ours(names: Iterable[str]) -> set[str]:
    return {f"evalwright.{name}" for name in names}


STATIC = [
    ["--version"],
    ["--help"],
    [],
    ["capabilities"],
    ["schema"],
    ["schema", "run"],
    ["robot-docs", "guide"],
    *([verb, "--help"] for verb in VERBS),
]


@pytest.mark.parametrize("words", STATIC, ids=" ".join)
def test_static_answer_loads_nothing_heavy(project: Project, words: list[str]) -> None:
    assert loaded(project, *words) & HEAVY == set()


@pytest.mark.parametrize("words", [["run", "--job", "3"], ["nosuchverb"], ["capabilities", "--nosuch"]], ids=" ".join)
def test_wrong_words_load_no_heavy_client(project: Project, words: list[str]) -> None:
    assert loaded(project, *words) & {"httpx", "rich", "asyncio", "pydantic", "pydantic_settings"} == set()


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "demo"],
        ["plan", "demo"],
        ["report", "r"],
        ["status", "r"],
        ["jobs", "list"],
        ["verify", "r"],
        ["explain", "r", "a"],
    ],
    ids=lambda words: words[0],
)
def test_reading_verb_loads_no_client_and_no_terminal(ran: Project, words: list[str]) -> None:
    assert loaded(ran, *words) & {"httpx", "rich", "asyncio", "pydantic_settings"} == set()


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_verb_that_reads_a_run_loads_nothing_of_what_makes_one(ran: Project, words: list[str]) -> None:
    assert loaded(ran, *words) & {*HEAVY, "importlib.metadata", "numpy", "regex", "statistics", *ours(RUNNING)} == set()


@pytest.mark.parametrize("words", [["status", "r"], ["jobs", "list"]], ids=lambda words: words[0])
def test_state_of_runs_is_told_without_reading_their_trials(ran: Project, words: list[str]) -> None:
    assert loaded(ran, *words) & {"dataclasses", "inspect", "evalwright.report.projection"} == set()


def test_run_loads_what_it_was_asked_for_and_no_more(project: Project) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": ""}}])
    assert loaded(project, "run", "demo") & {"numpy", "statistics", "xml", *ours(UNASKED)} == set()


def test_run_loads_no_client_and_no_settings_library_without_settings(project: Project) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": ""}}])
    assert loaded(project, "run", "demo") & {"httpx", "rich", "asyncio", "pydantic_settings"} == set()
