"""A stranger's package: built as a wheel, installed beside a built Evalwright in a fresh environment, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ACME = ROOT / "examples" / "acme-evalwright"
INSTALL_SECONDS = 600


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that holds both wheels and pytest."""
    place = tmp_path_factory.mktemp("acme")
    wheels = [_wheel(ROOT, place / "evalwright"), _wheel(ACME, place / "acme")]
    environment = place / "venv"
    _run([sys.executable, "-m", "venv", str(environment)], place)
    interpreter = environment / "bin" / "python"
    _run([str(interpreter), "-m", "pip", "install", "-q", f"{wheels[0]}[testing]", str(wheels[1])], place)
    return interpreter


@pytest.fixture
def evalwright(python: Path, tmp_path: Path) -> Callable[..., Any]:
    """Return what calls the installed command in an empty directory and gives the data of its envelope."""

    def call(*words: str) -> Any:
        done = _run([str(python.with_name("evalwright")), *words, "--json"], tmp_path)
        return json.loads(done.stdout)["data"]

    return call


def test_plugins_are_listed_with_distribution_and_version(evalwright: Callable[..., Any]) -> None:
    plugins = [entry for entry in evalwright("plugins", "list")["plugins"] if entry["distribution"] == "acme-evalwright"]
    assert [(entry["kind"], entry["name"], entry["version"], entry["state"]) for entry in plugins] == [
        ("scorer", "acme-wordcount", "1.2.0", "ok"),
        ("sandbox", "acme-niced", "1.2.0", "ok"),
        ("importer", "acme-csv", "1.2.0", "ok"),
    ]


def test_suite_runs_and_scores_with_the_stranger_s_plugins(evalwright: Callable[..., Any], tmp_path: Path) -> None:
    suite = tmp_path / "evals" / "suites" / "short"
    (suite / "fixtures" / "w").mkdir(parents=True)
    (suite / "fixtures" / "w" / "a.txt").write_text("a\n")
    document = {
        "schema_version": 2,
        "name": "short",
        "runner": {"argv": ["/bin/sh", "$EVALWRIGHT_TASK_FILE"]},
        "sandbox": {"use": "acme-niced", "niceness": 7},
        "scorers": [{"use": "acme-wordcount", "max": 2}],
        "requires": ["x-niced"],
    }
    (suite / "suite.json").write_text(json.dumps(document))
    cases = [("long", "echo one two three"), ("nice", "nice")]
    lines = [json.dumps({"id": name, "task": task, "workspace": "fixtures/w"}) + "\n" for name, task in cases]
    (suite / "cases.jsonl").write_text("".join(lines))
    run = evalwright("run", "short", "--run-id", "r1")
    assert run["run"]["status_counts"]["pass"] == run["run"]["status_counts"]["fail"] == 1
    bundles = tmp_path / "evals" / "runs" / "r1" / "cases"
    assert int((bundles / "nice" / "output.txt").read_text()) >= 7
    (score,) = json.loads((bundles / "long" / "score.json").read_bytes())["scores"]
    assert (score["scorer"], score["ok"], score["metrics"]) == ("acme-wordcount", False, {"words": 3.0})


def test_importer_makes_a_suite(evalwright: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,answer\nOne?,1\n,none\n")
    data = evalwright("import", "acme-csv", "q.csv")
    assert (data["case_count"], len(data["unsupported"])) == (1, 1)
    assert evalwright("validate", data["suite"])


def test_stranger_s_own_tests_pass(python: Path, tmp_path: Path) -> None:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(ACME / "tests")]
    done = _run([*command, f"--rootdir={ACME}"], tmp_path)
    assert " passed" in done.stdout


def _wheel(project: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(project)]
    _run(command, project)
    (wheel,) = target.glob("*.whl")
    return wheel


def _run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    dropped = ("EVALWRIGHT_", "EVALCTL_", "PYTHONPATH", "PYTHONWARNINGS", "PYTEST_", "SOURCE_DATE_EPOCH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    return done
