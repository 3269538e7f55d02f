"""Before and after runs: doctor, preflight and gc, and the help of the verb."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from tests.conftest import Project
from tests.workflow.work_project import WorkProject, work_project
from tests.zygote import Zygote

from evalwright_plugins.workflow.commands.verb import ACTIONS, WorkVerb


@pytest.fixture
def repository(tmp_path: Path, zygote: Zygote) -> WorkProject:
    """Return a repository without runs."""
    return work_project(tmp_path, zygote)


@pytest.fixture
def driver(repository: WorkProject) -> Iterator[Popen[bytes]]:
    """Return a process that drives the run ``w-1``, in the middle of its step."""
    begun = repository.path / "begun"
    os.mkfifo(begun)
    os.mkfifo(repository.path / "never")
    config = repository.config(workers={"build": f"echo > {begun}; cat {repository.path / 'never'}"})
    process = repository.start("work", "start", "--config", config)
    begun.read_bytes()
    yield process
    process.kill()
    process.communicate(timeout=60)


def components(answer: Any) -> dict[str, Any]:
    assert answer.exit_code == 0
    found: dict[str, Any] = answer.data["components"]
    return found


def test_help_explains_every_action(project: Project) -> None:
    shown = project.call("work", "--help").stdout

    assert {words.split()[0] for words in WorkVerb.actions} == set(ACTIONS)
    assert all(f"\n  {words} " in shown for words in WorkVerb.actions)


@pytest.mark.parametrize(
    "words", [["gc", "w-1"], ["inbox", "w-1"], ["status", "--yes"], ["verify", "x", "y"], ["gc", "--follow"]]
)
def test_words_that_an_action_would_pass_over_are_refused(project: Project, words: list[str]) -> None:
    answer = project.call("work", *words)

    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert f"work {words[0]} takes no" in answer.envelope["errors"][0]["message"]


def test_doctor_works_outside_a_repository(project: Project) -> None:
    found = components(project.call("work", "doctor"))

    assert found["git"]["state"] == "healthy"
    assert "subprocess" in found["sandboxes"]["usable"]
    assert found["repository"]["state"] == "unhealthy"
    assert "git init" in found["repository"]["details"]


def test_doctor_finds_nothing_in_a_fresh_repository(repository: WorkProject) -> None:
    found = components(repository.work("doctor"))

    assert {name for name, entry in found.items() if entry["state"] != "healthy"} <= {"sandboxes"}
    assert found["runs"]["details"] == "none yet"


def test_doctor_names_a_run_whose_driver_died_and_what_it_left(repository: WorkProject, driver: Popen[bytes]) -> None:
    held = components(repository.work("doctor"))
    driver.send_signal(signal.SIGKILL)
    driver.wait(60)

    answer = repository.work("doctor")

    assert [line.split()[3] for line in held["locks"]["held"]] == [str(driver.pid)] * 3
    assert held["runs"]["state"] == "healthy"
    assert "nobody drives w-1" in components(answer)["runs"]["details"]
    assert components(answer)["locks"]["held"] == []
    assert "evalwright work resume w-1" in [one["command"] for one in answer.envelope["commands"]]


def test_doctor_names_a_damaged_ledger(repository: WorkProject) -> None:
    repository.waiting()
    ledger = repository.run_files("w-1") / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[1:])

    found = components(repository.work("doctor"))["ledgers"]

    assert (found["state"], found["command"]) == ("unhealthy", "evalwright work verify w-1")


def test_preflight_says_what_would_be_done_and_makes_nothing(repository: WorkProject) -> None:
    config = repository.config()

    answer = repository.work("preflight", "--config", config)

    assert (answer.exit_code, answer.data["base"]) == (0, repository.git("rev-parse", "HEAD"))
    assert answer.data["steps"] == [{"step": "build", "worker": "build"}, {"step": "verify", "worker": "verify"}]
    assert answer.envelope["commands"][0]["command"] == "evalwright work start --config w.json"
    assert not repository.state.exists()


def test_preflight_names_every_problem_at_once(repository: WorkProject) -> None:
    config = repository.config(
        base="no-such-branch",
        sandbox={"use": "subprocess", "colour": "red"},
        steps=[{"id": "build"}, {"id": "verify"}, {"id": "other"}, {"id": "third"}],
    )
    document = json.loads((repository.path / config).read_text())
    document["workers"] = {
        "build": {"comand": "true"},
        "verify": {"use": "no-such-runner"},
        "other": {"use": 7},
        "third": {"use": "command", "command": "true", "shell": True},
    }
    (repository.path / config).write_text(json.dumps(document))

    answer = repository.work("preflight", "--config", config)

    keys = [record["key"] for record in answer.envelope["errors"]]
    assert answer.exit_code == 1
    assert {"base", "sandbox.colour", "workers.build.comand", "workers.verify", "workers.other.use"} <= set(keys)
    assert not any(key.startswith("workers.third") for key in keys)
    assert all(record["hint"] for record in answer.envelope["errors"] if record["key"] in ("base", "workers.other.use"))


def test_preflight_names_every_problem_of_a_workflow_at_once(repository: WorkProject) -> None:
    ways = [{"from": "biuld", "on": "failed", "to": "build"}, {"from": "build", "on": "failed", "to": "nowhere"}]
    config = repository.config(workflow={"transitions": ways, "entry": "start"})

    records = repository.work("preflight", "--config", config).envelope["errors"]

    assert {record["key"] for record in records} == {"entry", "transitions.0.from", "transitions.1.to"}
    assert records[1]["did_you_mean"] == "build"


def test_preflight_names_a_text_that_is_not_there(repository: WorkProject) -> None:
    config = repository.config(prompt="file://no.md")

    answer = repository.work("preflight", "--config", config)

    assert answer.exit_code == 1
    assert "no.md" in answer.envelope["errors"][0]["message"]
    assert answer.envelope["errors"][0]["hint"]


def test_preflight_warns_of_what_is_not_committed_not_staffed_or_would_be_superseded(repository: WorkProject) -> None:
    repository.waiting()
    (repository.path / "calc.txt").write_text("changed\n")
    config = repository.config(steps=[{"id": "build"}, {"id": "judge"}], toolchain=["tool.lock"], artifacts={"plan": "no.md"})

    answer = repository.work("preflight", "--config", config)

    messages = " ".join(record["message"] for record in answer.envelope["warnings"])
    assert (answer.exit_code, set(answer.warning_codes)) == (0, {"W_PREFLIGHT"})
    assert all(word in messages for word in ("calc.txt", "step judge has no worker", "tool.lock", "no.md", "w-1 of w waits"))


def test_preflight_looks_for_programs_of_workers_and_of_the_gate(repository: WorkProject) -> None:
    config = repository.config()
    document = json.loads((repository.path / config).read_text()) | {"sandbox": {"use": "bubblewrap"}}
    document["workers"] = {"build": {"argv": ["no-such-agent"]}, "verify": {"argv": ["./check.sh"]}}
    (repository.path / config).write_text(json.dumps(document))

    answer = repository.work("preflight", "--config", config)

    messages = " ".join(record["message"] for record in answer.envelope["warnings"] + answer.envelope["errors"])
    assert "workers.build: no-such-agent is not installed here" in messages
    assert "workers.verify: ./check.sh is not in " in messages


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"on_gate": {"script": ["no-such-gate"]}}, "on_gate.script"),
        ({"workers": {"build": {"argv": ["no-such-agent"]}}}, "workers.build"),
        ({"workers": {"build": {"argv": ["sh"]}}, "env": {"PATH": "/nowhere"}}, "workers.build"),
        ({"workers": {"build": {"use": "no-such-runner"}}}, "workers.build"),
        ({"sandbox": {"use": "no-such-sandbox"}}, "sandbox"),
        ({"sandbox": {"use": "vm"}}, "sandbox"),
        ({"base": "no-such-branch"}, "base"),
    ],
)
def test_start_refuses_like_preflight_what_could_not_be_driven(
    repository: WorkProject, change: dict[str, Any], key: str
) -> None:
    config = repository.config()
    document = json.loads((repository.path / config).read_text()) | change
    (repository.path / config).write_text(json.dumps(document))

    before, refused = (repository.work(action, "--config", config) for action in ("preflight", "start"))

    assert (refused.exit_code, [record["key"] for record in refused.envelope["errors"]]) == (1, [key])
    assert refused.envelope["errors"] == before.envelope["errors"]
    assert not repository.state.exists()


def test_gate_that_has_gone_leaves_the_question_open(repository: WorkProject) -> None:
    gate = repository.path / "gate"
    gate.write_text('#!/bin/sh\nmv "$0" "$0.away"\necho \'{"decision": "approved"}\'\n')
    gate.chmod(0o755)
    answer = repository.driven(on_gate={"script": [str(gate)]}, stop_at=["build"])
    assert (answer.exit_code, answer.error_codes) == (3, ["E_PLUGIN_FAILED"])
    assert str(gate) in answer.envelope["errors"][0]["message"]

    (repository.path / "gate.away").rename(gate)

    assert repository.work("resume").data["status"] == "SUCCEEDED"


def test_preflight_refuses_while_the_same_work_is_driven(repository: WorkProject, driver: Popen[bytes]) -> None:
    answer = repository.work("preflight", "--config", "w.json")
    beside = repository.work("preflight", "--config", repository.config("another"))
    driver.send_signal(signal.SIGKILL)
    driver.wait(60)
    left = repository.work("preflight", "--config", "w.json")

    assert f"process {driver.pid} drives w-1" in " ".join(record["message"] for record in beside.envelope["warnings"])
    assert "w-1 of w is driven now" in answer.envelope["errors"][0]["message"]
    assert "w-1 of w was interrupted" in left.envelope["errors"][0]["message"]
    assert left.envelope["errors"][0]["hint"] == "evalwright work resume w-1"


def test_preflight_without_a_configuration_says_how(repository: WorkProject) -> None:
    assert repository.work("preflight").error_codes == ["E_CASE_INVALID"]
    assert repository.work("preflight", "--config", "no.yaml").exit_code == 1


def test_gc_says_first_and_then_removes_what_nobody_needs(repository: WorkProject) -> None:
    repository.driven(on_gate="approve")
    files = repository.run_files("w-1")
    (files / "steps" / "build-1" / "home" / "closed").mkdir(parents=True)
    (files / "steps" / "build-1" / "home" / "closed").chmod(0)
    tree = repository.state / "worktrees" / "w-1"
    repository.git("worktree", "add", "--quiet", "--lock", str(tree), "run/w-1")
    (repository.state / "runs" / "never-begun").mkdir()
    (repository.state / "importing-x").mkdir()
    kept = {path: path.read_bytes() for path in [files / "ledger.jsonl", *files.glob("logs/*")]}

    dry = repository.work("gc")
    there = [Path(item["path"]).exists() for item in dry.data["items"]]
    done = repository.work("gc", "--yes")

    assert (dry.data["removed"], done.data["removed"]) == (False, True)
    assert {item["kind"] for item in dry.data["items"]} == {"worktree", "steps", "unbegun", "import"}
    assert there == [True] * 4
    assert done.data["items"] == dry.data["items"]
    assert not any(Path(item["path"]).exists() for item in done.data["items"])
    assert {path: path.read_bytes() for path in kept} == kept
    assert repository.git("worktree", "list").count("\n") == 0
    assert repository.git("rev-parse", "run/w-1")
    assert repository.work("gc").data["items"] == []
    assert repository.text("gc") == "nothing to remove\n"


def test_gc_forgets_a_worktree_that_somebody_removed_by_hand(repository: WorkProject) -> None:
    repository.driven(on_gate="approve")
    tree = repository.state / "worktrees" / "w-1"
    repository.git("worktree", "add", "--quiet", "--lock", str(tree), "run/w-1")
    tree.rename(repository.path.parent / "moved away")

    repository.work("gc", "--yes")

    assert repository.git("worktree", "list").count("\n") == 0


def test_gc_leaves_alone_what_waits_what_is_driven_and_what_cannot_be_read(
    repository: WorkProject, driver: Popen[bytes]
) -> None:
    damaged = repository.run_files("damaged")
    (damaged / "steps").mkdir(parents=True)
    (damaged / "ledger.jsonl").write_text("not a ledger\n")

    answer = repository.work("gc", "--yes")

    assert answer.data["items"] == []
    assert (repository.run_files("w-1") / "steps").is_dir()
    assert (repository.state / "worktrees" / "w-1").is_dir()
    assert driver.poll() is None


def test_gc_never_follows_a_link_out_of_the_repository(repository: WorkProject) -> None:
    repository.driven(on_gate="approve")
    precious = repository.path.parent / "precious"
    precious.mkdir(exist_ok=True)
    (precious / "file").write_text("x")
    steps = repository.run_files("w-1") / "steps"
    (steps / "build-1" / "home" / "link").symlink_to(precious)
    (repository.state / "importing-link").symlink_to(precious)

    answer = repository.work("gc", "--yes")

    assert (precious / "file").read_text() == "x"
    assert precious.stat().st_mode & 0o777 == 0o755
    assert not steps.exists()
    assert answer.warning_codes == ["W_SANDBOX_LEFT"]
