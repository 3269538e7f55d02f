"""Decisions while a run is driven, from other processes; and runs that are driven side by side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import Project, shortened
from tests.workflow.toy import BUILD, COMMIT, Toy, says

from evalwright.errors import RunBusy, RunConflict, RunCorrupt
from evalwright.ledger import first_damage
from evalwright_plugins.workflow.approvals.orders import Answer, Inbox, Order
from evalwright_plugins.workflow.commands.common import who
from evalwright_plugins.workflow.record import Status
from evalwright_plugins.workflow.workspace import hold

RETRIED: Any = {
    "workflow": {
        "name": "w",
        "steps": [{"id": "build", "worker": "builder"}],
        "transitions": [{"from": "build", "on": "failed", "to": "build"}],
        "terminal": ["end"],
    },
    "workers": {"builder": {"shell": True, "command": "date +%N; exit 1"}},
}
GOOD = f"printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}"


def work(toy: Toy, *words: str, **more: Any) -> subprocess.Popen[str]:
    """Start ``evalwright work`` in another process."""
    command = [sys.executable, "-m", "evalwright", "work", *words, "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=toy.path, text=True, **pipes, **more)


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the envelope of a process."""
    stdout, _ = process.communicate(timeout=120)
    return process.returncode, json.loads(stdout)


