"""One work tree: what is committed in it, what is not, and what it differs in from where the run began."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from evalwright.errors import EvalwrightError, UsageError
from evalwright_plugins.workflow.workspace.files import mark_of, marks_below, read_small
from evalwright_plugins.workflow.workspace.git import Git, paths, printable
from evalwright_plugins.workflow.workspace.places import Place
from evalwright_plugins.workflow.workspace.proof import Proof, proof_of
from evalwright_plugins.workflow.workspace.status import submodules, unlike_head

__all__ = ["CandidateUnfit", "Workspace"]

SHOWN_PATHS = 5
COMMIT = re.compile(rb"[0-9a-f]{40,64}\n")
UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")


class CandidateUnfit(EvalwrightError):
    """The work tree holds no candidate: no clean commit at the tip of the run's branch."""

    code = "E_CASE_INVALID"
    exit_code = 1


class Workspace:
    """The worktree of one run. ``git`` says how git is started; which repository it reads is settled by ``place`` alone.

    Nothing that lies in the worktree, such as another ``.git``, leads it elsewhere. Paths are relative to the worktree;
    bytes that are not UTF-8 are surrogates, as ``os.fsdecode`` has it. Every method raises :class:`GitError` where git fails.
    """

    def __init__(self, git: Git, place: Place) -> None:
        self.place = place
        self.branch = place.branch
        self.git = git.within(
            str(place.root),
            GIT_DIR=str(place.git_dir),
            GIT_COMMON_DIR=str(place.common),
            GIT_WORK_TREE=str(place.root),
        )
        self._main = git.within(str(place.checkout), GIT_DIR=str(place.common), GIT_WORK_TREE=str(place.checkout))
        self._head: tuple[tuple[bytes, bytes], str] | None = None
        self._submodules: tuple[str, list[str]] | None = None

    def head(self) -> str:
        """Return the commit that is checked out; git is asked once for as long as the files say the same."""
        said = self._said()
        if said is None or self._head is None or self._head[0] != said:
            found = self.git.text("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")
            if said is None:
                return found
            self._head = said, found
        return self._head[1]

    def tree(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self.git.text("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")

    def dirty(self) -> list[str]:
        """Return the paths that are not as HEAD has them: edited, staged, deleted, or untracked and not ignored."""
        head = self.head()
        if self._submodules is None or self._submodules[0] != head:
            self._submodules = head, submodules(self.git)
        found = unlike_head(self.git, self.place.root, self._submodules[1])
        if not self._linked():
            found.add(".git")
        return sorted(found)

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Tell whether ``of`` has ``commit`` in its history, or is it. A commit that is not there is nobody's ancestor."""
        known = self.git.find("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
        return bool(known) and self.git.answers("merge-base", "--is-ancestor", known, of)

    def candidate(self) -> str:
        """Return HEAD, read back from git with its whole tree. Raises :class:`CandidateUnfit` that says why there is none."""
        unfinished = [name for name in UNFINISHED if os.path.lexists(self.place.git_dir / name)]
        if unfinished:
            raise CandidateUnfit(
                f"the worktree is in the middle of a git operation ({unfinished[0]})", hint="finish or abort it"
            )
        at = self.git.find("symbolic-ref", "--quiet", "HEAD")
        if at != self.branch:
            where = f"on {printable(at)}" if at else "on no branch"
            raise CandidateUnfit(f"the worktree is {where}", hint=f"commit to {self.branch.removeprefix('refs/heads/')}")
        dirty = self.dirty()
        if dirty:
            more = f" and {len(dirty) - SHOWN_PATHS} more" if len(dirty) > SHOWN_PATHS else ""
            shown = ", ".join(map(printable, dirty[:SHOWN_PATHS]))
            raise CandidateUnfit(f"not committed: {shown}{more}", hint="commit it, remove it, or let .gitignore name it")
        head = self.head()
        self.git.run("rev-list", "--objects", "--no-walk", "--quiet", head)
        return head

    def changed(self, base: str) -> list[str]:
        """Return the paths that differ between ``base`` and the worktree, committed or not; both sides of every rename."""
        return sorted(set(self._committed(base)) | set(self.dirty()))

    def out_of_scope(self, base: str, prefixes: Sequence[str], *, since: Proof | None = None) -> list[str]:
        """Return the changed paths that lie below none of ``prefixes`` (whole components; ``.`` is everything).

        With a proof taken before the step, ignored files that have changed since count too. Raises ``UsageError`` for a
        prefix that is absolute or leads out.
        """
        allowed = [_prefix(prefix) for prefix in prefixes]
        found = set(self.changed(base))
        if since:
            found |= set(since.files(self.proof()))
        return sorted(path for path in found if not any(PurePosixPath(path).is_relative_to(prefix) for prefix in allowed))

    def diff_digest(self, base: str) -> str:
        """Return a digest of all that differs from ``base``: names, modes and content, committed or not."""
        committed = self.git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, "HEAD")
        content = hashlib.sha256(committed)
        for path in self.dirty():
            whole = str(self.place.root / path)
            for below, mark in [("", mark_of(whole)), *marks_below(whole)]:
                content.update(b"\0\0" + os.fsencode(os.path.join(path, below)) + b"\0" + mark.encode())
        return f"sha256:{content.hexdigest()}"

    def newest_reviewed(self, reviewed: Sequence[str]) -> tuple[str, str] | None:
        """Return the last of ``reviewed`` (oldest first) that is in HEAD's history, and the range from it to HEAD."""
        head = self.head()
        found = next((commit for commit in reversed(reviewed) if self.is_ancestor(commit, head)), None)
        return (found, f"{found}..{head}") if found else None

    def proof(self, *, beside: Collection[str] = ()) -> Proof:
        """Return the proof of what is there now; see :class:`Proof`. Reads every file of the worktree and the main checkout.

        ``beside`` names runs that are driven at the same time, whose branches may move.
        """
        return proof_of(self.git, self._main, self.place, beside)

    def _said(self) -> tuple[bytes, bytes] | None:
        """Return HEAD and the branch as their files have them, ``None`` where they are kept in another way.

        A branch's own file counts before the packed one; see gitrepository-layout(5).
        """
        head, branch = read_small(str(self.place.git_dir / "HEAD")), read_small(str(self.place.common / self.branch))
        if head is None or branch is None or not COMMIT.fullmatch(branch):
            return None
        return (head, branch) if head == f"ref: {self.branch}\n".encode() else None

    def _committed(self, base: str) -> list[str]:
        return paths(self.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, "HEAD"))

    def _linked(self) -> bool:
        """Tell whether the worktree's ``.git`` is what the binding wrote, so that others see the repository that we see."""
        place = self.place.root / ".git"
        link = self.place.link
        same_size = not place.is_symlink() and place.is_file() and place.stat().st_size == len(link)
        return same_size and place.read_bytes() == link


def _prefix(prefix: str) -> PurePosixPath:
    path = PurePosixPath(prefix)
    if path.is_absolute() or ".." in path.parts or "\0" in prefix or not prefix:
        raise UsageError(f"the scope {prefix!r} does not lie in the repository", hint="use a path relative to its root")
    return path
