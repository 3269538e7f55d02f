"""A session that stands for another one: the base of whatever watches over a sandbox's session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.interfaces.plugin import Deadline
from evalwright.interfaces.sandbox import Command, Session
from evalwright.model import Completed

__all__ = ["ForwardingSession"]


class ForwardingSession(Session):
    """Passes everything on to ``inner``; a subclass overrides what it watches."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self.workspace = inner.workspace
        self.exchange = inner.exchange
        self.home = inner.home
        self.temporary = inner.temporary
        self.isolation = inner.isolation
        self.restored = inner.restored
        self.in_place = inner.in_place
        self.ending_seconds = inner.ending_seconds

    def execute(self, command: Command) -> Completed:
        """Run a command."""
        return self._inner.execute(command)

    def put(self, source: Path | bytes, to: PurePosixPath) -> None:
        """Place bytes or files inside."""
        self._inner.put(source, to)

    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        """Read a regular file."""
        return self._inner.get(path, max_bytes=max_bytes)

    def size(self, path: PurePosixPath) -> int | None:
        """Return a file's size."""
        return self._inner.size(path)

    def alive(self) -> bool:
        """Tell whether commands can still run."""
        return self._inner.alive()

    def kill(self, deadline: Deadline) -> None:
        """End every process."""
        self._inner.kill(deadline)

    def collect(self, deadline: Deadline) -> None:
        """Bring changes back."""
        self._inner.collect(deadline)
        self.restored = self._inner.restored

    def destroy(self, deadline: Deadline) -> None:
        """Release everything."""
        self._inner.destroy(deadline)

    def prompt(self) -> bool:
        """Tell what the inner session tells."""
        return self._inner.prompt()

    def account(self) -> Mapping[str, Any]:
        """Return what the inner session wants kept."""
        return self._inner.account()

    def inside(self, source: Path) -> PurePosixPath:
        """Return where a mount is seen."""
        return self._inner.inside(source)

    def address(self, port: int) -> str:
        """Return the address of a port inside."""
        return self._inner.address(port)
