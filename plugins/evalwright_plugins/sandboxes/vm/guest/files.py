"""What the host looks at in the guest: single regular files, found without following a link out, and processes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.guest import run, wire
    from evalwright_plugins.sandboxes.vm.guest.loop import Loop
else:
    import run
    import wire


class Read:
    """Sends a file's first bytes."""

    def __init__(self, agent: Loop, stream: int, request: Any) -> None:
        self.agent = agent
        self.stream = stream
        self.left: int = request["max_bytes"]
        self.window = wire.WINDOW
        self.file = -1
        agent.jobs[stream] = self
        try:
            self.file = os.open(place_of(request["path"]), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            self.problem = 0 if stat.S_ISREG(os.fstat(self.file).st_mode) else errno.EINVAL
        except OSError as error:
            self.problem = error.errno or errno.EIO

    def tick(self) -> float | None:
        """Send what the window allows."""
        while self.left > 0 and self.problem == 0:
            if self.window <= 0:
                return None
            data = os.read(self.file, min(wire.CHUNK, self.window, self.left))
            if not data:
                break
            self.left -= len(data)
            self.window -= len(data)
            self.agent.send(wire.DATA, self.stream, data)
        self.drop()
        self.agent.done(self.stream, {"errno": self.problem})
        return None

    def credit(self, count: int) -> None:
        """Send on."""
        self.window += count

    def drop(self) -> None:
        """Close the file."""
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def data(self, payload: bytes) -> None:
        """Take nothing."""

    def end(self) -> None:
        """Take nothing."""

    def signal(self, number: int) -> None:
        """Take nothing."""


def size(request: Any) -> dict[str, Any]:
    """Return a file's size in bytes, links not followed; ``None`` for what is not there."""
    try:
        return {"size": os.lstat(place_of(request["path"])).st_size}
    except OSError:
        return {"size": None}


def place_of(path: str) -> str:
    """Return the real place of a path inside; its last part is not resolved. ``OSError`` when its directory lies outside."""
    parent = os.path.realpath(os.path.dirname(path))
    if not any(parent == root or parent.startswith(f"{root}/") for root in run.ROOTS):
        raise PermissionError(errno.EACCES, f"{path} leads out of the workspace")
    return os.path.join(parent, os.path.basename(path))


def processes_with(variable: bytes) -> list[int]:
    """Return the processes whose environment holds ``NAME=value``."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/environ", "rb") as file:
                    if variable in file.read().split(b"\0"):
                        found.append(int(name))
    return found
