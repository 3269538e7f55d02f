"""Nothing that a read-only step writes gets past its proof; a writing step is caught outside of what is its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.workflow.repositories import commit, git

from evalwright_plugins.workflow.workspace import Repository, Workspace


class Places(NamedTuple):
    """Where an agent can write."""

    root: Path
    main: Path


Act = Callable[[Places], object]


def edit(path: Path, text: str = "changed\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def quietly(path: Path) -> None:
    """Change a file's content, and neither its size nor its times as far as a program can set them."""
    before = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_for_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def hide_by_exclusion(at: Places) -> None:
    edit(at.main / ".git/info/exclude", "/secret\n")
    edit(at.root / "secret")


def stash(at: Places) -> None:
    edit(at.root / "src/a")
    git(at.root, "stash", "--quiet")


def drop_older_stash(at: Places) -> None:
    git(at.root, "stash", "drop", "--quiet", "stash@{1}")


def nested_repository(at: Places) -> None:
    (at.root / "nested").mkdir()
    git(at.root / "nested", "init", "--quiet")


def link_objects(at: Places) -> None:
    free = next(name for name in (f"{number:02x}" for number in range(256)) if not (at.main / ".git/objects" / name).exists())
    (at.main / ".git/objects" / free).symlink_to("/tmp")


WRITES: dict[str, tuple[Act, str]] = {
    "edit": (lambda at: edit(at.root / "src/a"), "worktree: src/a changed"),
    "edit of an ignored file": (lambda at: edit(at.root / "old.log"), "worktree: old.log changed"),
    "quiet edit of an ignored file": (lambda at: quietly(at.root / "old.log"), "worktree: old.log changed"),
    "new ignored file": (lambda at: edit(at.root / "build/x"), "worktree: build/x added"),
    "empty directory": (lambda at: (at.root / "empty").mkdir(), "worktree: empty added"),
    "dirty-to-dirty edit": (lambda at: quietly(at.root / "src/b"), "worktree: src/b changed"),
    "mode": (lambda at: (at.root / "src/a").chmod(0o755), "worktree: src/a changed"),
    "link instead of a file": (lambda at: os.replace(at.root / "link", at.root / "src/a"), "worktree: src/a changed"),
    "link elsewhere": (
        lambda at: ((at.root / "link").unlink(), (at.root / "link").symlink_to("src/c")),
        "worktree: link changed",
    ),
    "directory instead of a file": (lambda at: swap_for_directory(at.root / "src/a"), "worktree: src/a changed"),
    "rename": (lambda at: (at.root / "src/a").rename(at.root / "docs/a"), "worktree: docs/a added"),
    "fifo": (lambda at: os.mkfifo(at.root / "fifo"), "worktree: fifo added"),
    "odd name": (lambda at: edit(at.root / os.fsdecode(b"n\n\xff")), "worktree: n\\n\\xff added"),
    "nested repository": (nested_repository, "worktree: nested added"),
    "commit": (lambda at: commit(at.root), "ref: refs/heads/run/R1 changed"),
    "amended message": (lambda at: git(at.root, "commit", "-q", "--amend", "-m", "x"), "ref: refs/heads/run/R1 changed"),
    "staging": (lambda at: git(at.root, "add", "src/b"), "index: src/b:0 changed"),
    "assume-unchanged": (lambda at: git(at.root, "update-index", "--assume-unchanged", "src/a"), "index: src/a:0 changed"),
    "detached head": (lambda at: git(at.root, "checkout", "-q", "--detach"), "HEAD: changed"),
    "new ref": (lambda at: git(at.root, "tag", "v1"), "ref: refs/tags/v1 added"),
    "moved ref": (lambda at: git(at.root, "branch", "--force", "other", "HEAD^"), "ref: refs/heads/other changed"),
    "removed ref": (lambda at: git(at.root, "branch", "--delete", "--force", "other"), "ref: refs/heads/other removed"),
    "odd ref": (lambda at: git(at.root, "update-ref", "refs/hidden/x", "HEAD"), "ref: refs/hidden/x added"),
    "replacement": (lambda at: git(at.root, "replace", "--graft", "HEAD"), "ref: refs/replace/"),
    "symbolic ref": (
        lambda at: git(at.root, "symbolic-ref", "refs/heads/link", "refs/heads/main"),
        "ref: refs/heads/link added",
    ),
    "stash": (stash, "ref: refs/stash changed"),
    "older stash": (drop_older_stash, "repository: logs/refs/stash changed"),
    "edit in the main checkout": (lambda at: edit(at.main / "src/a"), "main checkout: src/a changed"),
    "dirty-to-dirty edit in the main checkout": (lambda at: quietly(at.main / "src/b"), "main checkout: src/b changed"),
    "new file in the main checkout": (lambda at: edit(at.main / "new"), "main checkout: new added"),
    "ignored file in the main checkout": (lambda at: quietly(at.main / "main.log"), "main checkout: main.log changed"),
    "staging in the main checkout": (
        lambda at: git(at.main, "add", "src/b"),
        "index of the main checkout: src/b:0 changed",
    ),
    "head of the main checkout": (
        lambda at: git(at.main, "checkout", "-q", "--detach"),
        "ref: HEAD of the main checkout changed",
    ),
    "configuration": (lambda at: git(at.main, "config", "user.name", "x"), "repository: config changed"),
    "configuration of the worktree": (
        lambda at: git(at.root, "config", "--worktree", "user.name", "x"),
        "repository: worktrees/R1/config.worktree changed",
    ),
    "hook": (lambda at: edit(at.main / ".git/hooks/post-commit"), "repository: hooks/post-commit added"),
    "exclusion": (hide_by_exclusion, "repository: info/exclude changed"),
    "attributes": (lambda at: edit(at.main / ".git/info/attributes"), "repository: info/attributes added"),
    "alternates": (lambda at: edit(at.main / ".git/objects/info/alternates"), "repository: objects/info/alternates added"),
    "shallow": (lambda at: edit(at.main / ".git/shallow", ""), "repository: shallow added"),
    "link to be written through": (
        lambda at: (at.main / ".git/logs/refs/heads/run/R9").symlink_to("/tmp/victim"),
        "repository: logs/refs/heads/run/R9 added",
    ),
    "link instead of a branch": (
        lambda at: (at.main / ".git/refs/heads/run/R9").symlink_to("/etc"),
        "repository: refs/heads/run/R9 added",
    ),
    "link among the objects": (lambda at: link_objects(at), "repository: objects/"),
    "link in the worktree's part": (
        lambda at: (at.main / ".git/worktrees/R1/COMMIT_EDITMSG.x").symlink_to("/tmp/victim"),
        "repository: worktrees/R1/COMMIT_EDITMSG.x added",
    ),
    "git file": (lambda at: (at.root / ".git").unlink(), "worktree: .git removed"),
}
OF_A_WRITING_STEP = {
    *("edit", "edit of an ignored file", "quiet edit of an ignored file", "new ignored file", "empty directory"),
    *("dirty-to-dirty edit", "mode", "link instead of a file", "link elsewhere", "directory instead of a file", "rename"),
    *("fifo", "odd name", "nested repository", "commit", "amended message", "staging", "assume-unchanged", "detached head"),
    "git file",
}