def called(toy: Toy, *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the envelope of ``evalwright work`` in another process."""
    answer = Project(toy.path, toy.zygote).call("work", *words, "--json")
    return answer.exit_code, answer.envelope


def appears(path: Path) -> None:
    """Wait for a file of a process that was started."""
    while not path.exists():
        pass


def test_approval_from_another_process_drives_the_run_on(toy: Toy) -> None:
    toy.start(worker_builder=GOOD)

    code, answer = called(toy, "approve", "--by", "ada")

    assert (code, answer["data"]["status"]) == (0, "SUCCEEDED")
    assert [event["actor"] for event in toy.events() if event["type"] == "DECISION_RECORDED"] == [
        {"kind": "human", "id": "ada"}
    ]


def test_stop_reaches_a_driver_in_the_middle_of_a_step(toy: Toy) -> None:
    mark = toy.path.parent / "begun"
    driver = work(
        toy, "start", "--config", str(toy.config(workers={"builder": {"shell": True, "command": f"touch {mark}; sleep 1000"}}))
    )
    appears(mark)

    code, _ = called(toy, "stop", "W-1", "--by", "ada", "--reason", "wrong task")
    driven, answer = ended(driver)

    assert (code, driven, answer["data"]["status"]) == (20, 20, "CANCELLED")
    assert answer["data"]["reason"] == "stopped by ada: wrong task"
    assert first_damage(toy.run().files.ledger) is None
    assert toy.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("wanted", shortened(["stop", "interrupt"], ["stop"]))
def test_pause_before_another_try_holds_nobody_up(toy: Toy, wanted: str) -> None:
    code = {"stop": 20, "interrupt": 130}[wanted]
    mark = toy.path.parent / "begun"
    workers = {"builder": {"shell": True, "command": f"touch {mark}; exit 75"}}
    retry = {"infrastructure": 1, "backoff_seconds": 1000}
    driver = work(toy, "start", "--config", str(toy.config(workers=workers, retry=retry)))
    appears(mark)
    while "STEP_FINISHED" not in toy.types():
        pass
    if wanted == "stop":
        assert called(toy, "stop", "W-1")[0] == code
    else:
        driver.send_signal(signal.SIGINT)

    assert ended(driver)[0] == code


def test_decision_is_carried_out_when_the_driver_ends_without_having_seen_it(toy: Toy) -> None:
    toy.start(worker_builder=GOOD)
    files = toy.run().files
    with hold(files.driver):
        process = work(toy, "approve", "--repo", str(toy.path))
        while next(Inbox(files.inbox).waiting(), None) is None:
            pass

    code, answer = ended(process)

    assert (code, answer["data"]["status"]) == (0, "SUCCEEDED")
    assert [f"--repo {toy.path}" in one["command"] for one in answer["commands"]] == [True]


def test_interrupt_leaves_a_run_that_goes_on(toy: Toy) -> None:
    mark = toy.path.parent / "begun"
    line = f"if test ! -e {mark}; then touch {mark}; sleep 1000; fi; {BUILD}"
    driver = work(toy, "start", "--config", str(toy.config(workers={"builder": {"shell": True, "command": line}})))
    appears(mark)
    driver.send_signal(signal.SIGINT)

    code, answer = ended(driver)

    assert (code, answer["errors"][0]["code"]) == (130, "E_INTERRUPTED")
    state = toy.resume()
    assert (state.attempts["build"], state.interruptions, state.charged.get("build", 0)) == (2, 1, 0)


@pytest.mark.acceptance
def test_two_approvals_at_once_count_as_one(toy: Toy) -> None:
    toy.start(worker_builder=GOOD)

    both = [work(toy, "approve", "W-1") for _ in range(2)]
    codes = sorted(ended(process)[0] for process in both)

    assert codes[0] == 0
    assert codes[1] in (0, 4, 5)
    assert len(toy.data("DECISION_RECORDED")) == 1
    assert toy.run().state().status is Status.SUCCEEDED


def test_pasted_command_answers_the_request_that_it_was_shown_for(toy: Toy) -> None:
    state = toy.start(worker_builder=GOOD, stop_at=["review"])
    assert state.request is not None
    seen = str(state.request.seq)
    toy.resume(answer=lambda turn, request, _: says("approve")(turn, request, "") if request.kind == "boundary" else None)

    (code, later), (wrong, _) = (called(toy, "approve", "--request", number) for number in (seen, "x"))

    assert (code, wrong) == (5, 1)
    assert f"request {seen} is no longer open" in later["errors"][0]["message"]
    state = toy.run().state()
    assert (state.decisions, state.request is not None) == (1, True)


def test_machine_grants_no_more_by_a_question_that_is_asked_again(toy: Toy) -> None:
    toy.start(on_gate="approve", budgets={"max_attempts": {"build": 1}}, **RETRIED)
    toy.git("commit", "--quiet", "--allow-empty", "--message=moved", cwd=toy.worktree)
    assert called(toy, "approve", "W-1")[0] == 5

    state = toy.resume()

    assert state.request is not None
    assert (state.request.kind, state.granted) == ("stale", {})
    assert any("last attempt" in reason for reason in state.request.reasons)


def test_order_to_a_request_that_is_closed_is_refused(toy: Toy) -> None:
    state = toy.start(worker_builder=GOOD)
    assert state.request is not None
    inbox = Inbox(toy.run().files.inbox)
    name = inbox.put(Order(action="approve", by="ada", request=state.request.seq - 1))

    toy.resume()

    answer = inbox.answer(name)
    assert answer is not None
    assert (answer.ok, "no longer open" in answer.message) == (False, True)
    assert toy.data("DECISION_RECORDED") == []


def test_file_that_is_no_order_is_set_aside(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    for number, content in enumerate(
        [b"", b"{", b"[]", b'{"action": "dance", "by": "ada"}', b'{"action": "stop", "by": ""}', b"\xff"]
    ):
        (tmp_path / f"{number}.json").write_bytes(content)

    assert list(inbox.waiting()) == []
    assert inbox.answer("3.json") == Answer(ok=False, message="this file is no order")


def test_policies_of_the_run_decide_whatever_the_file_says_now(toy: Toy) -> None:
    policy = {"id": "by-bob", "phase": "transition", "when": {"human.approved": {"kind": "final-decision", "by": ["bob"]}}}
    toy.start(worker_builder=GOOD, policies=[policy])

    code, answer = called(toy, "approve", "--by", "ada")
    assert (code, answer["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    assert "by-bob" in answer["errors"][0]["message"]
    assert called(toy, "approve", "--by", "bob")[0] == 0


def test_run_goes_on_when_nobody_listens_any_more(toy: Toy) -> None:
    driver = work(toy, "start", "--config", str(toy.config(workers={"builder": {"shell": True, "command": GOOD}})))
    assert driver.stderr
    assert driver.stdout
    driver.stderr.close()

    with driver.stdout as told:
        assert json.loads(told.read())["data"]["status"] == "WAITING_HUMAN"
    assert driver.wait(120) == 10


def test_plan_that_was_changed_after_the_start_is_refused(toy: Toy) -> None:
    toy.start(worker_builder=GOOD)
    plan = toy.run().files.plan
    plan.write_text(plan.read_text().replace("merge-evidence-floor", "no-floor"))

    with pytest.raises(RunCorrupt, match="is not what the run was started with"):
        toy.resume(answer=says("approve"))


def test_exclusive_run_does_not_begin_while_another_is_driven(toy: Toy) -> None:
    with hold(toy.runs.repository.state / "repository.lock"), pytest.raises(RunBusy, match=str(os.getpid())):
        toy.start(worker_builder=GOOD)

    assert list(toy.runs) == []


@pytest.mark.acceptance
def test_exclusive_runs_of_different_works_wait_for_each_other(toy: Toy) -> None:
    mark = toy.path.parent / "begun"
    slow = {"workers": {"builder": {"shell": True, "command": f"touch {mark}; sleep 1000"}}}
    first = work(toy, "start", "--config", str(toy.config(**slow)))
    appears(mark)

    with pytest.raises(RunBusy, match=str(first.pid)):
        toy.start(work="V", worker_builder=GOOD)
    first.send_signal(signal.SIGTERM)
    assert ended(first)[0] == 130


@pytest.mark.parametrize("same", [False, True])
def test_parallel_runs_of_different_works_go_together_and_of_one_work_never(toy: Toy, same: bool) -> None:
    ready = [toy.path.parent / name for name in ("one", "two")]
    children: list[int] = []
    for number, mark in enumerate(ready):
        pid = os.fork()
        if pid == 0:
            os.close(1)
            line = f"touch {mark}; while ! test -e {ready[1 - number]}; do :; done; {GOOD}" if not same else GOOD
            status = 3
            try:
                name = "W" if same else f"W{number}"
                status = 0 if Toy.reopened(toy.path).start(parallel=True, work=name, worker_builder=line).request else 1
            except RunBusy:
                status = 4
            finally:
                os._exit(status)
        children.append(pid)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)

    assert codes[0] == 0
    assert codes[1] in ((0, 4) if same else (0,))
    waiting = [run.id for run in toy.runs if run.state().status is Status.WAITING_HUMAN]
    assert len(waiting) == (1 if same else 2)


def test_verb_tells_a_newcomer_what_is_missing(project: Project) -> None:
    answer = project.call("work", "start", "--json")
    assert (answer.exit_code, answer.envelope["errors"][0]["key"]) == (1, "config")
    answer = project.call("work", "resume", "--json")
    assert "no git repository" in answer.envelope["errors"][0]["message"]


def test_ended_run_keeps_a_worktree_with_changes_that_are_not_committed(toy: Toy) -> None:
    toy.start(worker_builder="echo precious >> made.txt; exit 1", answer=says("reject"))

    assert (toy.worktree / "made.txt").read_text().endswith("precious\n")
    toy.git("checkout", "made.txt", cwd=toy.worktree)
    toy.resume()
    assert not toy.worktree.exists()


def test_branches_in_the_way_of_runs_are_named_before_anything_is_written(toy: Toy) -> None:
    toy.git("branch", "run")
    with pytest.raises(RunConflict, match="the branch run leaves no room"):
        toy.start()
    assert list(toy.runs) == []

    toy.git("branch", "--delete", "run")
    toy.git("branch", "run/W-1/mine")

    assert toy.start(worker_builder=GOOD).run == "W-2"


def test_worker_that_cannot_be_made_is_infrastructure(toy: Toy) -> None:
    state = toy.start(workers={"builder": {"use": "no-such-runner"}})

    assert state.request is not None
    assert (state.request.kind, "no-such-runner" in state.request.reasons[0]) == ("infra", True)


def test_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)

    assert who(SimpleNamespace(by=None)) == "4000000001"
