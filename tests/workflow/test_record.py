"""The record of a run: foreign ledgers replay, any change is noticed, and what is not allowed is never written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.conftest import shortened

from evalwright.errors import LedgerDamaged
from evalwright.ledger import first_damage
from evalwright_plugins.workflow.record import Journal, State, Status, advance, refusal, state_of
from evalwright_plugins.workflow.record.reducer import RULES

DATA = Path(__file__).parent.parent / "data" / "ledgers"
DEMO = DATA / "RUN-DEMO-01.events.jsonl"
WAITING, DONE = Status.WAITING_HUMAN, Status.SUCCEEDED
STANDS: Mapping[str, tuple[Status, str, str | None]] = {
    "RUN-DEMO-01": (DONE, "wait-merge", None),
    "adopt": (DONE, "wait-merge", None),
    "approval-stale": (WAITING, "review", "boundary"),
    "budget-exhausted": (WAITING, "verify", "boundary"),
    "cache-reused": (WAITING, "wait-merge", "final-decision"),
    "crash-orphan-overlap": (WAITING, "wait-merge", "final-decision"),
    "crash-recovery": (WAITING, "wait-merge", "final-decision"),
    "dirty-worktree": (WAITING, "build", "boundary"),
    "dismissed-finding": (DONE, "wait-merge", None),
    "final-approved": (DONE, "wait-merge", None),
    "infra-exit75": (WAITING, "verify", "infra"),
    "invalid-output": (WAITING, "review", "infra"),
    "no-adapter": (WAITING, "fix", "boundary"),
    "no-transition": (WAITING, "review", "boundary"),
    "odd-numbers-e2big": (WAITING, "fix", "infra"),
    "readonly-violation": (WAITING, "review", "boundary"),
    "same-fingerprint": (WAITING, "verify", "boundary"),
    "scope-violation": (WAITING, "build", "boundary"),
    "signal-crash": (WAITING, "review", "infra"),
    "stopAt": (WAITING, "review", "boundary"),
    "superseded": (Status.SUPERSEDED, "wait-merge", None),
    "tail-chopped-then-resumed": (WAITING, "wait-merge", "final-decision"),
    "timeout-infra": (WAITING, "build", "infra"),
    "work-review-cap": (WAITING, "review", "work-review-cap"),
}
CREATED = {"base": "c0", "entry": "build", "workflowRef": "w"}


def test_all_ledgers_are_named_here() -> None:
    assert {path.name.partition(".")[0] for path in DATA.glob("*.events.jsonl")} == set(STANDS)


@pytest.mark.parametrize("name", STANDS)
def test_foreign_ledger_replays_to_its_state(name: str) -> None:
    path = DATA / f"{name}.events.jsonl"

    state = state_of(path)

    assert first_damage(path) is None
    assert (state.status, state.step, state.request and state.request.kind) == STANDS[name]


def test_demo_counts_as_its_story_tells() -> None:
    state = state_of(DEMO)

    assert (state.seq, state.attempts) == (82, {"build": 1, "verify": 3, "fix": 2, "review": 2})
    assert (state.review_rounds, state.decisions, state.interruptions) == (2, 4, 0)


@pytest.mark.parametrize("name", ["missing-newline-append", "torn-tail"])
def test_damaged_ledger_is_refused_where_it_breaks(name: str) -> None:
    damage = first_damage(DATA / f"{name}.CORRUPT.jsonl")

    assert damage is not None
    assert (damage.line, damage.after_seq) == (26, 25)


def edited(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at].replace(b'"v":1', b'"v":2'), *lines[at + 1 :]]


def dropped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :]]


def swapped(lines: list[bytes], at: int) -> list[bytes]:
    other = (at + 1) % len(lines)
    changed = list(lines)
    changed[at], changed[other] = changed[other], changed[at]
    return changed


def chopped(lines: list[bytes], at: int) -> list[bytes]:
    return lines[:at]


@pytest.mark.parametrize("change", [edited, dropped, swapped, chopped])
def test_any_changed_line_of_the_demo_is_noticed(tmp_path: Path, change: Callable[[list[bytes], int], list[bytes]]) -> None:
    lines = DEMO.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    (tmp_path / "ledger.head.json").write_text(json.dumps({"seq": last["seq"], "digest": last["digest"]}))
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(b"".join(lines))
    assert first_damage(ledger) is None

    unnoticed = []
    for at in range(len(lines)):
        ledger.write_bytes(b"".join(change(lines, at)))
        if first_damage(ledger) is None:
            unnoticed.append(at)

    assert unnoticed == []


def opened(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "ledger.jsonl", run="R", work="W")


def test_events_have_the_work_and_who_did_it(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        first = journal.write("RUN_CREATED", CREATED)
        journal.write("RUN_STARTED", {})
        journal.write("HUMAN_REQUESTED", {"transition": "t", "subject": {}, "reasons": [], "kind": "boundary"})
        said = journal.write(
            "DECISION_RECORDED", {"transition": "t", "decision": "approved", "decisionRef": "D", "subject": {}}, human="ada"
        )

    assert (first["work"], first["actor"]["kind"]) == ("W", "kernel")
    assert said["actor"] == {"kind": "human", "id": "ada"}
    assert state_of(tmp_path / "ledger.jsonl").status is WAITING


def test_what_is_not_allowed_is_not_written(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.write("RUN_CREATED", CREATED)
        before = journal.state.seq, (tmp_path / "ledger.jsonl").read_bytes()
        with pytest.raises(RuntimeError, match="STEP_STARTED cannot come while the run is CREATED"):
            journal.write("STEP_STARTED", {"step": "build", "attempt": 1})

        assert (journal.state.seq, (tmp_path / "ledger.jsonl").read_bytes()) == before


def running(**changes: Any) -> State:
    state = State(status=Status.RUNNING, step="build", created=CREATED)
    for name, value in changes.items():
        setattr(state, name, value)
    return state


@pytest.mark.parametrize(
    ("state", "type", "data", "why"),
    [
        (State(), "RUN_STARTED", {}, "while the run is NONE"),
        (running(), "RUN_CREATED", CREATED, "while the run is RUNNING"),
        (running(), "NO_SUCH", {}, "no event of a run"),
        (running(), "STEP_STARTED", {"step": "fix", "attempt": 1}, "stands at build"),
        (running(), "STEP_STARTED", {"step": "build", "attempt": 3}, "where 1 comes next"),
        (running(), "STEP_STARTED", {}, "lacks or garbles"),
        (running(), "STEP_FINISHED", {"step": "build", "attempt": 1, "status": "succeeded"}, "no step is running"),
        (running(), "TRANSITION", {"from": "fix", "to": "build", "cause": "x"}, "stands at build"),
        (running(), "TRANSITION", {"from": "build", "to": "fix", "cause": "x"}, "no step has finished"),
        (running(), "DECISION_RECORDED", {"transition": "t", "decision": "approved"}, "while the run is RUNNING"),
        (running(), "RUN_TERMINAL", {"status": "SUCCEEDED"}, "nobody has approved"),
        (running(), "RUN_TERMINAL", {"status": "RUNNING"}, "is no end"),
        (running(status=WAITING), "RUN_STARTED", {}, "waits for a decision"),
        (running(status=WAITING), "BUDGET_EXTENDED", {"approvalRef": "D", "amount": 1}, "nobody has approved"),
        (running(status=DONE), "RUN_STARTED", {}, "while the run is SUCCEEDED"),
    ],
)
def test_refusal_says_why(state: State, type: str, data: Mapping[str, Any], why: str) -> None:
    assert why in (refusal(state, type, data) or "")


def test_grant_is_given_once(tmp_path: Path) -> None:
    request: dict[str, Any] = {
        "transition": "t",
        "subject": {},
        "reasons": [],
        "kind": "budget",
        "grants": {"attempts": {"step": "build", "amount": 1}},
    }
    grant = {"kind": "attempts", "step": "build", "amount": 1, "approvalRef": "D"}
    with opened(tmp_path) as journal:
        journal.write("RUN_CREATED", CREATED)
        journal.write("RUN_STARTED", {})
        journal.write("HUMAN_REQUESTED", request)
        journal.write("DECISION_RECORDED", {"transition": "t", "decision": "approved", "decisionRef": "D", "subject": {}})
        journal.write("BUDGET_EXTENDED", grant)
        with pytest.raises(RuntimeError, match="granted already"):
            journal.write("BUDGET_EXTENDED", grant)

        assert journal.state.granted == {"build": 1}


def test_ledger_that_breaks_the_rules_is_refused_with_its_place(tmp_path: Path) -> None:
    state = State()
    advance(state, {"seq": 1, "ts": "", "run": "R", "type": "RUN_CREATED", "data": CREATED})

    with pytest.raises(LedgerDamaged, match="event 2: TRANSITION cannot come") as caught:
        advance(state, {"seq": 2, "ts": "", "run": "R", "type": "TRANSITION", "data": {}})

    assert caught.value.details["after_seq"] == 1
    assert (state.seq, state.status) == (1, Status.CREATED)


def test_every_state_has_an_event_that_leads_on() -> None:
    for status in Status:
        if not status.terminal:
            assert [name for name, rule in RULES.items() if status in rule.statuses and name != "LEDGER_TAIL_REPAIRED"]


def calls_to_open(path: Path, events: int) -> int:
    """Return how many calls of Python functions it takes to open a ledger of so many events."""
    with Journal(path, run="R", work="W") as journal:
        journal.write("RUN_CREATED", CREATED)
        journal.write("RUN_STARTED", {})
        while journal.state.seq < events:
            journal.write("POLICY_EVALUATED", {"policy": "p", "phase": "pre", "result": "PASS", "reason": "r"})
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        state_of(path)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("events", shortened([400, 40], [40]))
def test_opening_a_ledger_is_linear(tmp_path: Path, events: int) -> None:
    small, large = (calls_to_open(tmp_path / f"{number}.jsonl", number) for number in (events, 10 * events))

    assert large <= 12 * small
