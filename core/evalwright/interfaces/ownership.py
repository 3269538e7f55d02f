"""Whose files a trial's are: those of the user that its commands run as."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["give", "give_tree"]


def give(path: str | bytes | Path | int, owner: int | None) -> None:
    """Make a path, or an open file, belong to a user and the group of the same number; ``None`` leaves it as it is.

    A link itself changes hands, never what it leads to. Raises ``PermissionError`` where only root may do that.
    """
    if owner is None:
        return
    if isinstance(path, int):
        os.fchown(path, owner, owner)
    else:
        os.lchown(path, owner, owner)


def give_tree(root: Path, owner: int | None) -> None:
    """Make a file, or a directory and everything below it, belong to a user, as :func:`give` does; links are not followed."""
    if owner is None:
        return
    give(os.fsencode(root), owner)
    waiting = [os.fsencode(root)] if root.is_dir() and not root.is_symlink() else []
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for item in found:
                if item.stat(follow_symlinks=False).st_uid != owner:
                    give(item.path, owner)
                if item.is_dir(follow_symlinks=False):
                    waiting.append(item.path)
