"""Reach a path below a directory without ever following a link: what lies there was written by an agent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path, PurePosixPath

__all__ = ["opened_parent"]

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened_parent(root: Path, path: PurePosixPath, *, make: bool = False, owner: int | None = None) -> Generator[int]:
    """Give a descriptor of the directory in which ``path``, relative to ``root``, lies; ``make`` creates what is missing.

    New directories belong to ``owner``. Raises ``OSError`` where a part of the way is a link or no directory.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in path.parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=descriptor)
                    if owner is not None:
                        os.chown(part, owner, owner, dir_fd=descriptor, follow_symlinks=False)
            below = os.open(part, DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
