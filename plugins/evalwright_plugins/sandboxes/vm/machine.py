"""One virtual machine: its process, its channel, and its end, whoever brings that about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import BoundedOutput, Command, Deadline
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm.channel import Channel, Stream
from evalwright_plugins.sandboxes.vm.place import discard_place
from evalwright_plugins.sandboxes.vm.qemu import AGENT_SOCKET, MONITOR_SOCKET
from evalwright_plugins.sandboxes.vm.qmp import Monitor, connect

__all__ = ["Machine", "MachineKilled"]

CONSOLE_BYTES = 1 << 16
SHOWN_CHARACTERS = 600
PANIC = "Kernel panic"
GRACE_SECONDS = 0.2
ENDING_SECONDS = 5.0
WORD_SECONDS = 2.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class MachineKilled(SandboxLost):
    """A signal ended QEMU that nobody here sent: another attempt may meet better luck, on the same hardware."""


class Machine:
    """A QEMU process in a directory of its own, which goes with it. Thread-safe.

    ``accept`` is told of the connections that the guest makes to the host's endpoints. Whoever waits for a machine that
    ends, by its own doing or by somebody else's, gets ``SandboxLost``.
    """

    def __init__(
        self,
        argv: Sequence[str],
        place: Path,
        supervisor: Supervisor,
        *,
        silence: float,
        accept: Callable[[Stream, Mapping[str, Any]], None],
        deadline: Deadline,
    ) -> None:
        self.place = place
        self.pid: int | None = None
        self._channel: Channel | None = None
        self._completed: Completed | None = None
        self._ended = threading.Event()
        self._stopping = False
        env = {"PATH": PATH}
        self._process = supervisor.start(
            Command(argv=argv, cwd=str(place), env=env, grace=GRACE_SECONDS, capture=_console, on_start=self._started)
        )
        threading.Thread(target=self._attend, name="evalwright-vm", daemon=True).start()
        try:
            connection = connect(place / AGENT_SOCKET, self.running, deadline)
            self._channel = Channel(connection, silence=silence, accept=accept, on_lost=self._lost)
        except SandboxError as error:
            kind = MachineKilled if self.killed else SandboxError
            self.stop(Deadline.after(WORD_SECONDS))
            raise kind(f"{error.message}: {self.last_words()}", hint="evalwright doctor") from error

    @property
    def channel(self) -> Channel:
        """Return the channel to the guest."""
        if self._channel is None:
            raise SandboxLost("the virtual machine was never there")
        return self._channel

    @property
    def killed(self) -> bool:
        """Tell whether a signal ended it that :meth:`stop` did not send; waits a moment for a machine that is about to end."""
        ended = self._ended.wait(ENDING_SECONDS)
        return ended and not self._stopping and self._completed is not None and self._completed.signal is not None

    def monitor(self, deadline: Deadline) -> Monitor:
        """Connect to the machine's monitor. Raises ``SandboxError``."""
        return Monitor(connect(self.place / MONITOR_SOCKET, self.running, deadline), deadline)

    def ready(self, deadline: Deadline) -> None:
        """Wait for the guest's agent. Raises ``SandboxLost`` with the machine's last words when it does not come."""
        if not self.channel.ready(deadline):
            why = "ended" if not self.running() else "did not come up in time"
            kind = MachineKilled if self.killed else SandboxLost
            self.stop(Deadline.after(WORD_SECONDS))
            raise kind(f"the guest {why}: {self.last_words()}", hint="is the machine overloaded? evalwright doctor")

    def running(self) -> bool:
        """Tell whether the process is there."""
        return not self._ended.is_set()

    def stop(self, deadline: Deadline) -> None:
        """End the machine and remove its directory; a second time does no harm. ``TimeoutError`` when it does not end."""
        self._stopping = True
        self._process.kill()
        if not self._ended.wait(deadline.remaining):
            raise TimeoutError(f"QEMU (process {self.pid}) is still running")
        if self._channel:
            self._channel.fail("the virtual machine was ended")
            self._channel.close()
        discard_place(self.place)

    def last_words(self) -> str:
        """Return why the guest's kernel panicked, or the end of what the machine said before it ended."""
        self._ended.wait(WORD_SECONDS)
        if self._completed is None:
            return "it is still running"
        streams = (self._completed.stderr, self._completed.stdout)
        said = [(stream.head + stream.tail).decode("utf-8", "replace").strip() for stream in streams]
        panic = [line.strip() for text in said for line in text.splitlines() if PANIC in line]
        ends = panic[:1] or [text[-SHOWN_CHARACTERS:] for text in said if text]
        return " / ".join(ends) or self._completed.spawn_error or "it said nothing"

    def _attend(self) -> None:
        try:
            self._completed = self._process.wait()
        except SandboxError as error:
            self._completed = Completed(spawn_error=error.message)
        self._ended.set()
        if self._channel:
            self._channel.fail("the virtual machine has ended")

    def _started(self, pids: Sequence[int]) -> None:
        self.pid = pids[-1]

    def _lost(self, why: str) -> None:
        """End the machine of a guest that was given up, and say why to everybody."""
        self._process.kill()
        said = "" if self._stopping else f": {self.last_words()}"
        self.channel.lost = SandboxLost(f"{why}{said}", hint="another attempt may meet better luck")


def _console() -> BoundedOutput:
    return BoundedOutput(CONSOLE_BYTES)
