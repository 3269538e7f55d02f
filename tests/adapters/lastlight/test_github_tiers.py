"""Tiers whose work is done on GitHub run against the fake one: an agent that acts passes, one that talks does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.adapters.lastlight.conftest import DATA, Describe

from evalwright.interfaces import ImportedCase, ImportedFile, ImportedSuite, Unsupported

if TYPE_CHECKING:
    from tests.conftest import Project

AGENT = """
import json, os, re, sys, urllib.request

task = open(os.environ["EVALWRIGHT_TASK_FILE"]).read()
repository = re.search(r"^Repository: (.+)$", task, re.M)[1]
number = int(re.search(r"#(\\d+)", task)[1])
plan = json.load(open(sys.argv[1])).get(str(number), {})

def call(path, body, base="GITHUB_API_URL"):
    headers = {"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ[base] + path, data=data, headers=headers)
    return json.load(urllib.request.urlopen(request))

issue = f"/repos/{repository}/issues/{number}"
if "labels" in plan:
    call(issue + "/labels", {"labels": plan["labels"]})
if "comment" in plan:
    call(issue + "/comments", {"body": plan["comment"]})
if plan.get("merge"):
    pull = call(f"/repos/{repository}/pulls/{number}", None)
    query = "mutation($id: ID!) { enablePullRequestAutoMerge(input: {pullRequestId: $id}) { clientMutationId } }"
    call("", {"query": query, "variables": {"id": pull["node_id"]}}, "GITHUB_GRAPHQL_URL")
print(plan.get("says", "done"))
"""
TRIAGE: dict[str, Any] = {
    "101": {"labels": ["bug", "ready-for-agent"]},
    "102": {"labels": ["needs-info"], "comment": "Which version is it? Please give steps to reproduce it."},
    "103": {"labels": ["enhancement", "ready-for-agent"]},
    "104": {"labels": ["question"]},
}
MERGE: dict[str, Any] = {
    "501": {"merge": True, "says": "ASSESSMENT_COMPLETE: impact=low\nASSESSMENT_COMPLETE: action=automerge"},
    "502": {"merge": True, "says": "ASSESSMENT_COMPLETE: impact=medium action=automerge"},
    "503": {"labels": ["requires-human"], "says": "ASSESSMENT_COMPLETE: impact=high action=comment"},
}
ANSWER: dict[str, Any] = {"201": {"labels": ["question", "repo-prompt-applied"]}, "202": {"labels": ["question"]}}


def statuses(project: Project, tier: str, plan: dict[str, Any], *options: str) -> dict[str, str]:
    (project.path / "agent.py").write_text(AGENT)
    (project.path / "plan.json").write_text(json.dumps(plan))
    argv = json.dumps(["python3", str(project.path / "agent.py"), str(project.path / "plan.json")])
    words = [word for option in (f"argv={argv}", *options) for word in ("--set", option)]
    imported = project.call("import", "lastlight", str(DATA / "tiers" / f"{tier}.json"), "--out", "suite", *words)
    assert imported.exit_code == 0, imported.envelope
    run = project.call("run", "./suite", "--run-id", "r")
    assert run.exit_code == 0, run.envelope
    return {case["id"].split("__")[1]: case["status"] for case in project.call("report", "r").data["cases"]}


@pytest.mark.parametrize(
    ("tier", "plan", "options"),
    [("triage", TRIAGE, []), ("dependency-merge", MERGE, ["markers=true"]), ("repo-config", ANSWER, [])],
)
def test_an_agent_that_does_what_is_right_passes(project: Project, tier: str, plan: dict[str, Any], options: list[str]) -> None:
    assert set(statuses(project, tier, plan, *options).values()) == {"pass"}


def test_an_agent_that_does_something_else_fails(project: Project) -> None:
    wrong = {**TRIAGE, "101": {"labels": ["bug"]}, "104": {"labels": ["question", "ready-for-human"]}}
    assert statuses(project, "triage", wrong) == {
        "bug-with-repro-ready": "fail",
        "bug-no-repro-needs-info": "pass",
        "feature-well-specified": "pass",
        "pure-question": "fail",
    }


def test_a_right_action_with_a_wrong_record_fails_where_markers_are_asked_for(project: Project) -> None:
    wrong = {**MERGE, "503": {**MERGE["503"], "says": "ASSESSMENT_COMPLETE: impact=none action=comment"}}
    assert statuses(project, "dependency-merge", wrong, "markers=true")["high-framework-major"] == "fail"


def test_calls_do_not_decide_where_tests_do(describe: Describe) -> None:
    for tier, required in (("code-fix", False), ("fix", False), ("triage", True)):
        first = describe(DATA / "tiers" / f"{tier}.json")[0]
        assert isinstance(first, ImportedSuite)
        (entry,) = [entry for entry in first.document["scorers"] if entry["use"] == "http-calls"]
        assert entry.get("required", True) is required


def test_the_seed_shows_the_evidence_that_the_task_tells_of(describe: Describe) -> None:
    items = describe(DATA / "tiers" / "fix.json")
    path = "seeds/fix__reproducible-api-removal.json"
    (seed,) = [json.loads(item.content) for item in items if isinstance(item, ImportedFile) and str(item.path) == path]
    repository = seed["repositories"]["acme/slugger"]
    (pull,) = repository["pulls"]
    (check,) = pull["checks"]
    assert (check["conclusion"], "kebab" in check["log"], repository["checks"]["main"][0]["conclusion"]) == (
        "failure",
        True,
        "success",
    )
    heads = {branch: "kebabCase" in files["vendor/tiny-case/index.js"] for branch, files in repository["branches"].items()}
    assert heads == {"main": False, pull["head"]: True}


def test_diff_of_a_pull_request_is_the_input_diff(describe: Describe) -> None:
    items = describe(DATA / "tiers" / "dependency-merge.json")
    cases = [item.record for item in items if isinstance(item, ImportedCase)]
    files = {str(item.path): item.content.decode() for item in items if isinstance(item, ImportedFile)}
    assert all(files[case["diff"]].startswith("diff --git a/package.json b/package.json\n") for case in cases)


def test_unknown_expectation_of_github_is_listed(describe: Describe, tier: Callable[[str], Path]) -> None:
    directory = tier("triage")
    instances = json.loads((directory / "instances.json").read_text())
    instances[1]["expect_github"]["stars_given"] = 3
    (directory / "instances.json").write_text(json.dumps(instances))
    refused = [item.what for item in describe(directory) if isinstance(item, Unsupported)]
    assert refused == ["triage__bug-no-repro-needs-info: expect_github.stars_given"]


def test_calls_decide_in_a_suite_of_both_kinds_and_the_tested_case_leaves_them_out(
    describe: Describe, tier: Callable[[str], Path]
) -> None:
    directory = tier("code-fix")
    instances = json.loads((directory / "instances.json").read_text())
    triage = json.loads((tier("triage") / "instances.json").read_text())
    (directory / "instances.json").write_text(json.dumps([*instances, *triage]))
    items = describe(directory)
    assert isinstance(items[0], ImportedSuite)
    assert {"use": "http-calls"} in items[0].document["scorers"]
    expectations = {item.record["id"]: set(item.record["expect"]) for item in items if isinstance(item, ImportedCase)}
    assert expectations["codefix__date-range-off-by-one"] == {"tests"}
    assert expectations["triage__pure-question"] == {"http_calls"}
    assert [item.what for item in items if isinstance(item, Unsupported)] == ["codefix__date-range-off-by-one: expect_github"]


def test_expectation_without_a_repository_is_listed(describe: Describe, tier: Callable[[str], Path]) -> None:
    directory = tier("triage")
    instances = json.loads((directory / "instances.json").read_text())
    del instances[0]["repo"]
    (directory / "instances.json").write_text(json.dumps(instances))
    refused = [item.what for item in describe(directory) if isinstance(item, Unsupported)]
    assert refused == ["triage__bug-with-repro-ready: expect_github"]
