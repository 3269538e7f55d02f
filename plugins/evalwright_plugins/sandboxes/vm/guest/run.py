"""Commands in the guest: each in a cgroup of its own that is killed at its end, as a user without rights."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import resource
import select
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.guest import cgroups, wire
    from evalwright_plugins.sandboxes.vm.guest.loop import Loop
else:
    import cgroups
    import wire

USER = 1000
ROOTS = ("/workspace", "/exchange")
SETTLE_SECONDS = 0.2
SWEEP_SECONDS = 10.0
TICK_SECONDS = 0.005
LOOK_SECONDS = 0.25
STORM = 500
PIPE_BYTES = 1 << 18
RLIMITS = {
    "cpu_seconds": resource.RLIMIT_CPU,
    "file_size_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}


class Run:
    """One command, from its start to the word on how it ended."""

    def __init__(self, agent: Loop, stream: int, request: Any) -> None:
        self.agent = agent
        self.stream = stream
        self.limits: dict[str, int] = request.get("limits", {})
        self.place = f"{cgroups.SYSTEM if request.get('root') else cgroups.COMMANDS}/{stream}"
        self.window = wire.WINDOW
        self.owed = 0
        self.readers: dict[int, int] = {}
        self.input: deque[bytes] = deque()
        self.input_ended = False
        self.stdin = -1
        self.status: int | None = None
        self.ended = 0.0
        self.swept = False
        self.answer: dict[str, Any] = {"leaked": 0, "survivors": 0, "cpu": False}
        agent.jobs[stream] = self
        try:
            cgroups.make(self.place, self.limits)
            self.pid = self.spawn(request)
        except OSError as error:
            self.pid = 0
            self.finish({"error": str(error), "errno": error.errno or 0} | refusal(error))
            return
        agent.children[self.pid] = self.exited

    def spawn(self, request: Any) -> int:
        """Start the command and watch its streams. ``OSError`` when it cannot be executed."""
        cwd = directory(request)
        env = {str(name): str(value) for name, value in request["env"].items()}
        for name in ("HOME", "TMPDIR"):
            make_private(env.get(name))
        given = request.get("stdin", False)
        readers = (os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC))
        stdin = os.pipe2(os.O_CLOEXEC) if given else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
        problem, report = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            become(request, env, cwd, self.place, (stdin[0], readers[0][1], readers[1][1]), report)
        for reader, _ in readers:
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        for descriptor in (stdin[0], readers[0][1], readers[1][1], report):
            os.close(descriptor)
        with open(problem, "rb") as file:
            said = file.read(4096)
        for kind, (reader, _) in zip((wire.DATA, wire.ERROR), readers, strict=True):
            self.readers[reader] = kind
            os.set_blocking(reader, False)
            self.agent.watch(reader, select.POLLIN, functools.partial(self.readable, reader))
        self.stdin = stdin[1]
        if given:
            os.set_blocking(self.stdin, False)
            self.agent.watch(self.stdin, 0, self.writable)
        if said:
            os.waitpid(pid, 0)
            number, text = json.loads(said)
            raise OSError(number, text)
        return pid

    def data(self, payload: bytes) -> None:
        """Take bytes for the command's stdin."""
        self.input.append(payload)
        self.write()

    def end(self) -> None:
        """Close stdin once everything is written."""
        self.input_ended = True
        self.write()

    def credit(self, count: int) -> None:
        """Send on."""
        self.window += count
        for reader in self.readers:
            self.agent.expect(reader, select.POLLIN)

    def signal(self, number: int) -> None:
        """Signal everything in the command's cgroup; KILL reaches it all at once."""
        if number == signal.SIGKILL:
            cgroups.kill(self.place)
            return
        found = cgroups.members(self.place)
        for pid in found if len(found) < STORM else ():
            for each in (number, signal.SIGCONT):
                with contextlib.suppress(OSError):
                    os.kill(pid, each)

    def drop(self) -> None:
        """End the command: nobody waits for it."""
        cgroups.kill(self.place)

    def exited(self, status: int) -> None:
        """Note how the command itself ended."""
        self.status = status
        self.ended = time.monotonic()

    def tick(self) -> float | None:
        """Watch the processor time while it runs; then let its children settle, kill them, and send what is left."""
        if self.status is None:
            return self.look()
        now = time.monotonic()
        if not self.swept:
            if cgroups.populated(self.place) and now < self.ended + SETTLE_SECONDS:
                return TICK_SECONDS
            self.answer["leaked"] = len([pid for pid in cgroups.members(self.place) if pid != self.pid])
            cgroups.kill(self.place)
            self.swept = True
        if cgroups.populated(self.place):
            if now < self.ended + SWEEP_SECONDS:
                return TICK_SECONDS
            self.answer["survivors"] = len(cgroups.members(self.place))
        if [reader for reader in list(self.readers) if not self.drained(reader)]:
            return None
        seconds = cgroups.processor_seconds(self.place)
        self.finish({"status": self.status, "seconds": seconds, **cgroups.events(self.place)})
        return None

    def look(self) -> float | None:
        """End a command whose processes together have used up their processor time."""
        limit = self.limits.get("cpu_seconds")
        if limit is None:
            return None
        if cgroups.processor_seconds(self.place) > limit:
            self.answer["cpu"] = True
            cgroups.kill(self.place)
        return LOOK_SECONDS

    def readable(self, reader: int, _events: int) -> None:
        """Send on."""
        self.read(reader)

    def read(self, reader: int) -> bool:
        """Send the next bytes of a pipe; tell whether there may be more."""
        if self.window <= 0:
            self.agent.expect(reader, 0)
            return True
        try:
            data = os.read(reader, min(wire.CHUNK, self.window))
        except BlockingIOError:
            return False
        if data:
            self.window -= len(data)
            self.agent.send(self.readers[reader], self.stream, data)
            return True
        del self.readers[reader]
        self.close(reader)
        return False

    def close(self, descriptor: int) -> None:
        """Close one of the command's pipes."""
        self.agent.forget(descriptor)
        os.close(descriptor)

    def drained(self, reader: int) -> bool:
        """Send what a pipe still holds when all who wrote to it are dead; tell whether that is all."""
        while self.window > 0:
            if not self.read(reader):
                return True
        return False

    def writable(self, events: int) -> None:
        """Go on writing, or stop when nobody reads any more."""
        if events & select.POLLERR:
            self.close_input()
        else:
            self.write()

    def write(self) -> None:
        """Write what waits to stdin, and give the window back."""
        while self.input and self.stdin >= 0:
            try:
                count = os.write(self.stdin, self.input[0])
            except BlockingIOError:
                self.agent.expect(self.stdin, select.POLLOUT)
                return
            except OSError:
                self.close_input()
                return
            rest = self.input.popleft()[count:]
            if rest:
                self.input.appendleft(rest)
            self.owed += count
            if self.owed >= wire.PORTION:
                self.agent.send(wire.CREDIT, self.stream, self.owed.to_bytes(4, "big"))
                self.owed = 0
        if self.stdin >= 0:
            self.agent.expect(self.stdin, 0)
            if self.input_ended:
                self.close_input()

    def close_input(self) -> None:
        """Close stdin; what still comes is dropped."""
        if self.stdin >= 0:
            self.close(self.stdin)
        self.stdin = -1
        self.input.clear()

    def finish(self, answer: dict[str, Any]) -> None:
        """Release everything and say how it ended."""
        self.close_input()
        for reader in self.readers:
            self.close(reader)
        self.readers.clear()
        with contextlib.suppress(OSError):
            os.rmdir(self.place)
        self.agent.done(self.stream, self.answer | answer)


