"""JUnit and TAP reports, and the verdict over them."""

from __future__ import annotations

import pytest

from evalwright.model import Score
from evalwright_scorers.junit import read_junit
from evalwright_scorers.reports import Listed, Report, ReportUnreadable
from evalwright_scorers.tap import read_tap
from evalwright_scorers.tested import judge_report


def junit(*cases: str) -> Report:
    return read_junit(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode())


def case(name: str, inside: str = "", classname: str = "tests.test_a") -> str:
    return f'<testcase classname="{classname}" name="{name}">{inside}</testcase>'


def tap(*lines: str) -> Report:
    return read_tap("\n".join(lines).encode())


def outcomes(report: Report) -> dict[str, str]:
    return {test.name: test.outcome for test in report.tests}


@pytest.mark.parametrize(
    ("inside", "outcome", "good"),
    [
        ("", "passed", True),
        ("<system-out>FAILED</system-out>", "passed", True),
        ('<failure message="boom"/>', "failed", False),
        ('<error message="boom"/>', "error", False),
        ('<skipped type="pytest.skip"/>', "skipped", False),
        ('<skipped type="pytest.xfail"/>', "xfailed", True),
        ('<skipped type="pytest.xfail"/><error/>', "error", False),
    ],
)
def test_an_outcome_is_read_from_junit(inside: str, outcome: str, good: bool) -> None:
    (test,) = junit(case("test_x", inside)).tests

    assert (test.outcome, test.good) == (outcome, good)


@pytest.mark.parametrize(
    "name",
    ["test_e[no 'x' here-A]", "tests.test_a::test_e[no 'x' here-A]", "tests/test_a.py::test_e[no 'x' here-A]"],
)
def test_a_name_with_spaces_is_found_in_every_form(name: str) -> None:
    assert junit(case("test_e[no 'x' here-A]")).find(name) is not None


def test_a_method_is_found_by_its_node_id() -> None:
    assert junit(case("test_m", classname="tests.test_a.TestX")).find("tests/test_a.py::TestX::test_m") is not None


def test_the_file_of_a_case_names_it_too() -> None:
    report = read_junit(b'<testsuite><testcase file="lib/a.rb" name="adds"/></testsuite>')

    assert report.find("lib/a.rb::adds") is not None


def test_any_failure_wins_among_tests_of_one_name() -> None:
    report = junit(case("test_x"), case("test_x", "<error/>"), case("test_x"))

    assert not judge_report(report, ["test_x"], 0).ok
    assert not judge_report(report, [], 0).ok


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"not xml",
        b"<testsuites><testsuite>",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuites/>',
        b'<?xml version="1.0"?><!DOCTYPE testsuites SYSTEM "file:///etc/passwd"><testsuites/>',
        "<testsuites/>".encode("utf-16"),
        b"\xff\xfe\xff",
        b"<html/>",
    ],
)
def test_a_document_that_is_no_plain_junit_is_refused(document: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read_junit(document)


def test_tap_results_are_read_with_their_directives() -> None:
    report = tap(
        "TAP version 14",
        "1..7",
        "ok 1 - plain name",
        "not ok 2 - broken # not a directive",
        "  ---",
        "  message: ok 9 - not a result",
        "  ...",
        "ok 3 - left out # SKIP no network",
        "not ok 4 - later # TODO soon",
        "ok 5 - sooner # todo",
        "ok 6",
        r"ok 7 - a \# b \\ c",
        "PASSED [100%]",
        "okay, done",
    )

    assert outcomes(report) == {
        "plain name": "passed",
        "broken # not a directive": "failed",
        "left out": "skipped",
        "later": "xfailed",
        "sooner": "xpassed",
        "6": "passed",
        r"a # b \ c": "passed",
    }


def test_subtests_are_judged_by_their_parent() -> None:
    report = tap("TAP version 14", "    ok 1 - inner", "    1..1", "not ok 1 - outer", "1..1")

    assert outcomes(report) == {"outer": "failed"}


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["ok 1 - a"],
        ["1..2", "ok 1 - a"],
        ["1..1", "ok 1 - a", "ok 2 - b"],
        ["1..1", "1..1", "ok 1 - a"],
        ["1..1", "ok 1 - a", "Bail out! disk is full"],
    ],
)
def test_tap_whose_plan_and_results_disagree_is_refused(lines: list[str]) -> None:
    with pytest.raises(ReportUnreadable):
        tap(*lines)


