"""The scorer http-calls: each assertion holds for what it means, and says what was seen instead of it."""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError
from tests.scorers.conftest import make, trial

from evalwright.errors import TrialError
from evalwright.interfaces import Host
from evalwright.model import Score, ScoredTrial, ServiceRecord
from evalwright.testing import ScorerContract
from evalwright_scorers.http_calls import ByService, HttpCalls, HttpCallsConfig

CALLS: tuple[dict[str, Any], ...] = (
    {"method": "GET", "path": "/repos/a/b/issues/1", "query": {}, "body": None, "status": 200},
    {"method": "POST", "path": "/repos/a/b/issues/1/labels", "query": {}, "body": {"labels": ["bug", "p1"]}, "status": 200},
    {
        "method": "POST",
        "path": "/repos/a/b/issues/1/comments",
        "query": {"x": "1"},
        "body": {"body": "Which version?"},
        "status": 201,
    },
)
ISSUE: dict[str, Any] = {
    "number": 1,
    "state": "closed",
    "labels": ["Bug", "old"],
    "comments": [{"id": 5, "user": "bot", "body": "hi"}, {"id": 9, "user": "bot", "body": "Which version?\nPlease tell."}],
}
PULL: dict[str, Any] = {
    "number": 2,
    "state": "open",
    "labels": [],
    "comments": [],
    "title": "Fix crash",
    "body": "Closes #1",
    "base": "main",
    "head": "fix",
    "auto_merge": "squash",
}
EVENTS: list[dict[str, Any]] = [
    {"event": "labeled", "number": 1, "label": "bug"},
    {"event": "labeled", "number": 1, "label": "gone"},
    {"event": "commented", "number": 1, "comment": 9},
    {"event": "closed", "number": 1},
    {"event": "pull_opened", "number": 2},
    {"event": "reviewed", "number": 2, "verdict": "APPROVE", "body": "Looks good"},
    {"event": "merged", "number": 3},
]
STATE: dict[str, Any] = {
    "user": "bot",
    "events": [event | {"repository": "a/b"} for event in EVENTS],
    "repositories": {"a/b": {"issues": {"1": ISSUE}, "pulls": {"2": PULL}}, "a/c": {"issues": {}, "pulls": {}}},
}


def judged(assertions: Any, *, calls: Any = CALLS, state: Any = STATE, dropped: int = 0) -> Score:
    record = ServiceRecord(calls=calls, state=state, dropped=dropped)
    scored = trial(HttpCalls, {"http_calls": {"hub": assertions}}, services={"hub": record})
    context: Any = None
    return make(HttpCalls, {}).score(scored, context)


class TestHttpCalls(ScorerContract):
    expect = MappingProxyType({"http_calls": {"hub": {"labels_added": ["bug"], "no_calls": [{"method": "DELETE"}]}}})

    def make(self, host: Host) -> HttpCalls:
        return HttpCalls(HttpCallsConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial(services={"hub": ServiceRecord(calls=CALLS, state=STATE)})

    def wrong(self) -> ScoredTrial:
        return self.trial(services={"hub": ServiceRecord(state={"repositories": {}})})


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        ({"labels_added": ["BUG"]}, {"labels_added": ["gone"]}),
        ({"labels_added": ["bug"], "number": 1}, {"labels_added": ["bug"], "number": 2}),
        ({"labels_added": ["bug"], "repository": "A/B"}, {"labels_added": ["bug"], "repository": "a/c"}),
        ({"labels_absent": ["gone", "other"]}, {"labels_absent": ["other", "OLD"]}),
        ({"labels_absent": ["bug"], "number": 2}, {"labels_absent": ["bug"], "number": 1}),
        ({"comment_matches": "need|VERSION"}, {"comment_matches": "^hi$"}),
        ({"comment_matches": "^please"}, {"comment_matches": "reproduce"}),
        ({"comment_contains": "version?"}, {"comment_contains": "hello"}),
        ({"comment_absent": "^hi"}, {"comment_absent": "version"}),
        ({"comment_absent": True, "number": 2}, {"comment_absent": True}),
        ({"issue_closed": True}, {"issue_closed": False}),
        ({"issue_closed": False, "number": 2}, {"issue_closed": True, "number": 2}),
        ({"pr_opened": True}, {"pr_opened": False}),
        ({"pr_opened": {"base": "main", "head": "fix", "title_matches": "^fix"}}, {"pr_opened": {"base": "next"}}),
        ({"pr_opened": {"body_matches": "#1"}}, {"pr_opened": {"title_matches": "feature"}}),
        ({"pr_merged": True}, {"pr_merged": False}),
        ({"pr_merged": False, "number": 2}, {"pr_merged": True, "number": 2}),
        ({"auto_merge_enabled": True}, {"auto_merge_enabled": False}),
        ({"auto_merge_enabled": False, "number": 1}, {"auto_merge_enabled": True, "number": 1}),
        ({"review": {"event": "APPROVE", "body_matches": "good"}}, {"review": {"event": "REQUEST_CHANGES"}}),
        ({"review": {}}, {"review": {"body_matches": "bad"}}),
        ({"calls": [{"path": "/repos/*/*/issues/1"}]}, {"calls": [{"path": "/repos/*/issues/1"}]}),
        ({"calls": [{"path": "/repos/**"}]}, {"calls": [{"method": "PUT"}]}),
        ({"calls": [{"method": "post", "count": 2}]}, {"calls": [{"method": "post", "count": 1}]}),
        ({"calls": [{"method": "POST", "min": 1, "max": 2}]}, {"calls": [{"method": "POST", "max": 1}]}),
        ({"calls": [{"method": "PUT", "max": 0}]}, {"calls": [{"method": "GET", "max": 0}]}),
        ({"calls": [{"body": {"labels": ["p1"]}}]}, {"calls": [{"body": {"labels": ["p2"]}}]}),
        ({"calls": [{"body": None, "method": "GET"}]}, {"calls": [{"body": None, "method": "POST"}]}),
        ({"calls": [{"query": {"x": "1"}}]}, {"calls": [{"query": {"x": "2"}}]}),
        ({"calls": [{"body_matches": "Which .*"}]}, {"calls": [{"body_matches": "^Which"}]}),
        ({"calls": [{"status": 201}]}, {"calls": [{"status": 404}]}),
        ({"no_calls": [{"method": "DELETE"}]}, {"no_calls": [{"path": "/repos/**/labels"}]}),
        ({"order": [{"method": "GET"}, {"path": "/**/comments"}]}, {"order": [{"path": "/**/comments"}, {"method": "GET"}]}),
        ({"order": [{"method": "POST"}, {"method": "POST"}]}, {"order": [{"method": "GET"}, {"method": "GET"}]}),
        ({"state": {"repositories": {"a/b": {"issues": {"1": {"state": "closed"}}}}}}, {"state": {"user": "ann"}}),
    ],
)
def test_assertion_holds_for_what_it_means_and_for_nothing_else(holds: Any, fails: Any) -> None:
    assert judged(holds) == Score.passed()
    score = judged(fails)
    assert (score.ok, score.score, len(score.findings)) == (False, 0.0, 1)
    assert score.findings[0]["service"] == "hub"
    assert score.findings[0]["why"]