def become(request: Any, env: dict[str, str], cwd: str, place: str, stdio: tuple[int, int, int], report: int) -> NoReturn:
    """Turn the forked child into the command, or say why not and leave."""
    try:
        cgroups.write(f"{place}/cgroup.procs", "0")
        cgroups.write("/proc/self/oom_score_adj", "0")
        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        for number, descriptor in enumerate(stdio):
            os.dup2(descriptor, number)
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_DFL)
        for name, value in request.get("limits", {}).items():
            if name in RLIMITS:
                resource.setrlimit(RLIMITS[name], (value, value + (name == "cpu_seconds")))
        if not request.get("root"):
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
        os.umask(0o022)
        os.chdir(cwd)
        argv = [os.fsencode(word) for word in request["argv"]]
        os.execvpe(argv[0], argv, {os.fsencode(name): os.fsencode(value) for name, value in env.items()})
    except BaseException as error:
        text = error.strerror if isinstance(error, OSError) else repr(error)
        os.write(report, json.dumps([getattr(error, "errno", None) or 0, f"{request['argv'][0]}: {text}"]).encode()[:4096])
    finally:
        os._exit(127)


def directory(request: Any) -> str:
    """Return where a command shall run. ``OSError`` when that leads out of the places a command may start in."""
    cwd = os.path.realpath(request.get("cwd") or ROOTS[0])
    if not request.get("root") and not any(cwd == root or cwd.startswith(f"{root}/") for root in ROOTS):
        raise PermissionError(errno.EXDEV, f"{request.get('cwd')} leads out of the workspace")
    return cwd


def refusal(error: OSError) -> dict[str, bool]:
    """Tell a directory that may not be used from a command that cannot be executed."""
    return {"outside": True} if error.errno == errno.EXDEV else {}


def make_private(place: str | None) -> None:
    """Make a directory of the user's own where its environment names one that is not there."""
    if place and os.path.isabs(place) and not os.path.lexists(place):
        with contextlib.suppress(OSError):
            os.makedirs(place)
            os.chown(place, USER, USER)
