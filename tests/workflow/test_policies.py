"""Policies: what users may write, Kleene's logic, and that what nobody verified never passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evalwright_plugins.workflow.model.policy import Policy
from evalwright_plugins.workflow.policies import Facts, Verdict, evaluate

STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
Value = bool | None
Record = dict[str, Any]
NAMES = "abcd"
LEAVES: list[Record] = [{"artifact.accepted": name} for name in NAMES]
A, B, C, _ = LEAVES
values = st.sampled_from([True, False, None])
worlds = st.fixed_dictionaries(dict.fromkeys(NAMES, values))


def _composed(parts: st.SearchStrategy[Record]) -> st.SearchStrategy[Record]:
    some = st.lists(parts, min_size=1, max_size=3)
    return (
        some.map(lambda found: {"all": found})
        | some.map(lambda found: {"any": found})
        | parts.map(lambda found: {"not": found})
    )


conditions = st.recursive(st.sampled_from(LEAVES), _composed, max_leaves=8)


class World:
    """Facts that are looked up: artifacts by name, everything else by the question's words."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.asked: list[Any] = []

    def _answer(self, *question: Any) -> Any:
        self.asked.append(question)
        return self.answers.get(question[0])

    def evidence_exists(self, kind: str, min_grade: str | None, step: str | None) -> Value:
        return self._answer("evidence.exists", kind, min_grade, step)

    def artifact_accepted(self, name: str) -> Value:
        return self._answer(name)

    def attempts_lt(self, step: str | None, limit: int) -> Value:
        return self._answer("attempts.lt", step, limit)

    def budget_remaining(self, kind: str, at_least: float) -> Value:
        return self._answer("budget.remaining", kind, at_least)

    def candidate_clean(self) -> Value:
        return self._answer("candidate.clean")

    def human_approved(self, transition: str | None, kind: str | None, by: Sequence[str] | None) -> Value:
        return self._answer("human.approved", transition, kind, by)

    def finding_max_severity(self, severity: str) -> Value:
        return self._answer("finding.max_severity", severity)


def policy(when: Record, **keys: Any) -> Policy:
    return Policy.model_validate({"id": "floor", "phase": "transition", "when": when, **keys})


def verdict(when: Record, answers: Mapping[str, Any], **keys: Any) -> Verdict:
    facts: Facts = World(answers)
    return evaluate(policy(when, **keys), facts)


def truth(when: Record, answers: Mapping[str, Any]) -> Value:
    """Return the value of a condition, told from how it and its negation are judged."""
    if verdict(when, answers).result == "PASS":
        return True
    return False if verdict({"not": when}, answers).result == "PASS" else None


@pytest.mark.parametrize("left", [True, False, None])
@pytest.mark.parametrize("right", [True, False, None])
def test_connectives_have_kleenes_truth_tables(left: Value, right: Value) -> None:
    world = {"a": left, "b": right}

    assert truth({"all": [A, B]}, world) is (False if False in (left, right) else None if None in (left, right) else True)
    assert truth({"any": [A, B]}, world) is (True if True in (left, right) else None if None in (left, right) else False)
    assert truth({"not": A}, world) is (None if left is None else not left)


@STEADY
@given(conditions, conditions, conditions, worlds)
def test_conditions_obey_the_laws_of_kleenes_logic(one: Record, two: Record, three: Record, world: dict[str, Value]) -> None:
    def value(when: Record) -> Value:
        return truth(when, world)

    assert value({"not": {"not": one}}) is value(one)
    assert value({"all": [one, two]}) is value({"all": [two, one]})
    assert value({"any": [one, two]}) is value({"any": [two, one]})
    assert value({"not": {"all": [one, two]}}) is value({"any": [{"not": one}, {"not": two}]})
    assert value({"all": [one, {"any": [two, three]}]}) is value({"any": [{"all": [one, two]}, {"all": [one, three]}]})
    assert value({"all": [one, {"any": [one, two]}]}) is value(one)
    assert value({"all": [one]}) is value({"any": [one]}) is value(one)


