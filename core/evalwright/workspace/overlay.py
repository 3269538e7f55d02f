"""A workspace that is an overlay on a shared base: made in a moment whatever its size, and its changes lie apart."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalwright.interfaces.ownership import give
from evalwright.model import Entry, Manifest
from evalwright.workspace.mounts import mount_overlay, unmount, unmount_below
from evalwright.workspace.scan import UnreadableError, display, entry_of, is_broken, scan
from evalwright.workspace.scratch import remove_tree

__all__ = ["Base", "Overlay", "can_overlay"]

OPAQUE = "trusted.overlay.opaque"
REDIRECT = "trusted.overlay.redirect"
MANY_USERS = 64


class Base:
    """A fixture's files, read by many overlays and written by none. ``manifest`` is what :func:`scan` says of it."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self.root = root
        self.manifest = manifest
        self.entries = {entry.raw_path: entry for entry in manifest.entries}
        self.links = [path for path, entry in self.entries.items() if entry.kind == "symlink"]
        self._users: set[Path] = set()
        self._many = MANY_USERS

    def serve(self, user: Path) -> None:
        """Note a workspace that lies on this base for as long as it is there."""
        self._users.add(user)
        if len(self._users) > self._many:
            self._many = MANY_USERS + 2 * len(self._living())

    @property
    def in_use(self) -> bool:
        """Tell whether a workspace that lies on this base is still there."""
        return bool(self._living())

    def _living(self) -> set[Path]:
        self._users = {path for path in self._users.copy() if path.is_dir()}
        return self._users


class Overlay:
    """An overlay mounted at ``target``. ``place`` is a new directory beside it, for what changes."""

    def __init__(self, base: Base, target: Path, place: Path, *, owner: int | None, below: Sequence[Path] = ()) -> None:
        self.base = base
        self.target = target
        self.layers = [*below, base.root]
        base.serve(target)
        self.upper, work = place / "u", place / "v"
        place.mkdir(mode=0o700)
        for directory in (self.upper, work):
            directory.mkdir(mode=0o700)
            give(directory, owner)
        _mount(target, self.layers, (self.upper, work))
        self._device = os.lstat(target).st_dev

    def freeze(self) -> None:
        """Make the workspace read-only, so that others can lie on top of it. Every process that used it must be dead."""
        if self.upper not in self.layers:
            unmount(self.target)
            self.layers.insert(0, self.upper)
            _mount(self.target, self.layers, None)
            self._device = os.lstat(self.target).st_dev

    def scan(self) -> Manifest:
        """Return what :func:`scan` of the workspace returns, reading only what changed. Raises ``UnreadableError``."""
        if not self._mounted():
            raise UnreadableError(["."])
        try:
            changes = _changes(os.fsencode(self.upper))
        except OSError:
            changes = None
        return self._merged(changes) if changes is not None else scan(self.target)

    def _mounted(self) -> bool:
        try:
            return os.lstat(self.target).st_dev == self._device
        except OSError:
            return False

    def _merged(self, changes: tuple[list[bytes], list[bytes]]) -> Manifest:
        present, gone = changes
        base, root = self.base, os.fsencode(self.target) + b"/"
        entries = base.entries
        if present or gone:
            entries = _without(entries, gone)
            entries |= _entries(root, present)
        links = [entries[path] for path in base.links if path in entries and entries[path].kind == "symlink"]
        turned = [link for link in links if link.broken != is_broken(root + link.raw_path)]
        if turned:
            entries = entries | {link.raw_path: replace(link, broken=not link.broken) for link in turned}
        if entries is base.entries:
            return base.manifest
        return Manifest(tuple(entries[path] for path in sorted(entries)))


def can_overlay(home: Path) -> bool:
    """Tell whether overlays can be mounted below ``home``; one is, and what it should do is looked at."""
    if os.geteuid() != 0:
        return False
    place = home / secrets.token_hex(8)
    try:
        return _behaves(place)
    except OSError:
        return False
    finally:
        unmount_below(place)
        remove_tree(place, inside=home)


def _behaves(place: Path) -> bool:
    lower, target = place / "l", place / "m"
    (lower / "d").mkdir(parents=True)
    target.mkdir()
    (lower / "f").write_bytes(b"below")
    overlay = Overlay(Base(lower, Manifest()), target, place / "o", owner=None)
    (target / "f").write_bytes(b"above")
    os.rename(target / "d", target / "moved")
    return (lower / "f").read_bytes() == b"below" and (overlay.upper / "f").read_bytes() == b"above"


def _mount(target: Path, lowers: Sequence[Path], changes: tuple[Path, Path] | None) -> None:
    """Mount; kernels before 5.10 do not know how to leave out what keeps data over a crash."""
    try:
        mount_overlay(target, lowers, changes, volatile=True)
    except OSError:
        if changes is None:
            raise
        mount_overlay(target, lowers, changes, volatile=False)


def _changes(upper: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """Return the paths that the upper directory holds, and those below which nothing of the base is left.

    ``None`` where a directory of the base was renamed: what it holds lies elsewhere.
    """
    present: list[bytes] = []
    gone: list[bytes] = []
    waiting = [upper]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for item in found:
                relative = item.path[len(upper) + 1 :]
                status = item.stat(follow_symlinks=False)
                if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                    gone.append(relative)
                    continue
                present.append(relative)
                if not stat.S_ISDIR(status.st_mode):
                    gone.append(relative)
                    continue
                waiting.append(item.path)
                attributes = os.listxattr(item.path, follow_symlinks=False)
                if REDIRECT in attributes:
                    return None
                if OPAQUE in attributes:
                    gone.append(relative)
    return present, gone


def _without(entries: dict[bytes, Entry], gone: Sequence[bytes]) -> dict[bytes, Entry]:
    """Return a copy without these paths and what lies below them."""
    kept = dict(entries)
    below: list[bytes] = []
    for path in gone:
        entry = kept.pop(path, None)
        if entry is not None and entry.kind == "directory":
            below.append(path + b"/")
    return {path: entry for path, entry in kept.items() if not path.startswith(tuple(below))} if below else kept


def _entries(root: bytes, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    found: dict[bytes, Entry] = {}
    unreadable: list[str] = []
    for path in paths:
        try:
            found[path] = entry = entry_of(root + path, path)
            if entry.kind == "directory" and entry.mode is not None and entry.mode & 0o700 != 0o700:
                os.chmod(root + path, entry.mode | 0o700)
        except OSError:
            unreadable.append(display(path))
    if unreadable:
        raise UnreadableError(sorted(unreadable))
    return found
