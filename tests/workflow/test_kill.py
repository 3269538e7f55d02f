"""SIGKILL at every event boundary of the story, then resume: the same end, nothing done twice, nothing left behind."""

from __future__ import annotations

import fcntl
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import shortened
from tests.workflow.toy import BUILD, FIX, REVIEW, VERIFY, Toy, says

from evalwright.ledger import first_damage
from evalwright_plugins.workflow.record import Journal, Status

EVENTS = 65
LINES = {"builder": BUILD, "verifier": VERIFY, "reviewer": REVIEW, "fixer": FIX}
SHORT = (18, 39)


def counting(toy: Toy) -> dict[str, Any]:
    """Return workers that note each of their starts."""
    count = toy.path.parent / "count"
    return {f"worker_{name}": f"echo $EVALWRIGHT_STEP >> {count}; {line}" for name, line in LINES.items()}


def killed_after(events: int, toy: Toy) -> bool:
    """Drive the story in a process that is killed right after its event of that number; tell whether it came that far."""
    pid = os.fork()
    if pid == 0:
        write, written = Journal.write, [0]

        def deadly(journal: Journal, *words: object, **more: object) -> object:
            event = write(journal, *words, **more)  # type: ignore[arg-type]
            written[0] += 1
            if written[0] == events:
                os.kill(os.getpid(), signal.SIGKILL)
            return event

        Journal.write = deadly  # type: ignore[method-assign, assignment]
        Toy.reopened(toy.path).start(answer=says("approve"), **counting(toy))
        os._exit(0)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL


def processes_in(path: Path) -> list[str]:
    """Return the processes whose working directory lies below a path."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if where.startswith(str(path)):
            found.append(pid)
    return found


def is_free(path: Path) -> bool:
    """Tell whether nobody holds a lock."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("events", shortened(range(1, EVENTS + 1), SHORT))
def test_killed_driver_is_resumed_to_the_same_end(toy: Toy, events: int) -> None:
    assert killed_after(events, toy)

    state = toy.resume(answer=says("approve"))

    assert (state.status, sum(state.attempts.values()) - state.interruptions) == (Status.SUCCEEDED, 8)
    assert toy.git("show", "run/W-1:made.txt") == "begun\nbuilt\nfixed\ndocumented"
    starts = Counter((toy.path.parent / "count").read_text().split())
    assert starts == {"build": 1, "verify": 3, "fix": 2, "review": 2}
    assert len(toy.data("DECISION_RECORDED")) == 2
    run = toy.run()
    assert first_damage(run.files.ledger) is None
    assert toy.git("worktree", "list").count("\n") == 0
    assert processes_in(toy.path) == []
    locks = [run.files.driver, *(toy.runs.repository.state / name for name in ("repository.lock", "works/W/lock"))]
    assert [lock.name for lock in locks if not is_free(lock)] == []


@pytest.mark.acceptance
def test_story_has_as_many_events_as_are_killed_after(toy: Toy) -> None:
    toy.start(answer=says("approve"))

    assert len(toy.events()) == EVENTS


@pytest.mark.acceptance
def test_driver_that_dies_in_a_step_leaves_no_process_and_a_clean_tree_runs_it_again(toy: Toy) -> None:
    mark = toy.path.parent / "begun"
    pid = os.fork()
    if pid == 0:
        line = f"if test ! -e {mark}; then touch {mark}; sleep 1000; fi; {BUILD}"
        Toy.reopened(toy.path).start(answer=says("approve"), worker_builder=line)
        os._exit(0)
    while not mark.exists():
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    state = toy.resume(answer=says("approve"))

    assert (state.status, state.attempts["build"], state.interruptions) == (Status.SUCCEEDED, 2, 1)
    assert processes_in(toy.path) == []


def test_tree_that_a_lost_step_left_dirty_is_asked_about(toy: Toy) -> None:
    mark = toy.path.parent / "begun"
    pid = os.fork()
    if pid == 0:
        line = f"test -e {mark} || (echo half >> made.txt; touch {mark}; sleep 1000); {BUILD}"
        Toy.reopened(toy.path).start(worker_builder=line)
        os._exit(0)
    while not mark.exists():
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    state = toy.resume()

    assert state.request is not None
    assert (state.status, state.request.kind) == (Status.WAITING_HUMAN, "infra")
    assert "made.txt" in state.request.reasons[0]
    assert toy.resume(answer=says("approve")).status is Status.SUCCEEDED