@STEADY
@given(conditions, worlds, st.fixed_dictionaries({name: st.booleans() for name in NAMES}))
def test_more_knowledge_never_changes_what_is_known(when: Record, world: dict[str, Value], later: dict[str, bool]) -> None:
    known = {name: later[name] if value is None else value for name, value in world.items()}

    before, after = truth(when, world), truth(when, known)

    assert after is not None
    assert before is None or after is before


@STEADY
@given(conditions)
def test_nothing_passes_where_nothing_is_verified(when: Record) -> None:
    assert verdict(when, {}).result == "WAIT_HUMAN"
    assert verdict({"not": when}, {}).result == "WAIT_HUMAN"


@STEADY
@given(conditions, worlds)
def test_verdict_that_does_not_pass_says_why(when: Record, world: dict[str, Value]) -> None:
    found = verdict(when, world)

    assert (
        found.reason == "all conditions hold" if found.result == "PASS" else found.reason.startswith(("not met: ", "unverif"))
    )


@pytest.mark.parametrize("answer", [1, "yes", [True], 0, ""])
def test_answer_that_is_no_truth_value_is_unverified(answer: Any) -> None:
    assert verdict(A, {"a": answer}).reason == "unverified: artifact.accepted a"
    assert verdict({"not": A}, {"a": answer}).result == "WAIT_HUMAN"


@pytest.mark.parametrize(
    ("when", "question"),
    [
        ({"evidence.exists": {"kind": "review"}}, ("evidence.exists", "review", None, None)),
        (
            {"evidence.exists": {"kind": "review", "min_grade": "L2", "step": "check"}},
            ("evidence.exists", "review", "L2", "check"),
        ),
        ({"artifact.accepted": "plan"}, ("plan",)),
        ({"attempts.lt": {"limit": 3}}, ("attempts.lt", None, 3)),
        ({"attempts.lt": {"step": "fix", "limit": 3}}, ("attempts.lt", "fix", 3)),
        ({"budget.remaining": {"kind": "cost", "at_least": 0.5}}, ("budget.remaining", "cost", 0.5)),
        ({"budget.remaining": {"kind": "tokens", "at_least": 0}}, ("budget.remaining", "tokens", 0)),
        ({"candidate.clean": True}, ("candidate.clean",)),
        ({"human.approved": {}}, ("human.approved", None, None, None)),
        ({"human.approved": {"kind": "infra", "by": ["ada"]}}, ("human.approved", None, "infra", ("ada",))),
        ({"human.approved": {"transition": "enter-fix"}}, ("human.approved", "enter-fix", None, None)),
        ({"finding.max_severity": "P2"}, ("finding.max_severity", "P2")),
    ],
    ids=lambda value: repr(value)[-70:],
)
@pytest.mark.parametrize("answer", [True, False, None])
def test_each_predicate_asks_its_question(when: Record, question: tuple[Any, ...], answer: Value) -> None:
    world = World({question[0]: answer})

    found = evaluate(policy(when), world)

    assert world.asked == [question]
    assert found.result == ("PASS" if answer else "WAIT_HUMAN")


def test_no_more_is_asked_once_the_value_is_known() -> None:
    world = World({"a": None, "b": False, "c": True})

    evaluate(policy({"all": [A, B, C]}), world)
    evaluate(policy({"any": [A, C, B]}), world)

    assert world.asked == [("a",), ("b",), ("a",), ("c",)]


@pytest.mark.parametrize("answer", [False, None])
@pytest.mark.parametrize(
    ("keys", "result", "stops"),
    [
        ({}, "WAIT_HUMAN", True),
        ({"otherwise": "fail"}, "FAIL", True),
        ({"enforcement": "ADVISORY"}, "ADVISORY", False),
        ({"enforcement": "ADVISORY", "otherwise": "fail"}, "ADVISORY", False),
    ],
    ids=["wait", "fail", "advise", "advise, not fail"],
)
def test_policy_says_what_happens_otherwise(answer: Value, keys: Record, result: str, stops: bool) -> None:
    found = verdict(A, {"a": answer}, **keys)

    assert (found.result, found.stops) == (result, stops)
    assert verdict(A, {"a": True}, **keys) == Verdict("PASS", "all conditions hold")


