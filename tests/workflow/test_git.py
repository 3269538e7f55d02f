"""Whatever an agent writes into a repository, our git runs no program of it."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workflow.repositories import commit, git

from evalwright.errors import EvalwrightError
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.workspace import Git, GitError, Repository, Workspace

Trap = Callable[[Path, str], object]
"""Takes a worktree and a program that must never run."""


def hooks(root: Path, program: str) -> None:
    place = root / "hooks"
    place.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        (place / name).write_bytes(Path(program).read_bytes())
        (place / name).chmod(0o755)
    git(root, "config", "core.hooksPath", str(place))


def usual_hooks(root: Path, program: str) -> None:
    place = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir")) / "hooks"
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (place / name).write_bytes(Path(program).read_bytes())
        (place / name).chmod(0o755)


def filters(root: Path, program: str) -> None:
    (root / ".gitattributes").write_text("* filter=a=b.c diff=d merge=m\n")
    for name in ("a=b.c", "d"):
        for key in ("clean", "smudge", "process"):
            git(root, "config", f"filter.{name}.{key}", program)
        git(root, "config", f"filter.{name}.required", "true")
    (root / ".gitattributes").write_text("* filter=d\nsrc/b filter=a=b.c\n")
    git(root, "config", "diff.d.command", program)
    git(root, "config", "diff.d.textconv", program)


def included(root: Path, program: str) -> None:
    (root / "more").write_text(f'[core]\n\tfsmonitor = {program}\n[filter "x"]\n\tclean = {program}\n\trequired\n')
    git(root, "config", "include.path", str(root / "more"))
    (root / ".gitattributes").write_text("* filter=x\n")


def submodule(root: Path, program: str) -> None:
    inside = root / "lib"
    inside.mkdir()
    git(inside, "init", "--quiet")
    commit(inside, inner="x\n")
    git(root, "add", "lib")
    git(root, "commit", "--quiet", "-m", "link")
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.process"):
        git(inside, "config", key, program)
    (inside / ".gitattributes").write_text("* filter=x\n")
    (inside / "inner").write_text("y\n")


def settings(root: Path, program: str) -> None:
    for key in ("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "diff.external"):
        git(root, "config", key, program)
    for command in ("status", "diff-tree", "ls-files", "rev-parse", "diff-index"):
        git(root, "config", f"alias.{command}", f"!{program}")
        git(root, "config", f"pager.{command}", program)


def promised(root: Path, program: str) -> None:
    """Let a missing object be fetched by a program."""
    commit(root, src__a="lost\n")
    lost = git(root, "rev-parse", "HEAD:src/a")
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    git(root, "config", "extensions.partialClone", "p")
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "remote.p.url", f"ext::{program}")
    git(root, "config", "remote.p.promisor", "true")
    git(root, "config", "protocol.ext.allow", "always")
    (common / "objects" / lost[:2] / lost[2:]).unlink()


@pytest.mark.parametrize("trap", [hooks, usual_hooks, filters, included, submodule, settings, promised])
def test_our_git_runs_no_program_of_an_agent(
    tmp_path: Path, repository: Repository, workspace: Workspace, root: Path, base: str, trap: Trap
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> '{ran}'\ncat\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    trap(root, str(program))
    ran.unlink(missing_ok=True)
    with contextlib.suppress(EvalwrightError):
        workspace.candidate()
    (root / "src/b").write_text("touched\n")
    assert "src/b" in workspace.dirty()
    workspace.changed(base)
    workspace.diff_digest(base)
    workspace.proof()
    workspace.newest_reviewed([base])
    repository.bind("R1", base)
    other = repository.bind("R2", base)
    assert other.dirty() == []
    repository.release("R2", keep_branch=False)
    repository.release("R1")
    assert not ran.exists(), ran.read_text()


def test_environment_of_the_caller_is_dropped(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace, base: str, tmp_path: Path
) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_TRACE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert workspace.head() == base
    assert not (tmp_path / "elsewhere").exists()


def test_failure_names_command_status_and_what_git_said(workspace: Workspace) -> None:
    with pytest.raises(GitError, match=r"git rev-list nothing\\nhere ended with 128: .*ambiguous argument"):
        workspace.git.run("rev-list", "nothing\nhere")


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Completed(timed_out=True), "did not end within"),
        (Completed(spawn_error="no such file"), "cannot be started: no such file"),
        (Completed(exit_code=-9, signal=9), "ended with -9"),
    ],
)
def test_git_that_is_cut_or_missing_is_an_error(done: Completed, said: str) -> None:
    def execute(command: Command) -> Completed:
        return done

    for ask in (Git(execute, "/").run, Git(execute, "/").answers, Git(execute, "/").find):
        with pytest.raises(GitError, match=said):
            ask("status")


def test_long_answers_are_refused_and_not_cut(tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright_plugins.workflow.workspace.git.MAX_BYTES", 3)
    with pytest.raises(GitError, match="more than 3 bytes"):
        Git(supervisor.run, str(tmp_path)).run("version")
