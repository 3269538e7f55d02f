"""The workspace of a trial as the work tree of a run: the agents' own directory, and git's part in it under guard."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evalwright.errors import EvalwrightError
from evalwright.interfaces import give_tree
from evalwright_plugins.workflow.workspace import Execute, Git, Place, Proof, Workspace
from evalwright_plugins.workflow.workspace.git import paths

__all__ = ["Checkout", "RepositoryBroken"]

T = TypeVar("T")

GIT = ".git"
BRANCH = "refs/heads/main"
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "evalwright"), ("EMAIL", "evalwright@workflow.invalid"), ("DATE", "2000-01-01T00:00:00Z"))
}
"""Who commits the case as it was given, and when: always the same, so that its commit has the same name in every trial."""


class RepositoryBroken(EvalwrightError):
    """An agent has left something in the place of the repository that cannot be read without being led elsewhere."""

    code = "E_RUNNER_FAILED"


class Checkout(Workspace):
    """The workspace of one trial, whose repository lies in it; made where there is none, and removed again in the end.

    Agents see the files that any other agent of the suite would see, at the same path. Nobody else works here, so that no
    second work tree is needed. ``base`` is the commit of the case as it was given. Between two steps nothing changes: git is
    asked once, and again after :meth:`guard`.
    """

    def __init__(self, workspace: Path, run: str, execute: Execute) -> None:
        self._owner = owner if (owner := workspace.stat().st_uid) != os.geteuid() else None
        self._common = workspace / GIT
        self._made = not self._common.is_dir()
        self._known: dict[str, Any] = {}
        outside = Git(execute, str(workspace))
        if self._made:
            outside.run("init", "--quiet", "--template=")
        place = Place(run=run, root=workspace, git_dir=self._common, common=self._common, checkout=workspace)
        super().__init__(outside, place)
        if self._made:
            self.git.run("symbolic-ref", "HEAD", BRANCH)
        self.branch = self.git.find("symbolic-ref", "--quiet", "HEAD")
        self.base = self._committed_whole()
        self._given = set(self._untracked())
        self._directories = set(_directories(workspace))
        give_tree(self._common, self._owner)

    def head(self) -> str:
        """Return the commit that is checked out."""
        return self._once("head", super().head)

    def dirty(self) -> list[str]:
        """Return the paths that are not as HEAD has them."""
        return [path for path in self._once("dirty", super().dirty) if path != GIT]

    def diff_digest(self, base: str) -> str:
        """Return a digest of all that differs from a commit."""
        return self._once(f"diff {base}", partial(super().diff_digest, base))

    def proof(self, *, beside: Collection[str] = ()) -> Proof:
        """Return the proof of the workspace; git's own files count as far as they are refs and settings."""
        whole = super().proof(beside=beside)
        marks = {key: mark for key, mark in whole.marks.items() if not _twice(*key)}
        return Proof(marks, self.branch)

    def guard(self) -> None:
        """Look anew: remove locks of dead processes. Raises :class:`RepositoryBroken` for what leads out of the repository."""
        self._known.clear()
        if not stat.S_ISDIR(_mode(self._common)):
            raise _broken(f"{GIT} is no directory any more")
        _open(self._common)
        for directory, names, files in os.walk(self._common):
            for name in (*names, *files):
                path = Path(directory, name)
                mode = _mode(path)
                if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    raise _broken(f"{path.relative_to(self.place.root)} is neither a file nor a directory")
                if stat.S_ISREG(mode) and name.endswith(".lock"):
                    path.unlink()
        if (self._common / "objects" / "info" / "alternates").exists():
            raise _broken("the repository borrows objects from another one")

    def settle(self, candidate: str) -> None:
        """Leave the workspace as a commit has it: what is not committed is lost, and so is a repository that was made here.

        Files that git does not keep stay where the case had them. Raises :class:`GitError` and :class:`RepositoryBroken`.
        """
        try:
            self.guard()
            _open(self.place.root)
            self._check_out(candidate)
        finally:
            if self._made:
                _remove(self._common)
            give_tree(self.place.root, self._owner)

    def _once(self, name: str, ask: Callable[[], T]) -> T:
        if name not in self._known:
            self._known[name] = ask()
        found: T = self._known[name]
        return found

    def _committed_whole(self) -> str:
        """Return a commit that has everything: HEAD, or one on top of it where the case came with changes."""
        head = self.git.find("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if head and not self.dirty():
            return head
        self.git.run("add", "--all")
        writer = self.git.within(**AUTHOR)
        parents = ["-p", head] if head else []
        commit = writer.text("commit-tree", self.git.text("write-tree"), *parents, "-m", "The case as it was given")
        self.git.run("update-ref", "HEAD", commit)
        self._known.clear()
        return commit

    def _check_out(self, candidate: str) -> None:
        (self._common / "index").unlink(missing_ok=True)
        if self.branch:
            self.git.run("symbolic-ref", "HEAD", self.branch)
            self.git.run("update-ref", self.branch, candidate)
        else:
            self.git.run("update-ref", "--no-deref", "HEAD", candidate)
        self.git.run("read-tree", candidate)
        self.git.answers("update-index", "-q", "--refresh")
        self.git.run("reset", "--hard", "--quiet", candidate)
        for path in self._untracked():
            if path not in self._given:
                _remove(self.place.root / path)
        tracked = {parent for path in self._tracked() for parent in _parents(path)}
        for path in sorted(set(_directories(self.place.root)) - self._directories - tracked, reverse=True):
            with contextlib.suppress(OSError):
                (self.place.root / path).rmdir()

    def _untracked(self) -> list[str]:
        listed = [path.rstrip("/") for path in paths(self.git.run("ls-files", "--others", "-z"))]
        return [*listed, *_specials(self.place.root)]

    def _tracked(self) -> list[str]:
        return paths(self.git.run("ls-files", "-z"))


def _twice(area: str, name: str) -> bool:
    """Tell whether a mark is of git's own files, or of the main checkout, which is the work tree once more."""
    return area.endswith("main checkout") or (area == "worktree" and (name == GIT or name.startswith(f"{GIT}/")))


def _directories(root: Path) -> Iterator[str]:
    """Yield every directory below one, git's own left out."""
    for directory, names, _ in os.walk(root):
        if directory == str(root) and GIT in names:
            names.remove(GIT)
        yield from (os.path.relpath(os.path.join(directory, name), root) for name in names)


def _specials(root: Path) -> Iterator[str]:
    """Yield what is neither a file nor a link nor a directory: git does not see it."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            if not (stat.S_ISREG(mode := _mode(path)) or stat.S_ISLNK(mode)):
                yield str(path.relative_to(root))


def _parents(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _remove(path: Path) -> None:
    """Remove a file, a link, or a directory with all that is in it, whatever its permissions; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    _open(path)
    shutil.rmtree(path)


def _open(root: Path) -> None:
    """Open a directory and every one below it to the owner, whatever an agent has made of them; links are not followed."""
    _open_one(root)
    for directory, names, _ in os.walk(root):
        for name in names:
            _open_one(Path(directory, name))


def _open_one(path: Path) -> None:
    mode = _mode(path)
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        path.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def _broken(what: str) -> RepositoryBroken:
    return RepositoryBroken(f"the repository in the workspace was broken: {what}", hint="agents commit, and leave .git alone")
