"""Check a fixture before any run: what could not be copied faithfully, or would lead out of the suite."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from evalwright.workspace.scan import display

__all__ = ["fixture_problems"]


def fixture_problems(root: Path) -> Iterator[tuple[str, str]]:
    """Yield ``(path, what is wrong)`` for links that lead out of the fixture, FIFOs, sockets, devices and unreadables.

    A link may be dangling inside the fixture, but not lead above it and not point at one of its own parents.
    """
    base = os.fsencode(os.path.realpath(root))
    waiting = [base]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError as error:
            yield display(directory[len(base) + 1 :]) or ".", f"cannot be read: {error.strerror}"
            continue
        for item in items:
            relative = item.path[len(base) + 1 :]
            mode = item.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                waiting.append(item.path)
            elif why := _objection(base, item.path, mode):
                yield display(relative), why


def _objection(base: bytes, path: bytes, mode: int) -> str | None:
    if stat.S_ISLNK(mode) and os.path.basename(path) == b".git":
        return "is a link to a git directory; put the repository itself there"
    if stat.S_ISLNK(mode):
        return _link_objection(base, path)
    if not stat.S_ISREG(mode):
        return "is neither a file, a directory nor a link"
    if os.path.basename(path) == b".git":
        return "is a pointer to a git directory elsewhere; put a full repository into the fixture"
    return None if os.access(path, os.R_OK) else "cannot be read"


def _link_objection(base: bytes, path: bytes) -> str | None:
    target = os.readlink(path)
    shown = display(target)
    if os.path.isabs(target):
        return f"is a link to the absolute path {shown}"
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError:
        return f"is a link that goes in circles: {shown}"
    parent = os.path.dirname(path)
    aim = os.path.normpath(os.path.join(parent, target))
    resolved = os.path.realpath(path)
    for place in (aim, resolved):
        if place != base and not place.startswith(base + b"/"):
            return f"is a link that leads out of the fixture: {shown}"
    if (parent + b"/").startswith(resolved + b"/"):
        return f"is a link to a directory that contains it: {shown}"
    return None
