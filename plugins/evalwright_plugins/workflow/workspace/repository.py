"""A user's repository, and the worktrees that runs get in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from evalwright.errors import RunConflict, SourceMissing, UsageError
from evalwright_plugins.workflow.workspace.binding import bound_place, finish, unbind
from evalwright_plugins.workflow.workspace.git import Execute, Git, GitError, check_refs, paths
from evalwright_plugins.workflow.workspace.locks import hold
from evalwright_plugins.workflow.workspace.places import BRANCHES, Place, checked_id
from evalwright_plugins.workflow.workspace.worktree import Workspace

__all__ = ["Repository"]

PATIENCE_SECONDS = 120.0
TREE = "worktree "


class Repository:
    """A git repository with a work tree and at least one commit; made by :meth:`find`.

    ``common`` is its git directory, ``checkout`` its main work tree, ``state`` the directory ``evalwright`` in ``common``.
    """

    def __init__(self, git: Git, common: Path, checkout: Path) -> None:
        self.common = common
        self.checkout = checkout
        self.state = common / "evalwright"
        self.git = git.within(str(checkout), GIT_DIR=str(common), GIT_WORK_TREE=str(checkout))

    @staticmethod
    def find(path: Path, execute: Execute, env: Mapping[str, str] | None = None) -> Repository:
        """Return the repository in which ``path`` lies, from a worktree of it too.

        Raises ``UsageError`` for no repository, a bare one, and one without a commit; ``SourceMissing`` for no directory.
        """
        if not path.is_dir():
            raise SourceMissing(f"{path} is not a directory", hint="name a directory of a git repository")
        git = Git(execute, str(path.resolve()), env)
        try:
            common = Path(git.text("rev-parse", "--path-format=absolute", "--git-common-dir")).resolve()
        except GitError as error:
            if "not a git repository" not in error.message:
                raise
            raise UsageError(f"{path} lies in no git repository", hint="make one: git init, then commit") from error
        check_refs(common)
        first = paths(git.run("worktree", "list", "--porcelain", "-z"))
        if "bare" in first[:3] or not first:
            raise UsageError(f"{common} is a bare repository: it has no files to work on", hint="name a clone of it")
        repository = Repository(git, common, _main_tree(git, common, first[0].removeprefix(TREE)))
        if not repository.git.find("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
            raise UsageError(f"{repository.checkout} has no commit to begin from", hint="make one: git commit")
        return repository

    def resolve(self, ref: str) -> str:
        """Return the id of the commit that a name or an expression leads to. Raises ``UsageError`` for none."""
        found = self.git.find("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}") if ref else ""
        if not found:
            raise UsageError(f"{ref!r} names no commit of {self.checkout}", hint="list what there is: git log --all --oneline")
        return found

    def bind(self, run: str, base: str) -> Workspace:
        """Return the run's worktree on its branch ``run/RUN``, made from the commit ``base`` where there is none.

        What a killed process has left half made is made anew; a finished worktree stays as it is, with all that is in it.
        A branch without a worktree is checked out again. Nothing can be pushed from it. Waits for other processes that bind.
        Raises ``RunConflict`` where the branch belongs to something else.
        """
        checked_id(run)
        start = self.resolve(base)
        with hold(self.state / "worktrees.lock", patience=PATIENCE_SECONDS):
            place = bound_place(self.common, self.checkout, run)
            if place is None:
                place = self._made(run, start)
            finish(self.git, place)
        return Workspace(self.git, place)

    def release(self, run: str, *, keep_branch: bool = True) -> None:
        """Remove the run's worktree with all that is not committed in it; what is gone already does not matter."""
        with hold(self.state / "worktrees.lock", patience=PATIENCE_SECONDS):
            unbind(self.common, checked_id(run))
            if not keep_branch and self.git.find("rev-parse", "--verify", "--quiet", f"{BRANCHES}/{run}"):
                self.git.run("update-ref", "--no-deref", "-d", f"{BRANCHES}/{run}")

    def workspace(self, run: str) -> Workspace | None:
        """Return the worktree of a run that is bound, as it is; ``None`` where there is none."""
        place = bound_place(self.common, self.checkout, checked_id(run))
        return Workspace(self.git, place) if place else None

    def has_branch(self, run: str) -> bool:
        """Tell whether the branch of a run exists, or another one below it, which leaves no room for it."""
        return bool(self.git.find("for-each-ref", "--count=1", f"{BRANCHES}/{run}"))

    def check_branches(self) -> None:
        """Raise ``RunConflict`` where a branch ``run`` leaves no room for the branches of runs."""
        if self.git.find("rev-parse", "--verify", "--quiet", BRANCHES):
            raise RunConflict("the branch run leaves no room for branches run/RUN", hint="rename it: git branch -m run NAME")

    def worktrees(self) -> list[str]:
        """Return the ids of the runs that have a worktree, or what is left of one."""
        try:
            return sorted(entry.name for entry in (self.state / "worktrees").iterdir())
        except FileNotFoundError:
            return []

    def _made(self, run: str, start: str) -> Place:
        unbind(self.common, run)
        branch = f"{BRANCHES}/{run}"
        tip = self.git.find("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
        if tip and not self.git.answers("merge-base", "--is-ancestor", start, tip):
            raise RunConflict(
                f"the branch run/{run} exists and does not come from {start}", hint="rename or delete it: git branch"
            )
        if not tip:
            self.git.run("update-ref", branch, start, "")
        root = self.state / "worktrees" / run
        root.parent.mkdir(parents=True, exist_ok=True)
        reason = "an Evalwright run works here"
        self.git.run("worktree", "add", "--quiet", "--lock", "--reason", reason, str(root), f"run/{run}")
        git_dir = Path(os.fsdecode((root / ".git").read_bytes().removeprefix(b"gitdir: ").strip()))
        return Place(run=run, root=root, git_dir=git_dir, common=self.common, checkout=self.checkout)


def _main_tree(git: Git, common: Path, listed: str) -> Path:
    """Return the main work tree; for a submodule git lists its git directory instead."""
    if Path(listed).resolve() != common:
        return Path(listed).resolve()
    return Path(git.text("rev-parse", "--path-format=absolute", "--show-toplevel")).resolve()
