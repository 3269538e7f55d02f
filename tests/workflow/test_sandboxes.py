"""A whole story under bubblewrap: steps commit to their branch, and nothing else of the repository can be written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.workflow.toy import COMMIT, REVIEW, Toy, says

from evalwright_plugins.workflow.record import Status

BUBBLE = {"use": "bubblewrap"}
TRIES = "git config user.name x; git branch sneaked; echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit; true"


@pytest.fixture
def toy() -> Iterator[Toy]:
    """Give a repository that every user can reach; pytest's own directories are closed."""
    with tempfile.TemporaryDirectory(prefix="evalwright-story-") as name:
        Path(name).chmod(0o711)
        toy = Toy(Path(name) / "repository")
        yield toy
        toy.supervisor.close()


@pytest.mark.acceptance
def test_story_under_bubblewrap_ends_as_it_does_without(toy: Toy, require: Callable[[str], None]) -> None:
    require("bwrap")

    state = toy.start(sandbox=BUBBLE, answer=says("approve"))

    assert (state.status, state.attempts) == (Status.SUCCEEDED, {"build": 1, "verify": 3, "fix": 2, "review": 2})
    assert toy.git("show", "run/W-1:made.txt") == "begun\nbuilt\nfixed\ndocumented"


def test_sandboxed_steps_cannot_write_what_is_not_theirs(toy: Toy, require: Callable[[str], None]) -> None:
    require("bwrap")
    build = f"({TRIES}) >/dev/null 2>&1; printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}"

    state = toy.start(sandbox=BUBBLE, worker_builder=build, worker_reviewer=f"echo x > new; echo x >> made.txt; {REVIEW}")

    assert state.request is not None
    assert state.request.kind == "final-decision"
    assert toy.git("branch", "--list", "sneaked") == ""
    assert not (toy.path / ".git" / "hooks" / "pre-commit").exists()
