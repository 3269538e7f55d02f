"""Findings for code scanning and for the log of a job: the shape that their readers need, and nothing that breaks out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft202012Validator
from tests.report.views import MIXED, score, trial, view

from evalwright.report import ExperimentView
from evalwright.report.forms.annotations import github_annotations
from evalwright.report.forms.findings import parts_of
from evalwright.report.forms.sarif import sarif_report

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {"type": "object", "required": ["uri"]},
                "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        }
    },
}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
    "properties": {
        "message": MESSAGE,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "rules": {"type": "array", "uniqueItems": True, "items": {"type": "object", "required": ["id"]}},
    },
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}},
                    "results": {"type": "array", "items": RESULT},
                    "invocations": {"type": "array", "items": {"type": "object", "required": ["executionSuccessful"]}},
                },
            },
        },
    },
}
"""What SARIF 2.1.0 requires of the objects that are written (sections 3.13, 3.14, 3.19, 3.20, 3.27, 3.29, 3.30)."""


def with_findings(*findings: dict[str, Any], letter: str = "f", **fields: Any) -> ExperimentView:
    found = view({"only": [letter]}, cases=["a"])
    row = trial("only", 1, "a", letter, scores=[score(findings=list(findings), **fields)])
    return replace(found, runs=[replace(found.runs[0], trials=[row])])


def results(found: ExperimentView) -> list[Any]:
    document = json.loads(sarif_report(parts_of(found)))
    Draft202012Validator(SARIF).validate(document)
    return [result for run in document["runs"] for result in run["results"]]


def annotated(found: ExperimentView) -> Sequence[str]:
    return github_annotations(parts_of(found), "done").splitlines()[:-1]


def test_sarif_has_a_run_a_pass_and_a_rule_a_scorer() -> None:
    document = json.loads(sarif_report(parts_of(MIXED)))
    Draft202012Validator(SARIF).validate(document)
    assert [run["automationDetails"]["id"] for run in document["runs"]] == [
        "demo/small/1/",
        "demo/small/2/",
        "demo/large/1/",
        "demo/large/2/",
    ]
    for run in document["runs"]:
        rules = run["tool"]["driver"]["rules"]
        assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_harness_errors_and_unscored_trials_are_no_results_and_agent_faults_are() -> None:
    small, other, large, _ = json.loads(sarif_report(parts_of(MIXED)))["runs"]
    assert small["invocations"][0]["executionSuccessful"] is False
    assert [note["descriptor"]["id"] for note in small["invocations"][0]["toolExecutionNotifications"]] == ["harness-error"]
    assert [result["ruleId"] for result in other["results"]] == ["agent-fault", "exact", "exact"]
    assert other["invocations"][0]["executionSuccessful"] is True
    assert [note["descriptor"]["id"] for note in large["invocations"][0]["toolExecutionNotifications"]] == ["unscored"]


@pytest.mark.parametrize(
    ("fields", "letter", "level"),
    [({}, "f", "error"), ({"required": False}, "f", "warning"), ({"ok": True}, "p", "note")],
    ids=["required", "advisory", "passed"],
)
def test_level_says_whether_a_finding_decided(fields: dict[str, Any], letter: str, level: str) -> None:
    found = with_findings({"why": "x", "path": "a.py"}, letter=letter, **fields)
    (result,) = results(found)
    assert result["level"] == level
    assert annotated(found)[0].startswith({"note": "::notice "}.get(level, f"::{level} "))


@pytest.mark.parametrize(
    "path", ["a b.py", "a:b/c", "100%.py", "é.py", "a#b?c", "\udcff.py", "../../etc/passwd", "a\nb", "-x", "a,b"]
)
def test_any_path_is_a_uri_that_leads_back_to_it(path: str) -> None:
    (result,) = results(with_findings({"why": "x", "path": path, "line": 7}))
    place = result["locations"][0]["physicalLocation"]
    uri = place["artifactLocation"]["uri"]
    assert (urlsplit(uri).scheme, urlsplit(uri).query, urlsplit(uri).fragment) == ("", "", "")
    assert uri.isascii()
    assert unquote(uri, errors="surrogateescape") == path
    assert place["region"] == {"startLine": 7}


def test_absolute_path_is_no_path_of_the_workspace() -> None:
    (result,) = results(with_findings({"why": "x", "path": "/etc/passwd"}))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///etc/passwd"}


@pytest.mark.parametrize("line", [0, -1, True, "3", 2.5, None, 2**40])
def test_line_that_is_none_is_left_out(line: Any) -> None:
    found = with_findings({"why": "x", "path": "a.py", "line": line})
    assert "region" not in results(found)[0]["locations"][0]["physicalLocation"]
    assert ",line=" not in annotated(found)[0]


@pytest.mark.parametrize("path", [None, "", 3, ["a"], "x" * 5000])
def test_finding_without_a_path_has_no_place(path: Any) -> None:
    assert "physicalLocation" not in results(with_findings({"why": "x", "path": path}))[0]["locations"][0]


def test_each_finding_has_a_print_of_its_own_that_stays() -> None:
    found = with_findings(*({"test": f"t[{number}]", "why": "failed"} for number in range(5)))
    prints = [result["partialFingerprints"]["finding/v1"] for result in results(found)]
    assert len(set(prints)) == 5
    assert prints == [result["partialFingerprints"]["finding/v1"] for result in results(found)]


def test_annotation_stands_at_its_file_and_line() -> None:
    assert annotated(with_findings({"why": "x", "path": "src/a.py", "line": 3})) == [
        "::error file=src/a.py,line=3,title=a%3A exact::src/a.py: x (line 3)"
    ]


@pytest.mark.parametrize(
    "text", ["100%", "a\r\nb", "a\n::error::b", "%0A::stop-commands::x", "a::b", "a,b:c", "\u2028::error::"]
)
@pytest.mark.parametrize("place", ["why", "path"])
def test_nothing_that_an_agent_wrote_begins_a_command(text: str, place: str) -> None:
    found = with_findings({"why": "x", "path": "a.py"} | {place: text})
    (line,) = annotated(found)
    assert line.startswith("::error file=")
    head, _, message = line.removeprefix("::").partition("::")
    assert "%0A" not in message.replace("%250A", "")
    assert head.count(",") == 1
    assert head.count("=") == 2


def test_equal_findings_of_several_passes_are_one_annotation() -> None:
    lines = annotated(view({"only": ["f", "f", "p"]}, cases=["a"]))
    assert lines == ["::error file=src/a.py,line=3,title=a (only%2C 2 of 3 repeats)%3A exact::src/a.py: took 12 tries (line 3)"]


def test_reason_of_an_error_is_read_from_the_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "x.only.1" / "cases" / "a"
    evidence.mkdir(parents=True)
    (evidence / "runner.json").write_text('{"error": {"message": "sandbox\\nlost"}}')
    found = view({"only": ["h"]}, cases=["a"], place=tmp_path)
    assert annotated(found)[0].endswith("::sandbox lost")
