"""The guest's first program: it carries out what the host asks for over one virtio-serial port.

Single-threaded and never blocked by anybody: every descriptor is polled, and what cannot be written yet waits within the
window of its stream. What it does not understand ends it, and with it the guest: the host then knows that it is lost.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.guest import begin, cgroups, files, loop, run
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import begin
    import cgroups
    import files
    import loop
    import run

PORT_NAME = "evalwright"
PORTS = "/sys/class/virtio-ports"
PAUSE_SECONDS = 0.01


def open_port() -> int:
    """Open the port that bears our name, once it is there."""
    while True:
        with contextlib.suppress(OSError):
            for name in os.listdir(PORTS):
                with open(f"{PORTS}/{name}/name") as file:
                    if file.read().strip() == PORT_NAME:
                        return os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        time.sleep(PAUSE_SECONDS)


def ignore(_number: int, _frame: object) -> None:
    """Handle a signal by waking up from poll, which the wakeup descriptor does."""


def size(agent: loop.Loop, stream: int, request: Any) -> None:
    """Answer with a file's size."""
    agent.done(stream, files.size(request))


def start(agent: loop.Loop, stream: int, request: Any) -> None:
    """Begin a session."""
    begin.begin(agent, request)
    agent.done(stream, {})


def find(agent: loop.Loop, stream: int, request: Any) -> None:
    """Answer with the processes that have a variable in their environment."""
    agent.done(stream, {"pids": files.processes_with(os.fsencode(request["variable"]))})


def kill(agent: loop.Loop, stream: int, _request: Any) -> None:
    """Kill every command."""
    cgroups.kill(cgroups.COMMANDS)
    agent.done(stream, {})


def main() -> None:
    """Prepare this process, the first one, and serve."""
    cgroups.prepare()
    starters: dict[str, loop.Starter] = {"run": run.Run, "read": files.Read}
    starters |= {"size": size, "find": find, "begin": start, "kill": kill}
    agent = loop.Loop(open_port(), starters)
    wake, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def woken(_events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        agent.reap()

    signal.signal(signal.SIGCHLD, ignore)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    agent.watch(wake, select.POLLIN, woken)
    agent.serve()


if __name__ == "__main__":
    main()
