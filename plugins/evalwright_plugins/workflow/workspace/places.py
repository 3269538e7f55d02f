"""Where things lie in a repository: its git directory, the state of runs in it, and the worktree of one run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from evalwright.errors import UsageError

__all__ = ["BRANCHES", "Place", "checked_id"]

BRANCHES = "refs/heads/run"
RUN_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the worktree of one run lies.

    ``root`` is the work tree, ``git_dir`` its own part of the git directory ``common``, ``checkout`` the main work tree.
    """

    run: str
    root: Path
    git_dir: Path
    common: Path
    checkout: Path

    @property
    def branch(self) -> str:
        """Return the full name of the run's branch."""
        return f"{BRANCHES}/{self.run}"

    @property
    def state(self) -> Path:
        """Return the directory in which the state of all runs lies."""
        return self.common / "evalwright"

    @property
    def link(self) -> bytes:
        """Return what the file ``.git`` of the worktree holds."""
        return f"gitdir: {self.git_dir}\n".encode()


def checked_id(run: str) -> str:
    """Return the id of a run that can be part of a branch's and of a file's name. Raises ``UsageError`` for any other."""
    if RUN_ID.fullmatch(run) and not run.endswith((".", ".lock")):
        return run
    raise UsageError(
        f"{run!r} cannot be the id of a run",
        hint="use up to 100 letters, digits, dots, dashes and underscores; begin with a letter",
    )