def test_every_failing_assertion_is_a_finding_that_says_what_was_seen() -> None:
    score = judged([{"labels_added": ["x", "old"], "number": 1}, {"calls": [{"method": "PUT"}], "comment_contains": "zzz"}])
    assert [(finding["why"], finding["value"]) for finding in score.findings] == [
        ("label was not added", "x"),
        ("label was there before", "old"),
        ("wrong number of calls", "PUT **"),
        ("no comment contains", "zzz"),
    ]
    assert score.findings[0]["labels"] == ["Bug", "old"]
    assert score.findings[2]["calls"][0] == "GET /repos/a/b/issues/1 200"


@pytest.mark.parametrize("assertion", [{"no_calls": [{"method": "PUT"}]}, {"calls": [{"method": "GET", "max": 1}]}])
def test_calls_that_are_not_on_record_could_be_any(assertion: Any) -> None:
    assert judged(assertion).ok
    assert judged(assertion, dropped=3).findings[0]["why"] == "calls are not on record"


def test_one_and_true_are_not_the_same() -> None:
    assert not judged({"state": {"a": 1}}, state={"a": True}).ok
    assert judged({"state": {"a": 1}}, state={"a": 1.0}).ok


def test_service_that_the_trial_had_not_is_the_suite_s_fault() -> None:
    context: Any = None
    scored = trial(HttpCalls, {"http_calls": {"hub": {"pr_merged": True}}}, services={"desk": ServiceRecord()})
    with pytest.raises(TrialError, match='no service "hub"; it had: desk'):
        make(HttpCalls, {}).score(scored, context)
    with pytest.raises(TrialError, match="only the service github"):
        judged({"pr_merged": False}, state={"collections": {}})


WEAK: list[tuple[Any, bool]] = [
    ({"labels_absent": ["x"], "no_calls": [{}], "comment_absent": True, "pr_merged": False}, True),
    ({"auto_merge_enabled": False, "issue_closed": False, "pr_opened": False}, True),
    ({"calls": [{"method": "PUT", "max": 0}]}, True),
    ({"state": {"a": 1}}, True),
    ([{"labels_absent": ["x"]}, {"labels_added": ["y"]}], False),
    ({"calls": [{"method": "PUT"}]}, False),
    ({"order": [{"method": "PUT"}]}, False),
    ({"pr_merged": True}, False),
    ({"review": {}}, False),
]


@pytest.mark.parametrize(("assertions", "weak"), WEAK)
def test_expectation_that_is_met_by_doing_nothing_is_named(assertions: Any, weak: bool) -> None:
    assert bool(make(HttpCalls, {}).weakness({"http_calls": {"hub": assertions}})) is weak
    if weak and "state" not in assertions:
        idle = copy.deepcopy(STATE)
        idle["events"] = []
        idle["repositories"]["a/b"]["pulls"] = {}
        assert judged(assertions, calls=(), state=idle).ok


def test_defaults_of_the_entry_hold_for_cases_without_their_own() -> None:
    scorer = make(HttpCalls, {"http_calls": {"hub": {"no_calls": [{"method": "DELETE"}]}}})
    assert scorer.applies({})
    assert not make(HttpCalls, {}).applies({})


@pytest.mark.parametrize(
    "assertions",
    [
        {"labels_add": ["x"]},
        {"labels_added": []},
        {"comment_matches": "("},
        {"calls": [{"count": 1, "min": 1}]},
        {"calls": [{"min": 2, "max": 1}]},
        {"calls": [{"pth": "/"}]},
        {"review": {"event": "LOVE"}},
        [],
    ],
)
def test_wrong_assertion_is_refused(assertions: Any) -> None:
    with pytest.raises(ValidationError):
        ByService.model_validate({"hub": assertions})
