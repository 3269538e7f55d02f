"""What a work tree has that its HEAD has not, read from the files: the index that an agent kept is not believed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evalwright_plugins.workflow.workspace.git import Git, GitError, paths

__all__ = ["submodules", "unlike_head"]

STATUS = (
    "status",
    "--porcelain=v1",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignored=no",
    "--ignore-submodules=dirty",
)
GIT_LINK = b"160000 "
MAX_LINK_BYTES = 8192


def unlike_head(git: Git, root: Path, modules: Sequence[str]) -> set[str]:
    """Return the paths whose files are not HEAD's: edited, deleted, untracked and not ignored, or staged otherwise.

    ``modules`` are the :func:`submodules` of HEAD, which count with what is inside of them. An index made for this from HEAD
    is compared, so marks such as ``assume-unchanged`` and forged times hide nothing. Raises :class:`GitError` where HEAD or
    its tree cannot be read.
    """
    found = set(
        paths(git.run("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", "HEAD"))
    )
    with tempfile.TemporaryDirectory(prefix="evalwright-index-") as place:
        fresh = git.within(GIT_INDEX_FILE=os.path.join(place, "index"))
        fresh.run("read-tree", "HEAD")
        found |= {entry[3:] for entry in paths(fresh.run(*STATUS))}
    for path in modules:
        if os.path.lexists(root / path / ".git"):
            found |= _in_submodule(git, root, path)
    return found


def submodules(git: Git) -> list[str]:
    """Return the paths of HEAD's submodules."""
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD").split(b"\0")
    return [os.fsdecode(entry.partition(b"\t")[2]) for entry in listed if entry.startswith(GIT_LINK)]


def _in_submodule(git: Git, root: Path, path: str) -> set[str]:
    """Return what is changed inside of one; a submodule that cannot be read is changed itself."""
    inside = root / path
    try:
        place = str(_git_directory(inside))
        below = git.within(str(inside), GIT_DIR=place, GIT_COMMON_DIR=None, GIT_WORK_TREE=str(inside))
        return {os.path.join(path, name) for name in unlike_head(below, inside, submodules(below))}
    except (GitError, OSError):
        return {path}


def _git_directory(inside: Path) -> Path:
    place = inside / ".git"
    if not place.is_file():
        return place
    with place.open("rb") as file:
        return inside / os.fsdecode(file.read(MAX_LINK_BYTES).removeprefix(b"gitdir: ").strip())
