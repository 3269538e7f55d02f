"""A session whose workspace is a directory of this host: everything but running the command."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import ClassVar, Protocol

from evalwright.errors import SandboxError
from evalwright.interfaces._beneath import opened_parent
from evalwright.interfaces.plugin import Deadline
from evalwright.interfaces.sandbox import SandboxRequest, Session

__all__ = ["Killable", "LocalSession"]


class Killable(Protocol):
    """A running command that another thread can end."""

    def kill(self) -> None:
        """End it and everything it started."""
        ...


class LocalSession(Session):
    """Implements all of :class:`Session` but ``execute`` for a workspace that lies on this host.

    A subclass whose commands see other paths overrides ``workspace`` and ``exchange`` and translates in ``execute``.
    ``user`` is whom commands run as where that is not this process's user: what is put inside becomes that user's.
    A request with a writable mount is refused with ``SandboxError`` unless a subclass sets ``writable_mounts``.
    """

    user: int | None = None
    in_place = True
    writable_mounts: ClassVar[bool] = False

    def __init__(self, request: SandboxRequest) -> None:
        written = next((mount for mount in request.mounts if mount.writable), None)
        if written and not self.writable_mounts:
            raise SandboxError(
                f"{written.source} cannot be mounted writable in this sandbox",
                hint='use one with the capability "writable-mounts", such as bubblewrap',
            )
        self.request = request
        self.workspace = PurePosixPath(request.workspace)
        self.exchange = PurePosixPath(request.exchange)
        self._live: set[Killable] = set()
        self._idle = threading.Condition()
        self._killed = False

    @contextlib.contextmanager
    def running(self, process: Killable) -> Generator[None]:
        """Keep ``process`` reachable for :meth:`kill` while the block runs."""
        with self._idle:
            self._live.add(process)
            killed = self._killed
        if killed:
            process.kill()
        try:
            yield
        finally:
            with self._idle:
                self._live.discard(process)
                self._idle.notify_all()

    def host_path(self, path: PurePosixPath) -> Path:
        """Return the host's path of one that commands see. ``SandboxError`` when it is in neither directory."""
        absolute = os.path.normpath(os.path.join(self.workspace, path))
        for inside, outside in ((self.workspace, self.request.workspace), (self.exchange, self.request.exchange)):
            below = _below(absolute, str(inside))
            if below is not None:
                return outside / below
        raise SandboxError(f"{path} is outside the workspace", hint="use a path inside it")

    def directory(self, cwd: str | None) -> Path:
        """Return the host's directory in which a command shall run. ``SandboxError`` when it leads out, by a link too."""
        if cwd is None:
            return self.request.workspace
        place = self.host_path(PurePosixPath(cwd))
        roots = (self.request.workspace.resolve(), self.request.exchange.resolve())
        if not any(place.resolve().is_relative_to(root) for root in roots):
            raise SandboxError(f"{cwd} leads out of the workspace", hint="use a directory inside it")
        return place

    def put(self, source: Path | bytes, to: PurePosixPath) -> None:
        """Write bytes, or copy a file or directory of the host, to a path inside.

        A link at the path itself is replaced; one on the way to it is an ``OSError``.
        """
        root, relative = self._located(to)
        with opened_parent(root, relative, make=True, owner=self.user) as parent:
            name = relative.name or "."
            if isinstance(source, Path) and source.is_dir() and not source.is_symlink():
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=parent)
                entries = list(source.iterdir())
            else:
                _write(source, name, parent)
                entries = []
            if self.user is not None:
                os.chown(name, self.user, self.user, dir_fd=parent, follow_symlinks=False)
        for entry in entries:
            self.put(entry, to / entry.name)

    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        """Read a regular file; no component is followed as a link, and a FIFO never blocks."""
        root, relative = self._located(path)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with opened_parent(root, relative) as parent:
            descriptor = os.open(relative.name, flags, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{path} is not a regular file")
            return file.read(max_bytes)

    def size(self, path: PurePosixPath) -> int | None:
        """Return a file's size; links are not followed."""
        root, relative = self._located(path)
        try:
            with opened_parent(root, relative) as parent:
                return os.stat(relative.name, dir_fd=parent, follow_symlinks=False).st_size
        except OSError:
            return None

    def alive(self) -> bool:
        """Tell whether :meth:`kill` has not been called."""
        return not self._killed

    def kill(self, deadline: Deadline) -> None:
        """End every running command and wait until each has been reaped."""
        with self._idle:
            self._killed = True
            live = list(self._live)
        for process in live:
            process.kill()
        with self._idle:
            if not self._idle.wait_for(lambda: not self._live, deadline.remaining):
                raise TimeoutError(f"{len(self._live)} commands are still running")

    def collect(self, deadline: Deadline) -> None:
        """Do nothing: changes are already on the host."""

    def destroy(self, deadline: Deadline) -> None:
        """Do nothing: the directories belong to the caller."""

    def prompt(self) -> bool:
        """Tell that these methods return in time, unless a subclass has its own."""
        own = type(self)
        return (own.kill, own.collect, own.destroy) == (LocalSession.kill, LocalSession.collect, LocalSession.destroy)

    def _located(self, path: PurePosixPath) -> tuple[Path, PurePosixPath]:
        """Return the directory of the host below which no link may be followed on the way to a path, and the way."""
        place = self.host_path(path)
        for root in (self.request.workspace, self.request.exchange):
            below = _below(str(place), str(root))
            if below is not None:
                return root, PurePosixPath(below)
        return Path(place.anchor), PurePosixPath(place.relative_to(place.anchor))


def _below(path: str, directory: str) -> str | None:
    """Return a normal path relative to the directory that it lies in, ``None`` when it lies elsewhere."""
    if path == directory:
        return ""
    return path[len(directory) + 1 :] if path.startswith(f"{directory}/") else None


def _write(source: Path | bytes, name: str, parent: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
    if isinstance(source, Path) and source.is_symlink():
        os.symlink(os.readlink(source), name, dir_fd=parent)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o644 if isinstance(source, bytes) else stat.S_IMODE(source.stat().st_mode)
    with os.fdopen(os.open(name, flags, mode, dir_fd=parent), "wb") as target:
        if isinstance(source, bytes):
            target.write(source)
            return
        with source.open("rb") as file:
            shutil.copyfileobj(file, target)
        os.fchmod(target.fileno(), mode)
