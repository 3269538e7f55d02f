"""One step, row by row: every check has a run that it stops, the words of the stop, and the way on from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from tests.conftest import shortened
from tests.workflow.toy import COMMIT, FIX, REVIEW, Toy, says, shell, waits

from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.findings.book import Book
from evalwright_plugins.workflow.record import State, Status
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.workspace import GitError, Repository

APPROVE, REJECT = says("approve"), says("reject")
GOOD: Mapping[str, Any] = {"worker_builder": f"printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}"}


def kind(state: State) -> str | None:
    return state.request.kind if state.request else None


def reasons(state: State) -> str:
    return "\n".join(state.request.reasons) if state.request else ""


def test_whole_story_ends_as_succeeded_with_two_approvals(toy: Toy) -> None:
    state = toy.start(answer=APPROVE)

    assert (state.status, state.attempts) == (Status.SUCCEEDED, {"build": 1, "verify": 3, "fix": 2, "review": 2})
    assert [data["kind"] for data in toy.data("HUMAN_REQUESTED")] == ["finding-triage", "final-decision"]
    assert toy.git("log", "--format=%s", "run/W-1").splitlines() == ["change", "change", "change", "begun"]
    assert toy.git("show", "run/W-1:made.txt") == "begun\nbuilt\nfixed\ndocumented"


def test_terminal_asks_for_the_final_decision(toy: Toy) -> None:
    state = toy.start(**GOOD)

    assert (state.status, kind(state)) == (Status.WAITING_HUMAN, "final-decision")
    assert toy.resume(answer=REJECT).status is Status.FAILED


def test_stop_at_asks_once_before_the_step(toy: Toy) -> None:
    state = toy.start(stop_at=["review"], **GOOD)

    assert (kind(state), state.step, state.attempts.get("review")) == ("boundary", "review", None)
    state = toy.resume(
        answer=lambda turn, request, _refused: APPROVE(turn, request, "") if request.kind == "boundary" else None
    )
    assert (kind(state), state.attempts["review"]) == ("final-decision", 1)


def test_step_without_a_worker_is_handed_to_people(toy: Toy) -> None:
    state = toy.start(worker_fixer=None)
    assert (kind(state), state.step) == ("boundary", "fix")
    assert "no worker fixer" in reasons(state)

    (toy.worktree / "made.txt").write_text("fixed documented\n")
    toy.git("commit", "--all", "--quiet", "--message=by hand", cwd=toy.worktree)
    commit = toy.git("rev-parse", "HEAD", cwd=toy.worktree)
    state = toy.resume(answer=adopts(commit))

    assert (kind(state), state.candidate, state.passed["verify"]) == ("final-decision", commit, commit)


def adopts(commit: str) -> Any:
    def answer(_turn: Any, request: Any, _refused: str) -> Order | None:
        return Order(action="adopt", by="ada", commit=commit) if request.kind != "final-decision" else None

    return answer


@pytest.mark.parametrize("stop", shortened(["verify", "review", "wait-merge"], ["review"]))
def test_adopted_commit_is_verified_before_anything_else(toy: Toy, stop: str) -> None:
    toy.start(stop_at=[stop] if stop != "wait-merge" else [], **GOOD)
    (toy.worktree / "made.txt").write_text("fixed documented by hand\n")
    toy.git("commit", "--all", "--quiet", "--message=by hand", cwd=toy.worktree)
    commit = toy.git("rev-parse", "HEAD", cwd=toy.worktree)
    answered: list[int] = []

    def adopt_once(_turn: Any, request: Any, _refused: str) -> Order | None:
        answered.append(request.seq)
        return Order(action="adopt", by="ada", commit=commit) if len(answered) == 1 else None

    toy.resume(answer=adopt_once)

    after = toy.events()[next(n for n, event in enumerate(toy.events()) if event["data"].get("adopted")) :]
    started = [event["data"]["step"] for event in after if event["type"] == "STEP_STARTED"]
    assert started[0] == "verify"
    assert toy.run().state().candidate == commit


def test_tokens_that_nobody_tells_verify_no_budget(toy: Toy) -> None:
    policy = {
        "id": "rich",
        "phase": "post",
        "steps": ["build"],
        "when": {"budget.remaining": {"kind": "tokens", "at_least": 1}},
    }
    state = toy.start(budgets={"tokens": 100}, policies=[policy], **GOOD)

    assert "unverified: budget.remaining" in reasons(state)


def test_cached_tokens_count_against_the_budget(toy: Toy) -> None:
    usage = '{"usage": {"input": 1, "cache_read": 9, "output": 1}}'
    state = toy.start(
        budgets={"tokens": 10}, worker_builder=f"{GOOD['worker_builder']}; echo '{usage}' > $EVALWRIGHT_OUTPUT_FILE"
    )

    assert (kind(state), state.spent["tokens"]) == ("budget", 11)


def test_review_cap_counts_all_runs_of_a_work(toy: Toy) -> None:
    budgets: Any = {"review_rounds_per_work": 1}
    assert kind(toy.start(budgets=budgets, **GOOD)) == "final-decision"

    state = toy.start(budgets=budgets, **GOOD)

    assert (state.run, kind(state), state.step) == ("W-2", "work-review-cap", "review")
    assert "1 review round " in reasons(state)
    assert toy.run("W-1").state().status is Status.SUPERSEDED
    state = toy.resume(
        "W-2", answer=lambda turn, request, _refused: APPROVE(turn, request, "") if request.kind == "work-review-cap" else None
    )
    assert (kind(state), state.attempts["review"]) == ("final-decision", 1)


def test_findings_that_spend_the_cap_ask_before_the_fixer_runs(toy: Toy) -> None:
    plan = toy.plan(budgets={"review_rounds_per_work": 1}, triage="auto")
    state = toy.start(plan)

    assert (kind(state), state.step) == ("work-review-cap", "fix")
    assert state.attempts["fix"] == 1
    state = toy.resume(
        answer=lambda turn, request, _refused: APPROVE(turn, request, "") if request.kind == "work-review-cap" else None
    )
    assert (kind(state), state.attempts["review"], state.granted_reviews) == ("final-decision", 2, 1)
    assert [data["kind"] for data in toy.data("HUMAN_REQUESTED")] == ["work-review-cap", "final-decision"]


def test_pre_policy_waits_until_a_human_accepts_the_document(toy: Toy) -> None:
    policy = {"id": "plan-accepted", "phase": "pre", "steps": ["build"], "when": {"artifact.accepted": "plan"}}
    state = toy.start(policies=[policy], artifacts={"plan": "made.txt"}, **GOOD)

    assert (kind(state), state.attempts) == ("boundary", {})
    assert "policy plan-accepted" in reasons(state)
    state = toy.resume(
        answer=lambda turn, request, _refused: APPROVE(turn, request, "") if request.kind == "boundary" else None
    )
    assert kind(state) == "final-decision"


def test_attempts_are_capped_and_asked_for(toy: Toy) -> None:
    lines: dict[str, Any] = {
        "worker_fixer": f"date +%N >> made.txt; {COMMIT}",
        "worker_verifier": "date +%N; cat made.txt; exit 1",
    }
    state = toy.start(budgets={"max_attempts": {"verify": 2}}, **lines)

    assert kind(state) == "budget"
    assert (state.attempts["verify"], state.step) == (2, "fix")
    assert "verify has failed its last attempt" in reasons(state)
    state = toy.resume(answer=once())
    assert (kind(state), state.attempts["verify"], state.granted) == ("budget", 3, {"verify": 1})


def once() -> Any:
    answered: list[int] = []

    def answer(turn: Any, request: Any, _refused: str) -> Any:
        if answered:
            return None
        answered.append(request.seq)
        return APPROVE(turn, request, "")

    return answer


@pytest.mark.acceptance
def test_successes_are_free_but_not_without_end(toy: Toy) -> None:
    budgets = {"max_attempts": {"build": 2, "fix": 1, "verify": 50}}
    state = toy.start(budgets=budgets, worker_fixer=f"date +%N >> made.txt; {COMMIT}", worker_verifier="cat made.txt; exit 1")

    assert (kind(state), state.step, state.attempts["fix"], state.charged["fix"]) == ("budget", "fix", 3, 0)
    assert "fix was begun 3 times" in reasons(state)


@pytest.mark.parametrize(
    ("budget", "usage", "words"),
    [
        ({"tokens": 10}, {"input": 9, "output": 2}, "11 of 10 tokens"),
        ({"cost": 0.5}, {"cost": 0.75}, "0.75 of 0.5 dollars"),
    ],
)
def test_budget_of_the_run_stops_it_and_can_be_extended(
    toy: Toy, budget: dict[str, float], usage: dict[str, float], words: str
) -> None:
    said = json.dumps({"usage": usage})
    builder = f"{GOOD['worker_builder']} && echo '{said}' > \"$EVALWRIGHT_OUTPUT_FILE\""
    state = toy.start(budgets=budget, worker_builder=builder)

    assert (kind(state), state.step) == ("budget", "verify")
    assert words in reasons(state)
    state = toy.resume(answer=lambda turn, request, _refused: APPROVE(turn, request, "") if request.kind == "budget" else None)
    assert kind(state) == "final-decision"


def test_wall_budget_cuts_a_step(toy: Toy) -> None:
    state = toy.start(budgets={"wall": 0.3}, worker_builder="sleep 60")

    assert (kind(state), state.step) == ("budget", "build")
    assert state.spent["wall"] < 30


@pytest.mark.parametrize(
    ("change", "area"),
    [
        ("echo x >> made.txt", "made.txt"),
        ("git mv made.txt renamed.txt", "renamed.txt"),
        ("echo x > ignored.tmp", "ignored.tmp"),
        ("git branch sneaked", "sneaked"),
        ("git commit -q --allow-empty -m x", "ref"),
        ("echo x >> ../../../../made.txt", "main checkout"),
    ],
)
def test_readonly_step_that_changes_anything_is_stopped(toy: Toy, change: str, area: str) -> None:
    state = toy.start(worker_reviewer=change, **GOOD)

    assert (kind(state), state.step) == ("boundary", "review")
    assert area in reasons(state)
    assert toy.data("STEP_FINISHED")[-1]["status"] == "blocked"


@pytest.mark.parametrize(
    ("change", "area"), [("git config user.name x", "config"), ("git branch sneaked", "sneaked"), ("git tag t", "tags/t")]
)
def test_writing_step_that_changes_what_is_not_its_own_is_stopped(toy: Toy, change: str, area: str) -> None:
    state = toy.start(worker_builder=f"{change}; {GOOD['worker_builder']}")

    assert (kind(state), state.step) == ("boundary", "build")
    assert area in reasons(state)


def test_user_may_work_in_the_main_checkout_meanwhile(toy: Toy) -> None:
    state = toy.start(worker_builder=f"echo mine >> ../../../../made.txt; {GOOD['worker_builder']}")

    assert kind(state) == "final-decision"


def test_readonly_step_does_not_get_past_with_a_second_edit_of_a_dirty_file(toy: Toy) -> None:
    (toy.path / "made.txt").write_text("edited by the user\n")
    state = toy.start(worker_reviewer="echo again >> ../../../../made.txt", **GOOD)

    assert "main checkout: made.txt changed" in reasons(state)


@pytest.mark.parametrize(
    ("line", "status", "why"),
    [
        ("exit 75", "failed", "exit 75"),
        ("kill -9 $$", "crashed", "signal 9"),
        ("echo nonsense > $EVALWRIGHT_OUTPUT_FILE", "invalid-output", "no envelope"),
        ("head -c 2000000 /dev/zero > $EVALWRIGHT_OUTPUT_FILE", "invalid-output", "no envelope"),
    ],
)
def test_infrastructure_is_not_the_candidates_fault(toy: Toy, line: str, status: str, why: str) -> None:
    state = toy.start(worker_verifier=line)

    assert (kind(state), state.step, state.charged["verify"]) == ("infra", "verify", 0)
    assert why in reasons(state)
    assert toy.data("STEP_FINISHED")[-1]["status"] == status
    assert "FAILURE_FINGERPRINT" not in toy.types()


def test_timeout_is_infrastructure(toy: Toy) -> None:
    workflow = toy.plan().workflow.model_dump(by_alias=True, exclude_none=True)
    workflow["steps"][0]["timeout"] = 0.3
    state = toy.start(workflow=workflow, worker_builder="sleep 60")

    assert (kind(state), toy.data("STEP_FINISHED")[-1]["status"]) == ("infra", "timeout")


def test_infrastructure_is_retried_as_configured(toy: Toy) -> None:
    mark = toy.path.parent / "mark"
    flaky = f"test -e {mark} && exit 0; touch {mark}; exit 75"
    state = toy.start(
        worker_verifier=flaky, worker_builder=GOOD["worker_builder"], retry={"infrastructure": 1, "backoff_seconds": 0}
    )

    assert kind(state) == "final-decision"
    assert (state.attempts["verify"], state.charged["verify"]) == (2, 0)


def test_change_outside_the_scope_is_stopped_on_both_sides_of_a_rename(toy: Toy) -> None:
    state = toy.start(scope=["src"], worker_builder=f"mkdir src && git mv made.txt src/made.txt && {COMMIT}")

    assert (kind(state), state.step) == ("boundary", "build")
    assert "outside the scope: made.txt" in reasons(state)
    state = toy.resume(answer=once())
    assert state.step != "build"


def test_changes_that_are_not_committed_are_no_candidate(toy: Toy) -> None:
    state = toy.start(worker_builder="echo x >> made.txt")

    assert (kind(state), state.step) == ("boundary", "build")
    assert "not committed: made.txt" in reasons(state)


def test_post_policy_is_asked_after_the_step(toy: Toy) -> None:
    policy = {"id": "once", "phase": "post", "steps": ["build"], "when": {"attempts.lt": {"limit": 1}}}
    state = toy.start(policies=[policy], **GOOD)

    assert (kind(state), state.step) == ("boundary", "build")
    assert "policy once" in reasons(state)


def test_same_failure_twice_in_a_row_stops(toy: Toy) -> None:
    state = toy.start(worker_fixer="true", worker_verifier="echo at $(date +%H:%M:%S) it took $(date +%N)ms >&2; exit 1")

    assert (kind(state), state.step, state.attempts["verify"]) == ("not-converging", "verify", 2)


def test_outcome_that_leads_nowhere_is_asked_about(toy: Toy) -> None:
    state = toy.start(worker_builder="exit 1")

    assert (kind(state), state.step) == ("boundary", "build")
    assert "nothing follows when build ends as failed" in reasons(state)


def test_dismissed_finding_never_blocks_again_and_stays_visible(toy: Toy) -> None:
    lines: dict[str, Any] = {"worker_builder": f"echo fixed >> made.txt && {COMMIT}"}
    state = toy.start(**lines)
    assert (kind(state), state.step, state.findings[0]["summary"]) == ("finding-triage", "fix", "no documentation")
    book = Book(toy.runs.repository.state / "works" / "W" / "findings.jsonl", "W")
    book.adjudicate(book.findings[0].fingerprint, "dismissed", by="ada", reason="not needed")

    state = toy.start(**lines)

    assert (state.run, kind(state), state.findings) == ("W-2", "final-decision", ())
    assert toy.data("EVIDENCE_RECORDED", "W-2")[-1]["suppressedFingerprints"] == [book.findings[0].fingerprint]
    assert toy.data("POLICY_EVALUATED", "W-2")[-1]["result"] == "PASS"


def test_issue_that_comes_back_is_not_converging(toy: Toy) -> None:
    state = toy.start(
        worker_builder=f"echo fixed >> made.txt && {COMMIT}", worker_fixer=f"date +%N >> made.txt && {COMMIT}", triage="auto"
    )

    assert (kind(state), state.step, state.attempts["review"]) == ("not-converging", "fix", 2)


def test_needs_are_looked_at(toy: Toy) -> None:
    workflow = {
        "name": "w",
        "steps": [
            {"id": "build", "worker": "builder"},
            {"id": "publish", "worker": "fixer", "needs": ["check"]},
            {"id": "check", "worker": "verifier"},
        ],
        "transitions": [{"from": "check", "on": "failed", "to": "build"}],
        "terminal": ["done"],
    }
    state = toy.start(workflow=workflow, workers={"builder": shell("true"), "fixer": shell("true"), "verifier": shell("true")})

    assert (kind(state), state.step) == ("boundary", "publish")
    assert "publish needs check" in reasons(state)


def test_verification_is_used_again_only_while_its_log_is_there(toy: Toy) -> None:
    mark = toy.path.parent / "count"
    lines: dict[str, Any] = {"worker_verifier": f"echo x >> {mark}", "worker_builder": "true", "worker_reviewer": "true"}
    toy.start(**lines)
    toy.start(**lines)
    assert mark.read_text().count("x") == 1
    assert toy.data("EVIDENCE_RECORDED", "W-2")[1]["reused"]["run"] == "W-1"

    toy.run("W-1").files.log("verify", 1).write_text("changed")
    toy.start(**lines)

    assert mark.read_text().count("x") == 2


@pytest.mark.parametrize("change", shortened([{"prompt": "another"}, {"env": {"DEPTH": "full"}}, {}], [{"prompt": "another"}]))
def test_verification_does_not_hold_for_another_question_or_a_tree_that_it_has_changed(
    toy: Toy, change: Mapping[str, Any]
) -> None:
    mark = toy.path.parent / "count"
    lines: dict[str, Any] = {"worker_verifier": f"echo x >> {mark}", "worker_builder": "true", "worker_reviewer": "true"}
    if not change:
        lines["worker_verifier"] += f"; echo more >> made.txt; {COMMIT}"
    toy.start(**lines)
    toy.start(**lines | dict(change))

    assert mark.read_text().count("x") == 2


def test_review_is_told_what_was_reviewed_and_what_people_said(toy: Toy) -> None:
    keep = toy.path.parent / "seen"
    toy.start(
        answer=APPROVE,
        worker_reviewer=f"cp $EVALWRIGHT_INPUT_FILE {keep}.$EVALWRIGHT_ATTEMPT\n{REVIEW}",
        worker_fixer=f"cp $EVALWRIGHT_INPUT_FILE {keep}.fix.$EVALWRIGHT_ATTEMPT; {FIX}",
    )
    second = json.loads(keep.with_name("seen.2").read_text())
    fix = json.loads(keep.with_name("seen.fix.2").read_text())
    assert second["last_reviewed"]["range"].startswith(second["last_reviewed"]["candidate"])
    assert fix["findings"][0]["summary"] == "no documentation"
    assert json.loads(keep.with_name("seen.fix.1").read_text())["last_failure"]["step"] == "verify"


def test_approval_of_what_has_moved_since_is_not_taken(toy: Toy) -> None:
    toy.start(**GOOD)
    subprocess.run(
        ["git", "commit", "--allow-empty", "-qm", "moved"],
        cwd=toy.worktree,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": "/x",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a",
        },
        check=True,
    )

    state = toy.resume(answer=once())

    assert (state.status, kind(state)) == (Status.WAITING_HUMAN, "final-decision")
    assert "has changed since" in reasons(state)
    assert toy.resume(answer=waits).status is Status.WAITING_HUMAN


def test_final_decision_needs_what_the_pinned_policies_say(toy: Toy) -> None:
    policy = {
        "id": "by-bob",
        "phase": "transition",
        "steps": ["wait-merge"],
        "when": {"human.approved": {"kind": "final-decision", "by": ["bob"]}},
    }
    toy.start(policies=[policy], **GOOD)

    state = toy.resume(answer=once())

    assert state.status is not Status.SUCCEEDED


def test_review_whose_blocking_findings_are_all_dismissed_has_passed(toy: Toy) -> None:
    toy.start(worker_builder=f"echo fixed >> made.txt && {COMMIT}")
    book = Book(toy.runs.repository.state / "works" / "W" / "findings.jsonl", "W")
    book.adjudicate(book.findings[0].fingerprint, "dismissed", by="ada", reason="not needed")

    state = toy.resume(answer=once())

    assert (kind(state), state.step, state.attempts.get("fix")) == ("final-decision", "wait-merge", None)
    assert toy.data("TRANSITION")[-1]["cause"] == "findings-dismissed"


@pytest.mark.acceptance
def test_triage_of_a_spent_review_asks_once(toy: Toy) -> None:
    state = toy.start(budgets={"review_rounds_per_work": 1}, worker_builder=f"echo fixed >> made.txt && {COMMIT}")
    assert kind(state) == "finding-triage"

    state = toy.resume(answer=once())

    assert (kind(state), state.granted_reviews, state.attempts["review"]) == ("final-decision", 1, 2)


def test_pipe_among_the_refs_holds_nobody_up(toy: Toy) -> None:
    pipe = toy.path / ".git" / "refs" / "heads" / "run" / "W-1"
    saved = toy.path.parent / "saved"
    with pytest.raises(GitError, match="run/W-1 is neither a file nor a directory"):
        toy.start(worker_builder=f"{GOOD['worker_builder']}; test -e {saved} || {{ mv {pipe} {saved}; mkfifo {pipe}; }}")
    with pytest.raises(GitError, match="run/W-1 is neither"):
        Repository.find(toy.path, executor(toy.supervisor))

    pipe.unlink()
    pipe.write_bytes(saved.read_bytes())

    assert kind(toy.resume()) == "final-decision"


def test_thousands_of_findings_are_put_on_record_at_once(toy: Toy) -> None:
    many = "import json; print(json.dumps({'findings': [{'severity': 'P3', 'summary': f'thing {n}'} for n in range(2000)]}))"
    state = toy.start(**GOOD, worker_reviewer=f'python3 -c "{many}" > $EVALWRIGHT_OUTPUT_FILE')

    assert (kind(state), len(state.findings)) == ("final-decision", 2000)
    book = Book(toy.runs.repository.state / "works" / "W" / "findings.jsonl", "W")
    assert len(book.findings) == 2000
    book.raise_findings(book.findings, run="W-1", candidate=state.candidate)
    assert Book(toy.runs.repository.state / "works" / "W" / "findings.jsonl", "W").findings == book.findings
