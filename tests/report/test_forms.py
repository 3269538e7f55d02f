"""The report's forms: text, markdown, JUnit, and one trial explained."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from evalwright.errors import RunNotFound
from evalwright.report import (
    Projection,
    ReportedCase,
    explain_trial,
    explanation_text,
    junit_report,
    markdown_report,
    project,
    text_report,
)
from evalwright.report.wording import finding_text
from evalwright.rundir import RunDirectory

ODD = "\u001b[31mred\u0000 ]]> <b> & \"'`*_|\ud800\ufffe \r\n# heading\n- [x](y)"


def case(case_id: str, status: str, **more: Any) -> ReportedCase:
    scores = [] if status in {"pass", "unscored"} else [score(findings=more.pop("findings", []))]
    return ReportedCase(id=case_id, status=status, scores=scores, **more)


def score(**fields: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"scorer": "exact", "ok": False, "score": 0.0, "label": "fail", "findings": [], "required": True}
    return record | fields


def projection(*cases: ReportedCase, suite: str = "demo") -> Projection:
    return Projection(run_id="r", suite=suite, suite_hash="sha256:0", cases=cases, sealed=True)


MIXED = (
    case("p", "pass"),
    case("f", "fail"),
    case("e", "error", fault="harness"),
    case("t", "error", fault="agent"),
    case("u", "unscored"),
)


def test_junit_counts_failures_errors_and_skipped_apart() -> None:
    root = ET.fromstring(junit_report(projection(*MIXED), durations={"p": 1.5, "f": 0.25}).encode())
    for element in (root, root[0]):
        found = {name: element.get(name) for name in ("name", "tests", "failures", "errors", "skipped", "time")}
        assert found == {"name": "demo", "tests": "5", "failures": "1", "errors": "2", "skipped": "1", "time": "1.750"}
    kinds = {element.get("name"): [child.tag for child in element] for element in root[0]}
    assert kinds == {"p": [], "f": ["failure"], "e": ["error"], "t": ["error"], "u": ["skipped"]}


@pytest.mark.parametrize("place", ["finding", "path", "label", "scorer", "id", "suite", "case"])
def test_junit_is_readable_whatever_stands_in_it(place: str) -> None:
    findings = [{"why": ODD if place == "finding" else "x"} | ({"path": ODD} if place == "path" else {})]
    wrong = score(findings=findings if place in {"finding", "path"} else [])
    wrong |= {place: ODD} if place in {"label", "scorer", "id"} else {}
    reported = ReportedCase(id=ODD if place == "case" else "c", status="fail", scores=[wrong])
    text = junit_report(projection(reported, suite=ODD if place == "suite" else "demo"), durations={})
    root = ET.fromstring(text.encode())
    assert root.get("failures") == "1"
    assert root.find(".//failure") is not None
    assert not any(character < " " and character not in "\t\n\r" for character in text)


def test_junit_body_is_bounded() -> None:
    findings = [{"why": "x" * 100_000, "n": number} for number in range(1000)]
    assert len(junit_report(projection(case("c", "fail", findings=findings)), durations={})) < 20_000


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_junit_time_is_a_number_whatever_a_record_says(seconds: float) -> None:
    root = ET.fromstring(junit_report(projection(case("c", "pass")), durations={"c": seconds}))
    for element in root.iter():
        if "time" in element.attrib:
            assert 0 <= float(element.attrib["time"]) < float("inf")


def test_text_says_the_verdict_first_and_errors_before_failures() -> None:
    lines = text_report(projection(*MIXED), next_command="do this").splitlines()
    assert lines[0].startswith("demo · fail · 1 of 5 passed · report sha256:")
    marks = [line.split()[1] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert marks == ["e", "t", "f", "u", "p"]
    assert lines[-1] == "Look closer:  do this"


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [(["pass"], "pass"), (["pass", "fail"], "fail"), (["error"], "error"), (["error", "pass"], "fail"), (["unscored"], "fail")],
)
def test_headline_names_one_verdict(statuses: list[str], verdict: str) -> None:
    report = projection(*(case(f"c{number}", status) for number, status in enumerate(statuses)))
    assert text_report(report).split(" · ")[1] == verdict


def test_headline_of_no_case_is_no_error_and_no_pass() -> None:
    assert text_report(projection()).split(" · ")[1] == "fail"


def test_finding_is_one_line_of_bounded_length() -> None:
    text = finding_text({"why": "a\r\nb\u2028c\x85d", "path": "x\ny", "value": {"k": [1]}, "long": "z" * 500})
    assert len(text.splitlines()) == 1
    assert len(text) <= 160
    assert finding_text({"path": "p", "why": "gone"}) == "p: gone"
    assert finding_text({}) == ""


def test_text_never_sends_control_characters_to_a_terminal() -> None:
    text = text_report(projection(case("c", "fail", findings=[{"why": ODD}])))
    assert not any(character < " " and character != "\n" for character in text)
    assert "\u001b" not in text


def test_long_list_of_findings_is_cut_with_its_number() -> None:
    text = text_report(projection(case("c", "fail", findings=[{"why": str(number)} for number in range(20)])))
    assert "… 12 more" in text


def test_markdown_escapes_what_would_be_markup_and_holds_no_times() -> None:
    report = projection(case("c", "fail", findings=[{"why": ODD}]))
    text = markdown_report(report)
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "\n# heading" not in text
    assert "[x](y)" not in text
    assert "time" not in text.lower()
    assert markdown_report(report) == text


def test_markdown_of_a_green_run_says_none() -> None:
    text = markdown_report(projection(case("p", "pass")))
    assert text.startswith("# demo: pass\n")
    assert "None." in text
    assert "| `p` | pass |" in text
    assert "## Cases" not in markdown_report(projection(case("p", "pass")), failures_only=True)


def test_stored_report_is_the_one_that_is_made_again(run: RunDirectory) -> None:
    assert run.report.read_text() == markdown_report(project(run))


def test_explanation_shows_ten_hops_and_who_vouches(run: RunDirectory) -> None:
    data = explain_trial(run, "c")
    assert [hop["hop"] for hop in data["hops"]] == list(range(1, 11))
    assert (data["case"], data["status"], data["run_id"]) == ("c", "fail", "r")
    assert {plugin["name"] for plugin in data["plugins"]} >= {"command", "subprocess", "exact"}
    assert data["digests"]["output.txt"].startswith("sha256:")
    text = explanation_text(data)
    assert all(hop["name"] in text for hop in data["hops"])


@pytest.mark.parametrize("name", ["nosuch", ".", "..", "../c", "a/b", ""])
def test_explanation_of_an_unknown_case_names_the_known_ones(run: RunDirectory, name: str) -> None:
    if name == "nosuch":
        with pytest.raises(RunNotFound) as caught:
            explain_trial(run, name)
        assert "a, b, c" in caught.value.hint
        return
    from evalwright.errors import EvalwrightError

    with pytest.raises(EvalwrightError) as other:
        explain_trial(run, name)
    assert other.value.exit_code == 1


@pytest.mark.parametrize("file", ["bundle.json", "score.json", "runner.json"])
@pytest.mark.parametrize("text", ["{", "[]", "{}", "null"])
def test_explanation_of_damaged_evidence_is_corrupt_and_no_defect(run: RunDirectory, file: str, text: str) -> None:
    from evalwright.errors import RunCorrupt

    (run.cases / "c" / file).write_text(text)
    with pytest.raises(RunCorrupt):
        explain_trial(run, "c")
