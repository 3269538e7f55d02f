"""Findings: read without trust, recognised again, dismissed by people, and going in circles or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import RunCorrupt
from evalwright.model import Usage
from evalwright_plugins.workflow.findings import (
    SEVERITIES,
    Account,
    Envelope,
    EnvelopeError,
    Finding,
    more_severe,
    not_converging,
    read_envelope,
    split,
)

STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
WHITE_SPACE = "\t\n\v\f\r \u00a0\u2003\u2028\u3000\ufeff"
DOCSTRING = Finding("P1", "add() has no docstring — 缺少文档")
SAME = Finding("P1", "same issue")
severities = st.sampled_from(SEVERITIES)
summaries = st.text(min_size=1, max_size=40)


def envelope(**keys: Any) -> bytes:
    return json.dumps(keys).encode()


def raised(finding: Finding, seq: int = 1) -> dict[str, Any]:
    return {"seq": seq, "ts": "2026-11-29T16:12:47.856Z", "type": "FINDING_RAISED", "data": finding.as_json()}


def adjudicated(finding: Finding, decision: str, seq: int = 2) -> dict[str, Any]:
    data = {"fingerprint": finding.fingerprint, "decision": decision, "by": "ada", "reason": f"because {seq}"}
    return {"seq": seq, "ts": f"2026-11-29T16:13:{seq % 60:02}.000Z", "type": "FINDING_ADJUDICATED", "data": data}


@pytest.mark.parametrize(("finding", "expected"), [(DOCSTRING, "0a370aee696cfd93"), (SAME, "236afd42f5fec47c")])
def test_fingerprints_are_those_of_buildbeats_ledgers(finding: Finding, expected: str) -> None:
    assert finding.fingerprint == expected


@STEADY
@given(severities, st.lists(st.text(st.characters(codec="ascii", exclude_characters=WHITE_SPACE), min_size=1), min_size=1))
def test_fingerprint_ignores_case_and_white_space(severity: Any, words: list[str]) -> None:
    spread = WHITE_SPACE.join(words)

    assert Finding(severity, f"{spread}\n").fingerprint == Finding(severity, " ".join(words) + " ").fingerprint
    assert Finding(severity, spread.upper()).fingerprint == Finding(severity, spread.lower()).fingerprint


@STEADY
@given(summaries)
def test_fingerprint_tells_severities_apart(summary: str) -> None:
    assert len({Finding(severity, summary).fingerprint for severity in SEVERITIES}) == 4


def test_place_of_a_finding_is_no_part_of_its_fingerprint() -> None:
    assert Finding("P2", "slow", "a.py", 3).fingerprint == Finding("P2", "slow", "b.py", 9).fingerprint


def test_lone_surrogate_has_a_fingerprint() -> None:
    assert Finding("P2", "odd \ud800").fingerprint == Finding("P2", "odd \ufffd").fingerprint


@STEADY
@given(severities, summaries, st.none() | st.text(), st.none() | st.integers(1, 9999))
def test_finding_reads_back_from_its_record(severity: Any, summary: str, file: str | None, line: int | None) -> None:
    finding = Finding(severity, summary, file, line)

    assert Finding.from_json(finding.as_json()) == finding


def test_envelope_holds_all_that_was_said() -> None:
    finding = {"severity": "P1", "summary": "no test", "file": "a.py", "line": 3}
    usage = {"input": 10, "output": 2, "cost": 1, "model": "m", "turns": None}

    found = read_envelope(envelope(status="findings-blocking", findings=[finding], metrics={"n": 2}, usage=usage))

    assert found == Envelope(
        "findings-blocking",
        (Finding("P1", "no test", "a.py", 3),),
        {"n": 2.0},
        Usage(input=10, output=2, cost=1.0, model="m"),
    )


def test_input_of_a_usage_can_include_cached_tokens() -> None:
    usage = {"input": 10, "cache_read": 6, "cache_write": 1, "input_includes_cached": True}

    assert read_envelope(envelope(usage=usage)).usage == Usage(input=3, cache_read=6, cache_write=1)


def test_white_space_around_a_summary_is_no_part_of_it() -> None:
    assert read_envelope(envelope(findings=[{"severity": "P1", "summary": "\n same issue "}])).findings == (SAME,)


@pytest.mark.parametrize("text", ["{}", '{"status":null,"findings":null,"metrics":null,"usage":null}', "\ufeff{}\n"])
def test_envelope_may_say_nothing(text: str) -> None:
    assert read_envelope(text.encode()) == Envelope(None, (), {}, None)


@pytest.mark.parametrize("fence", ["```\n{}\n```", "```json\n{}\n```", "\n````json \r\n{}\r\n````\n\n"])
def test_one_outer_code_fence_is_taken_off(fence: str) -> None:
    body = json.dumps({"findings": [{"severity": "P3", "summary": "see ```\n```"}]})

    assert read_envelope(fence.replace("{}", body).encode()).findings == (Finding("P3", "see ```\n```"),)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "the output"),
        (b" \n", "the output"),
        (b"[]", "the output"),
        (b"\xff", "byte 0"),
        (b"ok {}", "line 1, column 1"),
        (b"{}\n{}", "line 2, column 1"),
        (b"```\n```json\n{}\n```\n```", "line 1, column 1"),
        (b"```json\n{}", "line 1, column 1"),
        (b'{"findings": [{"severity": "P1", "summary": "a", "severity": "P3"}]}', "severity"),
        (b'{"status": "failed", "status": "succeeded"}', "status"),
        (b'{"metrics": {"n": NaN}}', "NaN"),
        (b'{"usage": {"cost": 1e999}}', "1e999"),
        (b'{"metrics": {"n": ' + b"9" * 5000 + b"}}", "the output"),
        (b'{"metrics": {"n": ' + b"9" * 400 + b"}}", "metrics.n"),
        (b"[" * 100_000, "the output"),
        (b"{" + b" " * (1 << 20) + b"}", "the output"),
        (envelope(verdict="ok"), "verdict"),
        (envelope(status="ok"), "status"),
        (envelope(status=[]), "status"),
        (envelope(findings={}), "findings"),
        (envelope(findings=[{"severity": "P1", "summary": "a"}, "b"]), "findings[1]"),
        (envelope(findings=[{"severity": "P4", "summary": "a"}]), "findings[0].severity"),
        (envelope(findings=[{"severity": [], "summary": "a"}]), "findings[0].severity"),
        (envelope(findings=[{"severity": "P1"}]), "findings[0].summary"),
        (envelope(findings=[{"severity": "P1", "summary": "\n"}]), "findings[0].summary"),
        (envelope(findings=[{"severity": "P1", "summary": "a", "file": 3}]), "findings[0].file"),
        (envelope(findings=[{"severity": "P1", "summary": "a", "line": 0}]), "findings[0].line"),
        (envelope(findings=[{"severity": "P1", "summary": "a", "line": True}]), "findings[0].line"),
        (envelope(findings=[{"severity": "P1", "summary": "a", "why": "b"}]), "findings[0].why"),
        (envelope(metrics=[]), "metrics"),
        (envelope(metrics={"n": "2"}), "metrics.n"),
        (envelope(metrics={"n": True}), "metrics.n"),
        (envelope(usage=3), "usage"),
        (envelope(usage={"tokens": 3}), "usage"),
        (envelope(usage={"input": -1}), "usage"),
        (envelope(usage={"input": 1.5}), "usage"),
        (envelope(usage={"cost": "1"}), "usage"),
        (envelope(usage={"model": ""}), "usage"),
        (envelope(usage={"input_includes_cached": 1}), "usage"),
        (envelope(usage={"input_includes_cached": True}), "usage"),
        (envelope(usage={"input_includes_cached": True, "input": 1, "cache_read": 2}), "usage"),
    ],
    ids=lambda value: f"{value[:20]!r}{value[-30:]!r}",
)
def test_unusable_output_is_refused_with_place_and_cure(data: bytes, place: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        read_envelope(data)

    assert caught.value.place == place
    assert caught.value.cure
    assert len(str(caught.value)) < 300


@STEADY
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | st.from_regex(r"```[^\x00]*").map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    found: Envelope | EnvelopeError
    try:
        found = read_envelope(data)
    except EnvelopeError as error:
        found = error

    assert isinstance(found, Envelope | EnvelopeError)


def test_dismissed_finding_stays_visible_and_never_blocks() -> None:
    other, minor = Finding("P0", "other"), Finding("P3", "minor")

    found = split([SAME, other, minor], {SAME.fingerprint})

    assert found == ((other,), (minor,), (SAME,))


def test_dismissed_finding_counts_for_no_severity_limit() -> None:
    findings = [SAME, DOCSTRING, Finding("P2", "slow")]

    assert more_severe(findings, "P2", {SAME.fingerprint}) == (DOCSTRING,)
    assert more_severe(findings, "P0", set()) == ()
    assert more_severe(findings, "P3", set()) == tuple(findings)


@pytest.mark.parametrize(
    ("decisions", "dismissed"),
    [
        (["dismissed"], True),
        (["accepted"], False),
        (["dismissed", "reopened"], False),
        (["dismissed", "accepted"], False),
        (["accepted", "reopened", "dismissed"], True),
    ],
)
def test_last_decision_about_a_finding_counts(decisions: list[str], dismissed: bool) -> None:
    account = Account.over([raised(SAME), *(adjudicated(SAME, decision) for decision in decisions), raised(SAME)])

    assert (SAME.fingerprint in account.dismissed) is dismissed
    assert account.open([SAME, DOCSTRING]) == ((DOCSTRING,) if dismissed else (SAME, DOCSTRING))
    last = account.adjudication(SAME.fingerprint)
    assert last
    assert last.decision == decisions[-1]


def test_history_anchors_a_reviewer_with_the_findings_decided_last() -> None:
    findings = [Finding("P1", f"issue {number}") for number in range(60)]
    account = Account()
    for seq, finding in enumerate(findings):
        account.apply(raised(finding, seq))
        account.apply(adjudicated(finding, "dismissed", seq))
    account.apply(adjudicated(findings[0], "accepted", 61))

    history = account.history()

    assert [entry["summary"] for entry in history] == [f"issue {number}" for number in (*range(11, 60), 0)]
    assert history[-1] == {
        "severity": "P1",
        "summary": "issue 0",
        "fingerprint": findings[0].fingerprint,
        "decision": "accepted",
        "by": "ada",
        "reason": "because 61",
        "ts": "2026-11-29T16:13:01.000Z",
    }
    assert account.history(0) == []


def test_finding_raised_again_stands_once_in_its_latest_words() -> None:
    account = Account.over([raised(Finding("P1", "Slow", "a.py", 1)), raised(Finding("P1", "slow ", "a.py", 7))])

    assert account.findings == (Finding("P1", "slow ", "a.py", 7),)


def test_other_events_of_the_ledger_are_passed_over() -> None:
    assert Account.over([{"seq": 1, "type": "LEDGER_TAIL_REPAIRED", "data": {"bytes": 3}}]).findings == ()


@pytest.mark.parametrize("type", ["FINDING_RAISED", "FINDING_ADJUDICATED"])
@pytest.mark.parametrize(
    "change",
    [
        {"severity": "P9", "decision": "maybe"},
        {"severity": None, "decision": None},
        {"summary": 3, "fingerprint": 3},
        {"line": "3", "by": None},
    ],
    ids=["unknown words", "no words", "no texts", "no place"],
)
def test_event_that_says_nothing_is_refused_by_its_number(type: str, change: dict[str, Any]) -> None:
    whole = SAME.as_json() | {"fingerprint": SAME.fingerprint, "decision": "dismissed", "by": "ada", "reason": ""}
    event = {"seq": 7, "ts": "2026-11-29T16:13:00.000Z", "type": type, "data": whole | change}
    account = Account()

    with pytest.raises(RunCorrupt, match="event 7"):
        account.apply(event)
    with pytest.raises(RunCorrupt, match="event 7"):
        account.apply(event | {"data": []})

    assert account.findings == ()
    assert account.history() == []
    account.apply(event | {"data": whole})
    assert account.findings or account.dismissed


def test_same_issue_coming_back_does_not_converge() -> None:
    reason = not_converging([SAME, DOCSTRING], [Finding("P1", "Same  ISSUE")])

    assert reason
    assert SAME.fingerprint in reason


def test_issue_in_other_words_does_not_converge() -> None:
    before = Finding("P1", "The function add() in calc.py has no docstring")
    now = Finding("P0", "the function add() of calc.py has no docstring.")

    assert "other words" in (not_converging([before], [now]) or "")


def test_more_blockers_than_before_do_not_converge() -> None:
    reason = not_converging([SAME], [Finding("P0", "leaks a socket"), Finding("P1", "wrong unit of time")])

    assert reason == "2 blocking findings, 1 in the round before"


@pytest.mark.parametrize(
    ("previous", "current"),
    [
        ([], [SAME, DOCSTRING]),
        ([SAME], []),
        ([SAME, DOCSTRING], [Finding("P1", "leaks a socket"), Finding("P1", "LEAKS a  socket")]),
        ([Finding("P1", "no docstring", "a.py")], [Finding("P0", "no docstring", "b.py")]),
    ],
    ids=["first round", "nothing left", "one said twice", "another file"],
)
def test_fewer_and_other_blockers_converge(previous: list[Finding], current: list[Finding]) -> None:
    assert not_converging(previous, current) is None


def test_long_summaries_are_compared_by_more_than_their_common_letters() -> None:
    text = "the parser accepts an empty list where the protocol of the server wants at least one entry " * 4

    assert not_converging([Finding("P1", text)], [Finding("P0", text.replace("empty", "blank"))])
