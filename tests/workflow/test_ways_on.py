"""No run is stuck: from every state, and from every kind of request, each command that is offered leads on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from tests.conftest import shortened
from tests.workflow.test_kill import killed_after
from tests.workflow.toy import COMMIT, VERIFY, Toy, says

from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.drive import desk
from evalwright_plugins.workflow.drive.ask import Kind, commands_of
from evalwright_plugins.workflow.record import State, Status

pytestmark = pytest.mark.acceptance

DONE = f"printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}"
FIXED = f"echo fixed >> made.txt && {COMMIT}"
NOISE = f"date +%N >> made.txt && {COMMIT}"
WAYS: Mapping[str, Mapping[str, Any]] = {
    "boundary": {"stop_at": ["review"], "worker_builder": DONE},
    "final-decision": {"worker_builder": DONE},
    "finding-triage": {"worker_builder": FIXED},
    "infra": {
        "worker_verifier": f"test -e ../../../mark || {{ touch ../../../mark; exit 75; }}; {VERIFY}",
        "worker_builder": DONE,
    },
    "budget": {
        "budgets": {"tokens": 1},
        "worker_builder": f'{DONE}; echo \'{{"usage": {{"input": 1, "output": 0}}}}\' > $EVALWRIGHT_OUTPUT_FILE',
    },
    "work-review-cap": {"budgets": {"review_rounds_per_work": 1}, "triage": "auto", "worker_builder": FIXED},
    "not-converging": {"worker_fixer": "true", "worker_verifier": "exit 1"},
    "stale": {"stop_at": ["review"], "worker_builder": DONE},
}
REACHED = {Status.CREATED: 1, Status.RUNNING: 3, Status.WAITING_HUMAN: 38}
"""After how many events of the story a run is in a state."""


def test_every_kind_of_request_is_walked() -> None:
    assert set(WAYS) == set(get_args(Kind))


def waiting(toy: Toy, kind: str) -> State:
    """Return a run that waits for that."""
    state = toy.start(**WAYS[kind])
    if kind == "stale":
        toy.git("commit", "--quiet", "--allow-empty", "--message=moved", cwd=toy.worktree)
        state = toy.resume(answer=once("approve"))
    assert state.request is not None
    assert state.request.kind == kind
    return state


def once(action: str) -> Any:
    """Return what answers the first request only."""
    said: list[int] = []

    def answer(turn: Any, request: Any, _refused: str) -> Any:
        said.append(request.seq)
        return says(action)(turn, request, "") if len(said) == 1 else None

    return answer


@pytest.mark.parametrize("kind", shortened(WAYS, ["stale"]))
def test_every_order_leads_on_from_a_request(toy: Toy, kind: str) -> None:
    before = waiting(toy, kind)
    assert before.request is not None
    assert {command.split()[2] for command in commands_of("W-1", before.request)} >= {"approve", "reject", "adopt", "stop"}

    approved = toy.resume(answer=once("approve"))

    assert approved.status.terminal or (approved.request is not None and approved.request.seq > before.request.seq)
    assert (approved.step, approved.seq) != (before.step, before.seq)
    if not approved.status.terminal:
        assert toy.resume(answer=once("reject")).status is Status.FAILED


@pytest.mark.parametrize("status", shortened(REACHED, [Status.CREATED]))
@pytest.mark.parametrize("order", [None, "stop"])
def test_every_state_goes_on_by_resume_and_ends_by_stop(toy: Toy, status: Status, order: str | None) -> None:
    killed_after(REACHED[status], toy)
    assert toy.run().state().status is status

    if order:
        with toy.runs.at_rest(toy.run()) as turn:
            assert desk.answer(turn, Order(action="stop", by="ada")).ok
        assert toy.run().state().status is Status.CANCELLED
    else:
        assert toy.resume(answer=says("approve")).status is Status.SUCCEEDED


@pytest.mark.parametrize("status", shortened(["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"], ["SUPERSEDED"]))
def test_run_that_has_ended_stays_so_and_says_it(toy: Toy, status: str) -> None:
    if status == "SUPERSEDED":
        toy.start(worker_builder=DONE)
        toy.start(worker_builder=DONE)
    else:
        action = {"SUCCEEDED": "approve", "FAILED": "reject", "CANCELLED": "stop"}[status]
        toy.start(worker_builder=DONE, answer=says(action))
    events = toy.events()

    assert toy.resume(answer=says("approve")).status == status
    assert toy.events() == events
