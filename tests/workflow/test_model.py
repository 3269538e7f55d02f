"""The files that users write: strict, every problem at once, and the same plan from YAML, TOML and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.toy import WORKERS

from evalwright.errors import SuiteError
from evalwright_plugins.workflow.model.documents import read_document
from evalwright_plugins.workflow.model.graph import graph_problems
from evalwright_plugins.workflow.model.loading import PRESETS, load_plan, load_workflow, plan_of, preset, unpinned
from evalwright_plugins.workflow.model.workflow import Workflow

YAML = """
work: W
workflow: mine.toml
workers:
  builder: {argv: ["true"]}
"""
TOML = """
name = "mine"
terminal = ["done"]
[[steps]]
id = "build"
worker = "builder"
[[transitions]]
from = "build"
on = "failed"
to = "build"
"""


def written(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> list[dict[str, Any]]:
    with pytest.raises(SuiteError) as caught:
        load_plan(path)
    return caught.value.records()


def test_plan_is_resolved_from_its_files_and_pinned(tmp_path: Path) -> None:
    written(tmp_path, run_yaml=YAML + "prompt: file://task.txt\n", mine_toml=TOML, task_txt="do it")

    plan = load_plan(tmp_path / "run.yaml")

    assert (plan.config.prompt, plan.workflow.edge("build", "succeeded"), plan.workflow.edge("build", "failed")) == (
        "do it",
        "done",
        "build",
    )
    again = unpinned(json.loads(json.dumps(plan.document)))
    assert (again.digest, again.workflow_digest) == (plan.digest, plan.workflow_digest)
    written(tmp_path, task_txt="do something else")
    assert load_plan(tmp_path / "run.yaml").digest != plan.digest


def test_every_problem_is_told_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    document = {
        "work": "a b",
        "workflow": "software-delivery",
        "wokers": {},
        "parallel": "yes",
        "scope": ["../up"],
        "notify": {"webhook": "ftp://x"},
        "retry": {"infrastructure": -1},
    }
    (tmp_path / "run.json").write_text(json.dumps(document))

    problems = refused(tmp_path / "run.json")

    assert {problem["key"] for problem in problems} == {
        "work",
        "wokers",
        "parallel",
        "scope",
        "notify.webhook",
        "retry.infrastructure",
    }
    assert next(problem for problem in problems if problem["key"] == "wokers")["did_you_mean"] == "workers"
    assert all(problem["file"] == str(tmp_path / "run.json") and problem["hint"] for problem in problems)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"entry": "biuld"}, "did you mean build?"),
        ({"transitions": [{"from": "build", "on": "failed", "to": "fxi"}]}, "there is no fxi"),
        (
            {
                "transitions": [
                    {"from": "build", "on": "failed", "to": "done"},
                    {"from": "build", "on": "failed", "to": "build"},
                ]
            },
            "two ways on failed",
        ),
        ({"steps": [{"id": "build"}, {"id": "build"}]}, "build is there twice"),
        ({"transitions": [{"from": "build", "on": "succeeded", "to": "done"}]}, "nothing leads to step check"),
        ({"transitions": [{"from": "check", "on": "succeeded", "to": "build"}]}, "no way leads from step build to a terminal"),
        ({"budgets": {"max_attempts": {"chek": 1}}}, "did you mean check?"),
        ({"steps": [{"id": "build", "needs": ["build"]}, {"id": "check"}]}, "there is no build"),
        (
            {
                "steps": [{"id": "build"}, {"id": "check", "reusable": True}],
                "transitions": [{"from": "check", "on": "findings-blocking", "to": "build"}],
            },
            "no review holds for another run",
        ),
    ],
)
def test_workflow_is_checked_as_a_graph(change: Mapping[str, Any], words: str) -> None:
    base: dict[str, Any] = {"name": "w", "steps": [{"id": "build"}, {"id": "check"}], "terminal": ["done"]}

    problems = graph_problems(Workflow.model_validate(base | dict(change)))

    assert words in "\n".join(f"{problem['message']}; {problem['hint']}" for problem in problems)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "a: 1\na: 2\n", "line 2: found duplicate key"),
        ("a.yaml", "a: &x 1\nb: *x\n", "line 2: an alias"),
        ("a.yaml", "a: !!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
        ("a.yaml", "a: 2024-01-01\n", "a is no JSON value"),
        ("a.yaml", "1: x\n", "1 is no JSON value"),
        ("a.yaml", "- a\n", "does not hold an object"),
        ("a.yaml", "a: [\n", "line"),
        ("a.yaml", "a: .inf\n", "a is no JSON value"),
        ("a.yaml", "x" * (1 << 20) + ": 1", "larger than 1 MiB"),
        ("a.toml", "a = 1\na = 2\n", "Cannot overwrite"),
        ("a.json", '{"a": 1, "a": 2}', "'a' is there twice"),
        ("a.json", '{"a": NaN}', "a is no JSON value"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", r'{"a": ["b", "\ud800"]}', "a.1 is no JSON value"),
        ("a.json", r'{"\ud800": 1}', r"'\ud800' is no JSON value"),
        ("a.yaml", r'a: "\ud800"', "a is no JSON value"),
    ],
)
def test_document_that_hides_something_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(SuiteError) as caught:
        read_document(tmp_path / name)

    assert words in caught.value.message
    assert caught.value.hint


def test_yaml_is_of_version_1_2(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("on: no\nyes: 010\n")

    assert read_document(tmp_path / "a.yaml") == {"on": "no", "yes": 10}


def test_missing_file_and_unknown_workflow_are_named(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path / "none.yaml")
    assert "No such file" in problem["message"]
    (tmp_path / "run.json").write_text('{"work": "W", "workflow": "software-delivry"}')
    (problem,) = refused(tmp_path / "run.json")
    assert problem["hint"].startswith("it is one of readback, software-delivery")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("env", {"A=B": "x"}),
        ("env", {"": "x"}),
        ("env", {"A": "x\0y"}),
        ("env_allowlist", ["A=B"]),
        ("base", "a\0b"),
        ("scope", ["a\0b"]),
        ("artifacts", {"plan": "../plan.md"}),
        ("artifacts", {"plan": "/etc/passwd"}),
        ("artifacts", {"plan": "a\0b"}),
        ("toolchain", ["/etc/passwd"]),
        ("toolchain", [""]),
    ],
)
def test_what_no_process_or_repository_could_take_is_refused_at_once(tmp_path: Path, key: str, value: Any) -> None:
    written(tmp_path, run_json=json.dumps({"work": "W", "workflow": "readback", key: value}))

    assert [problem["key"].split(".")[0] for problem in refused(tmp_path / "run.json")] == [key]


@pytest.mark.parametrize(
    ("value", "key", "words"),
    [
        ({"on_gate": "yes"}, "on_gate", "'ask', 'approve', 'reject' or 'fail', or must be an object (got 'yes')"),
        ({"on_gate": True}, "on_gate", "or must be an object (got True)"),
        ({"on_gate": {"script": []}}, "on_gate.script", "at least 1 item"),
        ({"on_gate": {"script": ["x"], "timeot": 3}}, "on_gate.timeot", "unknown key"),
        ({"notify": {"webhook": "http://x", "timeout": 3}}, "notify.timeout", "unknown key"),
        ({"workflow": 7}, "workflow", "a valid string, or must be an object (got 7)"),
        ({"workers": {"A!": {}}}, "workers.A!", "got 'A!'"),
    ],
)
def test_value_of_several_forms_is_told_by_the_keys_of_the_file(
    tmp_path: Path, value: dict[str, Any], key: str, words: str
) -> None:
    written(tmp_path, run_json=json.dumps({"work": "W", "workflow": "readback"} | value))

    (problem,) = refused(tmp_path / "run.json")

    assert (problem["key"], problem["file"]) == (key, str(tmp_path / "run.json"))
    assert words in problem["message"]
    assert problem["hint"]


def test_names_of_steps_in_the_configuration_are_checked() -> None:
    document: dict[str, Any] = {
        "work": "W",
        "workflow": preset("software-delivery"),
        "workers": {"bulder": {}},
        "prompts": {"x": "y"},
        "stop_at": ["z"],
    }

    with pytest.raises(SuiteError) as caught:
        plan_of(document, "run")

    assert [record["key"] for record in caught.value.records()] == ["workers.bulder", "prompts.x", "stop_at.z"]


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_a_valid_workflow(tmp_path: Path, name: str) -> None:
    (tmp_path / "w.json").write_text(json.dumps(preset(name)))

    assert load_workflow(tmp_path / "w.json").name == name


def test_runs_own_policies_are_added_and_its_budgets_replace_by_key() -> None:
    policy = {"id": "mine", "phase": "pre", "when": {"candidate.clean": True}}
    document = {
        "work": "W",
        "workflow": preset("software-delivery"),
        "workers": WORKERS,
        "policies": [policy],
        "budgets": {"tokens": 5},
    }

    workflow = plan_of(document, "run").workflow

    assert [one.id for one in workflow.policies] == ["merge-evidence-floor", "mine"]
    assert (workflow.budgets.tokens, workflow.budgets.review_rounds_per_work) == (5, 3)


def test_change_is_looked_at_where_its_maker_would_have_led() -> None:
    workflow = Workflow.model_validate(preset("software-delivery"))

    assert {step.id: workflow.after_change(step.id) for step in workflow.steps} == dict.fromkeys(
        ("build", "verify", "review", "fix"), "verify"
    )