@pytest.fixture
def main(repository: Repository, root: Path) -> Path:
    """Return the main checkout; it and the worktree are prepared: uncommitted edits, ignored files, a link, two stashes."""
    main = repository.checkout
    commit(root, src__c="c\n")
    git(root, "branch", "other")
    for text in ("one\n", "two\n"):
        (root / "src/a").write_text(text)
        git(root, "stash", "--quiet")
    for place, log in ((root, "old.log"), (main, "main.log")):
        (place / "src/b").write_text("ab\n")
        (place / log).write_text("0123456789\n")
    (root / "link").symlink_to("src/a")
    return main


@pytest.mark.parametrize("write", WRITES)
def test_nothing_that_is_written_gets_past_a_proof(workspace: Workspace, root: Path, main: Path, write: str) -> None:
    act, line = WRITES[write]
    before = workspace.proof()
    act(Places(root, main))
    after = workspace.proof()
    assert after != before
    assert any(found.startswith(line) for found in before.difference(after)), before.difference(after)
    beside = before.trespasses(after)
    assert (beside == []) == (write in OF_A_WRITING_STEP), beside


def test_reading_leaves_the_proof_as_it_is(workspace: Workspace, root: Path, main: Path) -> None:
    before = workspace.proof()
    for place in (root, main):
        os.utime(place / "src/a")
        for words in (["status"], ["diff"], ["log", "--stat"], ["show", "HEAD"], ["blame", "src/a"], ["fsck"]):
            git(place, *words)
    assert workspace.proof() == before
    assert before.difference(workspace.proof()) == []


def test_garbage_collection_leaves_the_proof_as_it_is(workspace: Workspace, root: Path, main: Path) -> None:
    before = workspace.proof()
    git(main, "gc", "--quiet", "--prune=now")
    git(main, "update-server-info")
    git(main, "commit-graph", "write", "--reachable")
    assert before.difference(workspace.proof()) == []
    assert workspace.head() == git(root, "rev-parse", "HEAD")


def test_branches_of_runs_driven_at_the_same_time_may_move(repository: Repository, workspace: Workspace, base: str) -> None:
    other = repository.bind("R2", base)
    before = workspace.proof(beside=["R1", "R2"])
    commit(other.place.root, src__a="other\n")
    assert before.difference(workspace.proof(beside=["R1", "R2"])) == []
    assert workspace.proof().difference(workspace.proof(beside=["R2"])) == ["ref: refs/heads/run/R2 removed"]
    commit(workspace.place.root, src__a="own\n")
    assert "ref: refs/heads/run/R1 changed" in before.difference(workspace.proof(beside=["R1", "R2"]))