def test_reason_names_what_is_missing_and_the_policys_own_words() -> None:
    when = {"all": [A, {"any": [B, {"not": C}]}, {"evidence.exists": {"kind": "review", "min_grade": "L2"}}]}

    assert verdict(when, {"a": True, "b": False, "c": True}, reason="merge needs a review") == Verdict(
        "WAIT_HUMAN",
        "merge needs a review (not met: artifact.accepted b; not met: not(artifact.accepted c))",
    )
    assert verdict(when, {"a": None, "b": True}).reason == (
        "unverified: artifact.accepted a; unverified: evidence.exists kind=review min_grade=L2"
    )


def test_condition_is_told_in_one_line() -> None:
    when: Record = {
        "all": [{"human.approved": {"by": ["ada", "bo"]}}, {"not": {"candidate.clean": True}}, {"human.approved": {}}]
    }

    assert str(policy(when).when) == "all(human.approved by=ada,bo; not(candidate.clean); human.approved)"


@pytest.mark.parametrize(
    "when",
    [
        {},
        {"all": []},
        {"any": []},
        {"all": [A], "any": [B]},
        {"all": None},
        {"all": A},
        {"not": [A]},
        {"not_": A},
        {"evidence_exists": {"kind": "review"}},
        {"evidence.exists": {}},
        {"evidence.exists": {"kind": "review", "min_grade": "L5"}},
        {"evidence.exists": {"kind": "review", "grade": "L2"}},
        {"artifact.accepted": ""},
        {"attempts.lt": {"limit": 0}},
        {"attempts.lt": {"limit": "3"}},
        {"budget.remaining": {"kind": "time", "at_least": 1}},
        {"budget.remaining": {"kind": "cost", "at_least": -1}},
        {"budget.remaining": {"kind": "cost", "at_least": float("inf")}},
        {"candidate.clean": False},
        {"human.approved": {"transition": "a", "kind": "b"}},
        {"human.approved": {"by": []}},
        {"human.approved": {"by": "ada"}},
        {"finding.max_severity": "P4"},
        {"finding.max_severity": 2},
    ],
    ids=repr,
)
def test_condition_that_says_nothing_clear_is_refused(when: Record) -> None:
    with pytest.raises(ValidationError):
        policy(when)
    with pytest.raises(ValidationError):
        policy({"any": [A, {"not": when}]})


def test_conditions_may_nest_but_not_without_end() -> None:
    when = A
    for _level in range(15):
        when = {"not": when}

    assert verdict(when, {"a": False}).result == "PASS"
    with pytest.raises(ValidationError, match="17 deep"):
        policy({"not": when})


def test_policy_concerns_its_phase_and_its_steps() -> None:
    everywhere, fix = policy(A), policy(A, phase="pre", steps=["fix"])

    assert everywhere.concerns("transition", "review")
    assert not everywhere.concerns("pre", "review")
    assert fix.concerns("pre", "fix")
    assert not fix.concerns("pre", "review")


@pytest.mark.parametrize(
    "keys",
    [{"id": ""}, {"phase": "before"}, {"steps": []}, {"otherwise": "ask"}, {"enforcement": "LOCAL"}, {"unless": A}],
    ids=repr,
)
def test_policy_with_an_unknown_word_is_refused(keys: Record) -> None:
    with pytest.raises(ValidationError):
        policy(A, **keys)


def test_policy_has_a_json_schema() -> None:
    schema = Policy.model_json_schema()

    assert "finding.max_severity" in schema["$defs"]["Predicate"]["properties"]
