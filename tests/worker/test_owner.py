"""A sandbox whose commands run as another user: all files of a trial are that user's from the start, graders' too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalwright.interfaces import give_tree
from evalwright.workspace import Scratch, copy_tree

if TYPE_CHECKING:
    from tests.conftest import Project

SANDBOX = """
from dataclasses import replace

from evalwright.interfaces import Command, LocalSession, Sandbox, SandboxRequest
from evalwright.processes import Supervisor

DROP = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]


class NobodySandbox(Sandbox):
    api = "sandbox/1.0"

    def __init__(self, config, host):
        super().__init__(config, host)
        self._supervisor = Supervisor()

    def start(self, deadline):
        self.user = 65534

    def open(self, request):
        return NobodySession(request, self._supervisor)

    def close(self, deadline):
        self._supervisor.close()


class NobodySession(LocalSession):
    def __init__(self, request, supervisor):
        super().__init__(request)
        self._supervisor = supervisor

    def execute(self, command):
        cwd = str(self.host_path(command.cwd or self.workspace))
        process = self._supervisor.start(replace(command, argv=[*DROP, *command.argv], cwd=cwd))
        with self.running(process):
            return process.wait()
"""
AGENT = """
set -e
id -u
echo more >> a.txt; echo more >> d/deep.txt; echo new > d/new.txt; chmod 600 a.txt; ln -sf new.txt d/link
exchange=$(dirname "$EVALWRIGHT_TASK_FILE")
cat "$EVALWRIGHT_TASK_FILE" > "$HOME/seen"; echo x > "$TMPDIR/x"; echo x > "$exchange/x"
find . "$HOME" "$TMPDIR" "$exchange" ! -user 65534
"""
GRADER = """
set -e
echo again >> a.txt; echo again >> d/new.txt; rm d/link
test -z "$(find . "$(dirname "$EVALWRIGHT_CASE_FILE")" ! -user 65534)"
echo '{"ok": true, "score": 1, "findings": []}'
"""


@pytest.fixture(autouse=True)
def as_root(require: Callable[[str], None]) -> None:
    """Skip where a file cannot be given away."""
    require("setpriv")
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")


def test_agents_and_graders_own_what_they_work_on(project: Project) -> None:
    project.suite(
        sandbox={"use": "nobody.py:NobodySandbox"},
        runner={"shell": True, "command": AGENT},
        scorers=[
            {"use": "exact"},
            {"use": "command", "id": "own", "shell": True, "command": GRADER, "cwd": "workspace"},
            {"use": "tests", "argv": ["sh", "hidden.sh"]},
        ],
        files={
            "nobody.py": SANDBOX,
            "fixtures/w/d/deep.txt": "deep\n",
            "hidden/hidden.sh": "echo x >> d/deep.txt; echo x > made; echo x > sub/made; exec test -O hidden.sh",
            "hidden/sub/seed": "",
        },
        cases=[{"id": "one", "hidden": "hidden", "expect": {"exact": "65534\n", "tests": {}}}],
    )

    answer = project.call("run", "demo", "--run-id", "r", "--format", "json")

    assert answer.exit_code == 0, answer.stdout
    score = project.record("r", "one", "score.json")
    assert score["status"] == "pass", score


def test_copies_belong_to_the_owner_and_keep_their_modes(tmp_path: Path) -> None:
    source = tmp_path / "s"
    (source / "d").mkdir(parents=True)
    (source / "d" / "f").write_text("x")
    (source / "d" / "f").chmod(0o4640)
    (source / "link").symlink_to("/etc/passwd")
    passwd = os.stat("/etc/passwd").st_uid

    copy_tree(source, tmp_path / "t", owner=65534)

    copied = [tmp_path / "t" / name for name in ("d", "d/f", "link")]
    assert [(path.lstat().st_uid, path.lstat().st_gid) for path in copied] == [(65534, 65534)] * 3
    assert (tmp_path / "t" / "d" / "f").stat().st_mode & 0o7777 == 0o4640
    assert os.stat("/etc/passwd").st_uid == passwd
    assert (source / "d" / "f").stat().st_uid == 0


def test_given_tree_changes_hands_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    root = tmp_path / "w"
    (root / "d").mkdir(parents=True)
    (root / "d" / "link").symlink_to(tmp_path / "outside")

    give_tree(root, 65534)

    assert {path.lstat().st_uid for path in (root, root / "d", root / "d" / "link")} == {65534}
    assert (tmp_path / "outside").stat().st_uid == 0


def test_single_file_is_given_like_a_tree_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")

    for name in ("file", "link"):
        give_tree(tmp_path / name, os.geteuid())

    assert (tmp_path / "file").stat().st_uid == os.geteuid()


def test_directories_of_a_place_belong_to_its_owner_and_the_way_there_does_not(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)

    place = scratch.place(0, owner=65534)

    directories = (place.workspace, place.exchange, place.home, place.temporary)
    assert {path.stat().st_uid for path in directories} == {65534}
    assert place.root.stat().st_uid == 0
    scratch.close()
