"""Where trials live on disk: outside every run directory, under names that tell nothing, gone when they are over."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evalwright.processes import ProcessIdentity, boot_id, current_process
from evalwright.workspace.mounts import MountTable, mounts_below, unmount_below

__all__ = [
    "Scratch",
    "TrialPlace",
    "clear_abandoned",
    "clear_scratch",
    "force_remove",
    "left_scratch",
    "owned_name",
    "remove_tree",
]

MEMORY_DISK = Path("/dev/shm")
LONG_PATH = 1000
ROOM_FACTOR = 16
ROOM_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class TrialPlace:
    """The private directories of one trial: workspace ``w``, exchange ``x``, home ``h``, temporary files ``t``.

    ``owner`` is the user id that commands run as, and whose they are, where that is not the harness's own.
    """

    root: Path
    owner: int | None = None
    workspace: Path = field(init=False)
    exchange: Path = field(init=False)

    def __post_init__(self) -> None:
        """Name the directories that are asked for again and again."""
        object.__setattr__(self, "workspace", self.root / "w")
        object.__setattr__(self, "exchange", self.root / "x")

    @property
    def home(self) -> Path:
        """Return the home directory of the trial's commands."""
        return self.root / "h"

    @property
    def temporary(self) -> Path:
        """Return where the trial's commands put temporary files."""
        return self.root / "t"

    def make(self) -> None:
        """Make the directories, which belong to ``owner`` where one is named."""
        root = str(self.root)
        os.mkdir(root, 0o711)
        for name in "wxht":
            os.mkdir(f"{root}/{name}", 0o700)
            if self.owner is not None:
                os.chown(f"{root}/{name}", self.owner, self.owner)


class Scratch:
    """This process's directories for trials, removed by :meth:`close`; what a dead process left is removed on creation.

    ``base`` is the user's choice (``EVALWRIGHT_WORKSPACES``); without one a memory disk is used for fixtures that it can
    hold sixteen times, else the temporary directory.
    """

    def __init__(self, base: Path | None = None) -> None:
        self._base = base
        self._owner = owned_name()
        self._homes: dict[Path, Path] = {}
        self._mounts = MountTable()

    def place(self, size_bytes: int, *, owner: int | None = None) -> TrialPlace:
        """Make the directories of one trial whose fixture has that size; they belong to ``owner`` where one is named."""
        home = self._home(self._base or _roomy(size_bytes))
        place = TrialPlace(home / secrets.token_hex(8), owner)
        place.make()
        return place

    def discard(self, place: TrialPlace) -> None:
        """Remove a trial's directories, which :meth:`place` made, and nothing that is mounted there."""
        self._mounts.unmount_below(place.root)
        force_remove(place.root)

    def close(self) -> None:
        """Remove everything that this process made."""
        for home in self._homes.values():
            with contextlib.suppress(OSError):
                self._mounts.unmount_below(home)
                remove_tree(home, inside=home.parent)
        self._homes.clear()
        self._mounts.close()

    def _home(self, base: Path) -> Path:
        if base not in self._homes:
            family = _family(base)
            family.mkdir(mode=0o711, parents=True, exist_ok=True)
            if family.stat().st_uid != os.getuid():
                raise PermissionError(f"{family} belongs to somebody else")
            clear_abandoned(family)
            home = family / self._owner
            home.mkdir(mode=0o711, exist_ok=True)
            self._homes[base] = home
        return self._homes[base]


def remove_tree(path: Path, *, inside: Path) -> None:
    """Remove a directory tree that must lie inside ``inside``, whatever permissions its files have.

    Raises ``ValueError`` when it lies elsewhere: nothing is ever deleted outside our own directories.
    """
    resolved, limit = path.parent.resolve() / path.name, inside.resolve()
    if limit not in resolved.parents:
        raise ValueError(f"refusing to delete {path}: it is not inside {inside}")
    if resolved.is_symlink() or not resolved.exists():
        return
    force_remove(resolved)


