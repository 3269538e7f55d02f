"""What policies are told of a run: of the candidate as it is, and of no earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.workflow.toy import BUILD, COMMIT, FIX, Toy, says, shell

from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.drive.facts import RunFacts
from evalwright_plugins.workflow.model.loading import preset
from evalwright_plugins.workflow.record import State

AGREED = {"human.approved": {"transition": "enter-build"}}
LOOPED: Mapping[str, Any] = {
    "name": "looped",
    "steps": [{"id": "build", "worker": "fixer"}, {"id": "verify", "worker": "verifier"}],
    "transitions": [{"from": "verify", "on": "failed", "to": "build"}],
    "terminal": ["end"],
}
ONE: Mapping[str, Any] = {"name": "one", "steps": [{"id": "build", "worker": "builder"}], "terminal": ["end"]}
BUILDS = {"builder": shell(BUILD)}
LATE = {"fixer": shell(FIX), "verifier": shell("grep -q documented made.txt")}


def policy(phase: str, step: str, when: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": "asked", "phase": phase, "steps": [step], "when": when}


def asked(toy: Toy) -> list[str]:
    return [data["transition"] for data in toy.data("HUMAN_REQUESTED")]


def answers(*orders: tuple[str, str], commit: str | None = None) -> Any:
    """Return what gives these answers, each an action and who does it, and then none."""
    left = list(orders)

    def answer(_turn: Any, request: Any, _refused: str) -> Order | None:
        if not left:
            return None
        action: Any
        action, by = left.pop(0)
        return Order(action=action, by=by, request=request.seq, commit=commit)

    return answer


def changed(toy: Toy) -> str:
    (toy.worktree / "made.txt").write_text("changed by hand\n")
    toy.git("commit", "--all", "--quiet", "--message=by hand", cwd=toy.worktree)
    return toy.git("rev-parse", "HEAD", cwd=toy.worktree)


def test_approval_of_an_earlier_candidate_does_not_hold(toy: Toy) -> None:
    toy.start(workflow=LOOPED, workers=LATE, policies=[policy("pre", "build", AGREED)], answer=says("approve"))

    assert asked(toy) == ["enter-build", "enter-build", "enter-end"]


def test_readback_is_agreed_with_once(toy: Toy) -> None:
    workers = {"reader": shell("cat made.txt"), "builder": shell(FIX), "verifier": LATE["verifier"]}
    state = toy.start(workflow=preset("readback"), workers=workers, answer=says("approve"))

    assert asked(toy) == ["enter-build", "enter-accept"]
    assert state.attempts == {"readback": 1, "build": 2, "verify": 2}


def test_yes_to_a_policy_after_a_step_does_not_repeat_the_step(toy: Toy) -> None:
    state = toy.start(
        workflow=ONE, workers=BUILDS, policies=[policy("post", "build", {"human.approved": {}})], answer=says("approve")
    )

    assert (asked(toy), state.attempts) == (["resume-build", "enter-end"], {"build": 1})


def test_yes_to_a_policy_after_a_step_accepts_its_document(toy: Toy) -> None:
    accepted = policy("post", "build", {"artifact.accepted": "notes"})
    toy.start(workflow=ONE, workers=BUILDS, policies=[accepted], artifacts={"notes": "made.txt"}, answer=says("approve"))

    assert asked(toy) == ["resume-build", "enter-end"]


def test_policy_that_no_yes_fulfils_has_the_step_done_again(toy: Toy) -> None:
    graded = policy("post", "build", {"evidence.exists": {"kind": "command", "min_grade": "L4"}})
    state = toy.start(workflow=ONE, workers=BUILDS, policies=[graded], answer=answers(("approve", "ada")))

    assert (asked(toy), state.attempts) == (["resume-build", "resume-build"], {"build": 2})
    assert state.request is not None
    assert state.request.effect == "step build is done again"


def test_only_a_yes_of_those_who_are_listed_counts(toy: Toy) -> None:
    listed = policy("post", "build", {"human.approved": {"by": ["bob", "eve"]}})
    state: State = toy.start(
        workflow=ONE, workers=BUILDS, policies=[listed], answer=answers(("approve", "ada"), ("approve", "bob"))
    )

    assert (asked(toy), state.attempts) == (["resume-build", "resume-build", "enter-end"], {"build": 1})


def test_commit_that_somebody_adopts_is_not_approved_by_that(toy: Toy) -> None:
    toy.start(workflow=ONE, workers=BUILDS, policies=[policy("transition", "end", {"human.approved": {"by": ["bob"]}})])
    commit = changed(toy)

    toy.resume(answer=answers(("adopt", "bob"), commit=commit))
    state = toy.resume(answer=answers(("approve", "ada")))

    assert state.candidate == commit
    assert toy.data("POLICY_EVALUATED")[-1]["result"] == "WAIT_HUMAN"


def test_facts_of_another_candidate_tell_nothing(toy: Toy) -> None:
    toy.start(stop_at=["review"], worker_builder=f"printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}")
    toy.resume(answer=answers(("approve", "ada")))

    with toy.runs.at_rest(toy.run()) as turn:
        facts = RunFacts(turn)
        assert facts.human_approved("enter-review", None, ["ada"]) is True
        assert facts.evidence_exists("review", None, None) is True
        assert facts.finding_max_severity("P3") is True
        changed(toy)
        assert facts.human_approved("enter-review", None, ["ada"]) is False
        assert facts.evidence_exists("review", None, None) is None
        assert facts.finding_max_severity("P3") is None


def test_grade_of_one_step_is_not_hidden_by_a_later_one(toy: Toy) -> None:
    steps = [{"id": "verify", "worker": "verifier", "grade": "L3"}, {"id": "look", "worker": "reader", "readonly": True}]
    workers = {"verifier": shell("cat made.txt"), "reader": shell("cat made.txt")}
    toy.start(workflow={"name": "graded", "steps": steps, "terminal": ["end"]}, workers=workers)

    with toy.runs.at_rest(toy.run()) as turn:
        facts = RunFacts(turn)
        assert facts.evidence_exists("command", "L3", None) is True
        assert facts.evidence_exists("command", "L3", "look") is False
        assert facts.evidence_exists("command", "L4", None) is False
