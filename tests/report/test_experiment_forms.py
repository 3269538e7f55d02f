"""The forms of an experiment's report: golden files, hostile text, many cases, narrow and plain screens."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.report.views import MIXED, ODD, score, trial, view

from evalwright.report import ExperimentView
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.failures import failures_of
from evalwright.report.figures.grid import case_rows
from evalwright.report.figures.groups import group_failures
from evalwright.report.forms.annotations import github_annotations
from evalwright.report.forms.experiment_data import experiment_data
from evalwright.report.forms.experiment_markdown import experiment_markdown, groups_markdown
from evalwright.report.forms.experiment_text import experiment_text, groups_text, headline, summary_text
from evalwright.report.forms.findings import parts_of
from evalwright.report.forms.junit import junit_experiment
from evalwright.report.forms.pictures import pictures
from evalwright.report.forms.sarif import sarif_report
from evalwright.report.screen import Screen
from evalwright.rundir.experiment import Cell

Golden = Callable[[str, str], None]
WIDE = Screen(width=110)
COMPARED = (
    Difference("large against small", 0.55, -0.02, 0.91, "no-evidence", "No evidence that large and small differ: +0.55."),
)


def hostile() -> ExperimentView:
    """Return an experiment in which every text that anybody can choose is odd."""
    wrong = score(id=ODD, label=ODD, findings=[{"why": ODD, "path": ODD, "line": 3, ODD: ODD}, {"why": "x" * 1_000_000}])
    rows = [trial(ODD, 1, ODD, "f", scores=[wrong]), trial(ODD, 1, "silent", "f", scores=[wrong | {"findings": []}])]
    run = replace(
        view({"odd": ["ff"]}, cases=[ODD, "silent"]).runs[0],
        suite=ODD,
        arm=ODD,
        trials=[replace(row, run_id="x.odd.1") for row in rows],
    )
    return view({}, suite=ODD, runs=[run], cells=[Cell(1, ODD, "x.odd.1", 2)])


def rendered(found: ExperimentView, form: str) -> str:
    failures = failures_of(found)
    groups = group_failures(failures, "finding", {})
    forms: dict[str, Callable[[], str]] = {
        "text": lambda: experiment_text(found, screen=WIDE, comparisons=COMPARED, closer=["evalwright compare x"]),
        "failures": lambda: experiment_text(found, screen=WIDE, failures=failures, held_out=2),
        "summary": lambda: summary_text(found, screen=WIDE, comparisons=COMPARED, closer=["evalwright compare x"]),
        "groups": lambda: groups_text(groups, "finding", screen=WIDE, held_out=1),
        "markdown": lambda: experiment_markdown(found, comparisons=COMPARED),
        "markdown-failures": lambda: experiment_markdown(found, pictures=["rates.svg"], failures=failures),
        "markdown-groups": lambda: groups_markdown(groups, "finding"),
        "junit": lambda: junit_experiment(found),
        "sarif": lambda: sarif_report(parts_of(found), held_out=1),
        "github": lambda: github_annotations(parts_of(found), headline(found)),
        "json": lambda: json.dumps(
            experiment_data(found, states={}, comparisons=COMPARED) | {"cases": [row.as_json() for row in case_rows(found)]},
            indent=1,
        ),
    }
    return forms[form]()


FORMS = (
    "text",
    "failures",
    "summary",
    "groups",
    "markdown",
    "markdown-failures",
    "markdown-groups",
    "junit",
    "sarif",
    "github",
    "json",
)


@pytest.mark.parametrize("form", FORMS)
def test_form_is_the_golden_one(golden: Golden, form: str) -> None:
    golden(f"experiment.{form}", rendered(MIXED, form))


@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_stays_text(form: str) -> None:
    text = rendered(hostile(), form)
    assert len(text) < 200_000 or form == "json"
    if form == "junit":
        ET.fromstring(text)
    elif form in ("sarif", "json"):
        json.loads(text)
    else:
        text.encode("utf-8")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e\ufffe]", text)
    if form.startswith("markdown"):
        prose = re.sub("```text\n.*?\n```", "", text, flags=re.DOTALL)
        assert not re.search(r"(?<!\\)<script|^# heading|^::", prose, re.MULTILINE)
    if form == "github":
        assert all(line.startswith(("::error ", "::notice ")) for line in text.splitlines())


@pytest.mark.parametrize("form", FORMS)
def test_same_experiment_gives_the_same_bytes(form: str) -> None:
    assert rendered(MIXED, form) == rendered(MIXED, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("arms", [{"only": ["   "]}, {"only": ["hhh"]}, {"only": ["uuu"], "other": ["ppp"]}], ids=str)
def test_experiment_without_scores_is_shown_all_the_same(form: str, arms: dict[str, list[str]]) -> None:
    assert rendered(view(arms), form)


def test_experiment_of_which_no_run_began_is_shown() -> None:
    found = view({"only": ["   "]}, runs=[])
    assert "0 of 3 trials" in headline(found)
    assert "Partial" in experiment_text(found, screen=WIDE)
    assert ET.fromstring(junit_experiment(found)).get("tests") == "0"


def test_first_line_answers_and_missing_trials_are_told() -> None:
    lines = rendered(MIXED, "text").splitlines()
    assert lines[0].startswith("demo: large 0.75 (")
    assert "11 of 12 trials and 3 of 4 runs are finished" in rendered(MIXED, "text")
    assert lines[-1] == "Look closer:  evalwright compare x"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_text_fits_the_screen_where_it_can(width: int) -> None:
    lines = experiment_text(MIXED, screen=Screen(width=width)).splitlines()
    assert any("▒▒" in line for line in lines) == (width >= 60)
    assert all(len(line) <= max(width, 50) for line in lines)


def test_plain_screen_gets_ascii_only() -> None:
    for form in (experiment_text(MIXED, screen=Screen(unicode=False)), summary_text(hostile(), screen=Screen(unicode=False))):
        assert form.isascii()
    assert "\u001b" not in rendered(MIXED, "text")


def test_many_cases_are_drawn_in_few_lines() -> None:
    cases = [f"case-{number:04}" for number in range(1000)]
    text = experiment_text(view({"a": ["pf" * 500, "pp" * 500], "b": ["f" * 1000] * 2}, cases=cases), screen=WIDE)
    assert len(text.splitlines()) < 60
    assert "cases 1 to 105: case-0000 … case-0104" in text
    assert "Flaky" in text
    assert "(500)" in text


def test_ten_thousand_trials_are_shown_in_every_form_in_bounded_size() -> None:
    cases = [f"case-{number:04}" for number in range(1000)]
    found = view({"a": ["pfh" * 333 + "p"] * 5, "b": ["fpu" * 333 + "f"] * 5}, cases=cases, cost={"a": 0.1, "b": 0.2})
    assert len(found.trials) == 10_000
    for form in ("text", "failures", "summary", "groups", "markdown", "markdown-failures"):
        assert len(rendered(found, form)) < 60_000
    assert sum(map(len, pictures(found).values())) < 800_000
    assert ET.fromstring(junit_experiment(found)).get("tests") == "10000"
    assert len(json.loads(rendered(found, "json"))["cases"]) == 1000


def test_comparison_is_shown_as_given() -> None:
    assert COMPARED[0].sentence in rendered(MIXED, "text")
    assert "No evidence that large and small differ" in rendered(MIXED, "markdown")


def test_junit_has_a_suite_a_pass_and_counts_missing_trials_as_skipped() -> None:
    root = ET.fromstring(junit_experiment(MIXED))
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "12",
        "failures": "4",
        "errors": "2",
        "skipped": "2",
    }
    assert [suite.get("name") for suite in root] == ["demo.small.1", "demo.small.2", "demo.large.1", "demo.large.2"]
    assert all(len(suite) == int(suite.get("tests", "")) for suite in root)
    assert [case.get("message") for case in root[3].iter("skipped")] == ["no result"]
    only = ET.fromstring(junit_experiment(MIXED, failures=failures_of(MIXED)))
    assert (only.get("tests"), sum(len(suite) for suite in only)) == ("12", 7)


@pytest.mark.parametrize("found", [MIXED, hostile()], ids=["plain", "hostile"])
def test_junit_of_an_experiment_parses(found: ExperimentView) -> None:
    assert len(ET.fromstring(junit_experiment(found).encode())) == len(found.cells)