def force_remove(root: Path) -> None:
    """Remove a directory tree, whatever permissions its files have and however deep it is; links are not followed.

    What lies so deep that its path gets long is moved up to the root first.
    """
    longest = len(os.fsencode(root)) + LONG_PATH
    waiting = [str(root)]
    while waiting:
        directory = waiting[-1]
        below = _emptied(directory)
        if not below:
            waiting.pop()
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(directory)
        elif len(os.fsencode(directory)) < longest:
            waiting += below
        else:
            for deep in below:
                shallow = f"{root}/{secrets.token_hex(16)}"
                os.rename(deep, shallow)
                waiting.insert(1, shallow)


def _emptied(directory: str) -> list[str]:
    """Remove what is no directory from one, and what is an empty one; return the other directories in it."""
    below: list[str] = []
    try:
        mode = os.lstat(directory).st_mode
        if mode & 0o700 != 0o700:
            os.chmod(directory, stat.S_IMODE(mode) | 0o700)
        found = os.scandir(directory)
    except FileNotFoundError:
        return below
    with found:
        for item in found:
            try:
                if item.is_dir(follow_symlinks=False):
                    os.rmdir(item.path)
                else:
                    os.unlink(item.path)
            except FileNotFoundError:
                continue
            except OSError:
                if not item.is_dir(follow_symlinks=False):
                    raise
                below.append(item.path)
    return below


def _roomy(size_bytes: int) -> Path:
    try:
        room = os.statvfs(MEMORY_DISK)
    except OSError:
        return Path(tempfile.gettempdir())
    free = room.f_bavail * room.f_frsize
    usable = not room.f_flag & os.ST_NOEXEC and os.access(MEMORY_DISK, os.W_OK)
    if usable and free >= max(ROOM_BYTES, size_bytes * ROOM_FACTOR):
        return MEMORY_DISK
    return Path(tempfile.gettempdir())


def owned_name() -> str:
    """Return a name that tells which process a directory belongs to, so that it can be removed once that is dead."""
    me = current_process()
    return f"{me.pid}-{me.start_time}-{_pid_namespace()}"


def clear_abandoned(directory: Path) -> None:
    """Remove everything in a directory whose name begins with an :func:`owned_name` of a dead process.

    What is still mounted there is unmounted first. Raises ``OSError`` rather than delete through a mount.
    """
    for candidate in _abandoned(directory):
        unmount_below(candidate)
        remove_tree(candidate, inside=directory)


def _abandoned(directory: Path) -> Iterator[Path]:
    host = current_process().host
    for candidate in sorted(directory.iterdir()) if directory.is_dir() else ():
        parts = candidate.name.split("-")[:3]
        if len(parts) < 3 or not all(part.isdigit() for part in parts) or int(parts[2]) != _pid_namespace():
            continue
        owner = ProcessIdentity(pid=int(parts[0]), start_time=int(parts[1]), boot_id=boot_id(), host=host)
        if not owner.alive:
            yield candidate


def clear_scratch(base: Path | None) -> None:
    """Remove what dead processes left where trials may have lived."""
    for family in _families(base):
        clear_abandoned(family)


def left_scratch(base: Path | None) -> list[tuple[Path, int]]:
    """Return the directories that dead processes left where trials may have lived, and how many mounts are in each."""
    return [(place, len(mounts_below(place))) for family in _families(base) for place in _abandoned(family)]


def _families(base: Path | None) -> list[Path]:
    return [_family(place) for place in sorted({base} if base else {MEMORY_DISK, Path(tempfile.gettempdir())})]


def _family(base: Path) -> Path:
    return base / f"evalwright-{os.getuid()}"


def _pid_namespace() -> int:
    """Return which pids are meant: containers that share a disk number their processes each for itself."""
    return os.stat("/proc/self/ns/pid").st_ino
