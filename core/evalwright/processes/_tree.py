"""Process trees, for the fork server and its supervisors: found in ``/proc``, signalled by group, killed until none lives.

Standard library only: it is part of the fork server's program, which runs without the rest of the package.
"""

import contextlib
import ctypes
import os
import signal
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP_SECONDS = 10.0
TICK_SECONDS = 0.005
REAPED_AT_ONCE = 1000


def become_subreaper() -> None:
    """Make every orphaned descendant a child of this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wake_when_orphaned() -> None:
    """Have the kernel continue this process when the harness dies: a command may have stopped it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def ignore(_number: int, _frame: object) -> None:
    """Handle a signal by waking up from poll, which the wakeup descriptor does."""


def children_of(pid: int) -> list[int]:
    """List the direct children of a process, over all of its threads."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [child for thread in threads for child in children_of_thread(pid, thread)]


def children_of_thread(pid: int, thread: int | str) -> list[int]:
    """List the direct children that one thread of a process started, or that came to it."""
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def descendants(roots: list[int]) -> list[int]:
    """List ``roots`` and everything below them."""
    found: list[int] = []
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children_of(pid)
    return found


def begins_namespace(pid: int) -> bool:
    """Tell whether a process is the init of a pid namespace below this one, or the first that its init started."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            numbers = next(line for line in file if line.startswith("NSpid:")).split()[1:]
    except (OSError, StopIteration):
        return False
    return len(numbers) > 1 and numbers[-1] in ("1", "2")


def send_all(pids: list[int], signum: int) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signum)


class Family:
    """The children of this process, minus those that ``spared`` names, and all that descends from them.

    ``deaf`` is a process, with its group, that polite signals go past.
    """

    def __init__(self, spared: set[int] | None = None) -> None:
        self.spared = spared or set[int]()
        self.statuses: dict[int, int] = {}
        self.deaf: int | None = None

    def living(self) -> list[int]:
        """Reap what has ended; list what lives."""
        self.reap()
        return descendants([pid for pid in children_of(os.getpid()) if pid not in self.spared])

    def reap(self) -> None:
        """Collect the exit status of children that have ended; bounded, since a fork storm never runs out of them."""
        with contextlib.suppress(ChildProcessError):
            for _ in range(REAPED_AT_ONCE):
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    return
                if not os.WIFSTOPPED(status):
                    self.statuses[pid] = status
                elif pid in self.spared:
                    send_all([pid], signal.SIGKILL)

    def signal_groups(self, signum: int, seen: set[int]) -> bool:
        """Signal the process groups of everything not in ``seen`` yet; tell whether there was anything.

        One call reaches a whole group at once, however fast it forks. A group of a descendant holds only descendants: the
        command leads a session of its own, and a group never crosses a session.
        """
        fresh = [pid for pid in self.living() if pid not in seen]
        seen.update(fresh)
        groups: set[int] = set()
        for pid in fresh:
            with contextlib.suppress(OSError):
                groups.add(os.getpgid(pid))
        spared = {self.deaf} if signum == signal.SIGTERM else set[int | None]()
        for group in groups - spared - {os.getpgid(0)}:
            with contextlib.suppress(OSError):
                os.killpg(group, signum)
        send_all([pid for pid in fresh if pid not in spared], signum)
        return bool(fresh)

    def sweep(self) -> tuple[set[int], int]:
        """Stop the whole tree until nothing new appears, then kill until nothing lives.

        Return the processes that were killed, and how many outlived even that.
        """
        seen: set[int] = set()
        give_up = time.monotonic() + SWEEP_SECONDS
        while self.signal_groups(signal.SIGSTOP, seen) and time.monotonic() < give_up:
            pass
        give_up = time.monotonic() + SWEEP_SECONDS
        while self.signal_groups(signal.SIGKILL, set()):
            if time.monotonic() > give_up:
                return seen, len(self.living())
            time.sleep(TICK_SECONDS / 5)
        return seen, 0

    def wait_gone(self, seconds: float) -> bool:
        """Wait until nothing lives, at most ``seconds``."""
        give_up = time.monotonic() + seconds
        while self.living():
            if time.monotonic() >= give_up:
                return False
            time.sleep(TICK_SECONDS)
        return True