def test_a_progress_marker_is_no_test() -> None:
    assert outcomes(tap("1..1", "ok 1 - t.py::a", "PASSED [100%]")) == {"t.py::a": "passed"}


def test_the_score_is_the_share_of_required_tests() -> None:
    report = junit(case("a"), case("b", '<failure message="x  !=\n y"/>'), case("other", "<failure/>"))

    score = judge_report(report, ["a", "b", "c", "d"], 1)

    assert (score.ok, score.score) == (False, 0.25)
    assert score.metrics == {"passed": 1.0, "failed": 3.0, "total": 4.0}
    assert score.findings == (
        {"test": "b", "why": "failed", "detail": "x != y"},
        {"test": "c", "why": "missing", "detail": ""},
        {"test": "d", "why": "missing", "detail": ""},
    )


def test_more_passed_tests_than_required_do_not_raise_the_score() -> None:
    report = junit(*(case(f"t{index}") for index in range(98)), case("t98", "<skipped/>"))

    score = judge_report(report, [f"t{index}" for index in range(3, 99)], 0)

    assert not score.ok
    assert score.score == 95 / 96


@pytest.mark.parametrize(
    ("cases", "required", "exit_code", "ok"),
    [
        ([case("a")], ["a"], 0, True),
        ([case("a")], ["a"], 1, False),
        ([case("a")], [], 1, False),
        ([case("a"), case("b", "<failure/>")], ["a"], 1, True),
        ([case("a"), case("b", "<skipped/>")], ["a"], 1, False),
        ([case("a"), case("b", "<failure/>")], [], 1, False),
        ([case("a"), case("b", "<failure/>")], [], 0, False),
        ([case("a"), case("b", "<skipped/>")], [], 0, False),
        ([case("a", '<skipped type="pytest.xfail"/>')], ["a"], 0, True),
        ([case("a")], ["a"], None, False),
        ([], [], 0, False),
        ([], ["a"], 0, False),
    ],
)
def test_names_and_exit_status_must_agree(cases: list[str], required: list[str], exit_code: int | None, ok: bool) -> None:
    assert judge_report(junit(*cases), required, exit_code).ok is ok


def test_a_contradicted_report_earns_nothing() -> None:
    score = judge_report(junit(case("a")), ["a"], 3)

    assert score.score == 0.0
    assert score.findings == ({"why": "tests exited 3 although the report lists no failure"},)


def test_findings_are_bounded() -> None:
    score: Score = judge_report(junit(), [f"t{index}" for index in range(200)], 1)

    assert len(score.findings) == 50
    assert score.metrics["failed"] == 200.0


@pytest.mark.parametrize(
    ("other", "exit_code", "explained", "ok"),
    [
        ("<failure/>", 1, True, True),
        ("<failure/>", 1, False, False),
        ("<failure/>", 0, True, False),
        ("<error/>", 0, True, False),
        ("<skipped/>", 0, True, True),
        ("", 1, True, False),
    ],
)
def test_only_a_failure_of_the_suite_s_own_explains_a_status(other: str, exit_code: int, explained: bool, ok: bool) -> None:
    report = junit(case("a"), case("b", other))

    assert judge_report(report, ["a"], exit_code, lambda test: explained or test.name != "tests.test_a::b").ok is ok


def test_a_test_that_was_tampered_with_explains_nothing() -> None:
    report = Report([Listed(name="a", outcome="passed"), Listed(name="b", outcome="tampered")])

    assert not judge_report(report, ["a"], 1).ok
