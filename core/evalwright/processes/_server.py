"""The fork server and the supervisors it forks: a program of its own, standard library only, single-threaded.

It is started as a script and holds one end of a socket whose other end is the harness. Each request forks one
*supervisor*, which is a child subreaper: whatever the command starts, however it detaches, is a descendant of the
supervisor and is found in ``/proc``. The supervisor ends the whole tree when the command ends, when its time is up, when the
harness says so, and when the harness is gone (its control socket closes). The server is a subreaper too, so that the
tree of a supervisor that was itself killed comes to the server and is ended there.

Request: one ``SEQPACKET`` message that carries descriptors: request (a memory file with JSON), stdin, stdout, stderr,
control. Answers on the control socket, one JSON message each: ``{"supervisor": pid, "command": pid}``, then the report.
A request that names a cgroup gets no supervisor: the command is a child of the server in that cgroup, the harness ends it,
and the answers are ``{"command": pid}`` and ``{"status": wait status}``.
A message with one descriptor asks for nothing but an answer on it, once no tree of a killed supervisor lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False
"""That of ``typing``, whose import would take a tenth of the time in which this program starts."""
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from evalwright.processes import _tree as tree
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import _tree as tree

SETTLE_SECONDS = 0.2
STORM = 500
MAX_ERROR = 2000
FAREWELL_SECONDS = 10.0
DESCRIPTORS = 5
ALL_SIGNALS = [number for number in range(1, signal.NSIG) if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]
LIMITS = {
    "cpu_seconds": resource.RLIMIT_CPU,
    "file_size_bytes": resource.RLIMIT_FSIZE,
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
}


class Supervisor:
    """Runs one command and reports how it ended."""

    def __init__(self, request: dict[str, Any], stdio: list[int], control: socket.socket) -> None:
        self.request = request
        self.control = control
        self.family = tree.Family()
        self.report: dict[str, Any] = {"timed_out": False, "canceled": False, "leaked": 0, "survivors": 0}
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, tree.ignore)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.started = time.monotonic()
        self.child = self.spawn(stdio)
        self.family.deaf = self.child if request["wrapped"] else None

    def spawn(self, stdio: list[int]) -> int:
        """Fork and execute; a failure before the program runs is put into the report."""
        child, problem = spawn(self.request, stdio)
        self.report |= problem
        return child

    def run(self) -> None:
        """Wait for the end of the command, end what it left, and send the report."""
        self.control.send(json.dumps({"supervisor": os.getpid(), "command": self.child}).encode())
        self.watch()
        self.report["duration"] = time.monotonic() - self.started
        cut = self.report["timed_out"] or self.report["canceled"]
        if not cut:
            self.family.wait_gone(SETTLE_SECONDS)
        expected = {self.child, *filter(tree.begins_namespace, self.family.living() if self.request["wrapped"] else ())}
        killed, survivors = self.family.sweep()
        self.report |= {"leaked": len(killed - expected), "survivors": survivors}
        self.report["status"] = None if cut else self.family.statuses.get(self.child)
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(self.report).encode())

    def watch(self) -> None:
        """Return when the command has ended or was cut."""
        timeout = self.request["timeout"]
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            self.family.reap()
            if self.child in self.family.statuses:
                return None
            left = None if timeout is None else self.started + timeout - time.monotonic()
            if left is not None and left <= 0:
                self.report["timed_out"] = True
                return self.terminate()
            for descriptor, _ in poll.poll(None if left is None else left * 1000 + 1):
                if descriptor == self.wake:
                    os.read(self.wake, 4096)
                elif not self.control.recv(16):
                    self.abandon()
                else:
                    self.report["canceled"] = True
                    return self.terminate()

    def terminate(self) -> None:
        """Ask the whole tree to end and wait for it during the grace time, unless it is a fork storm."""
        seen: set[int] = set()
        self.family.signal_groups(signal.SIGTERM, seen)
        if len(seen) < STORM:
            self.family.wait_gone(self.request["grace"])

    def abandon(self) -> NoReturn:
        """Kill everything at once: the harness is gone."""
        self.family.sweep()
        os._exit(0)


def spawn(request: dict[str, Any], stdio: list[int]) -> tuple[int, dict[str, Any]]:
    """Fork and execute; return the child and, when its program could not run, ``spawn_error`` and ``spawn_errno``."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        become_command(request, stdio, writer)
    for descriptor in (*stdio, writer):
        os.close(descriptor)
    with open(reader, "rb", buffering=0) as file:
        problem = file.read(MAX_ERROR)
    if not problem:
        return child, {}
    number, _, text = problem.partition(b" ")
    return child, {"spawn_error": text.decode("utf-8", "replace"), "spawn_errno": int(number)}


def become_command(request: dict[str, Any], stdio: list[int], writer: int) -> NoReturn:
    """Turn this forked process into the command; on failure write why and exit."""
    try:
        for cgroup in (request["cgroup"], *request["groups"]):
            if cgroup:
                move_to(cgroup)
        os.setsid()
        for number in range(1, signal.NSIG):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate(stdio):
            os.dup2(descriptor, target)
        os.chdir(request["cwd"])
        for name, value in request["limits"].items():
            resource.setrlimit(LIMITS[name], (value, value + 1 if name == "cpu_seconds" else value))
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as error:
        number = getattr(error, "errno", None) or 0
        os.write(writer, f"{number} {error}".encode("utf-8", "replace")[:MAX_ERROR])
    os._exit(127)


def candidates(name: str, environment: dict[str, str]) -> list[str]:
    """List where a program may lie: a name without a slash is looked up in the ``PATH`` of the command's environment."""
    if "/" in name:
        return [name]
    directories = environment.get("PATH", os.defpath).split(os.pathsep)
    return [f"{directory or '.'}/{name}" for directory in directories]


def move_to(cgroup: str) -> None:
    """Put this process into a cgroup."""
    descriptor = os.open(f"{cgroup}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, b"0")
    finally:
        os.close(descriptor)


def own_cgroup() -> str:
    """Return this process's own directory in the unified hierarchy, or an empty string where there is none."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next((line[3:].strip() for line in file if line.startswith("0::")), "")
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mount = next((line.split()[4] for line in file if " - cgroup2 " in line), "")
    except OSError:
        return ""
    return mount + path if mount else ""


def receive(channel: socket.socket) -> list[int]:
    """Take the descriptors of one request; none when the harness is gone. No command will inherit them."""
    _, ancillary, _, _ = channel.recvmsg(16, socket.CMSG_SPACE(DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC)
    return [descriptor for _, _, data in ancillary for descriptor in memoryview(data).cast("i")]


def read_request(descriptor: int) -> dict[str, Any]:
    """Return the request in a memory file, and close that."""
    try:
        request: dict[str, Any] = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        return request
    finally:
        os.close(descriptor)


def start_supervisor(channel: socket.socket, request: dict[str, Any], descriptors: list[int]) -> int:
    """Fork the supervisor of one request and return its pid."""
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        return pid
    try:
        signal.set_wakeup_fd(-1)
        tree.become_subreaper()
        channel.close()
        Supervisor(request, descriptors[:3], socket.socket(fileno=descriptors[3])).run()
    finally:
        os._exit(0)


class Commands:
    """The commands in cgroups: children of the server, which says how they end; the harness does the rest."""

    def __init__(self) -> None:
        self.controls: dict[int, int] = {}
        self.root = ""
        self.home = own_cgroup()

    def start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Start one and say its pid, or why it could not start."""
        control = descriptors[3]
        self.root = os.path.dirname(request["cgroup"])
        prepared = request["limits"] or request["groups"]
        pid, problem = (spawn if prepared else self.spawn_at_once)(request, descriptors[:3])
        with contextlib.suppress(OSError):
            os.write(control, json.dumps(problem or {"command": pid}).encode())
        if problem:
            os.close(control)
        else:
            self.controls[pid] = control

    def spawn_at_once(self, request: dict[str, Any], stdio: list[int]) -> tuple[int, dict[str, Any]]:
        """Do what ``spawn`` does without a fork of this program: enter the cgroup and the directory, start, and leave again."""
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(stdio)]
        options: Any = {"file_actions": actions, "setsid": True, "setsigmask": (), "setsigdef": ALL_SIGNALS}
        try:
            os.chdir(request["cwd"])
            move_to(request["cgroup"])
            failure: OSError = FileNotFoundError(2, "No such file or directory", request["argv"][0])
            for program in candidates(request["argv"][0], request["env"]):
                try:
                    return os.posix_spawn(program, request["argv"], request["env"], **options), {}
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    failure = error
            raise failure
        except Exception as error:
            return 0, {"spawn_error": str(error)[:MAX_ERROR], "spawn_errno": getattr(error, "errno", None) or 0}
        finally:
            move_to(self.home)
            os.chdir("/")
            for descriptor in stdio:
                os.close(descriptor)

    def ended(self, statuses: dict[int, int]) -> None:
        """Say how those ended that did, and end what has left its cgroup."""
        ended = self.controls.keys() & statuses.keys()
        for pid in ended:
            control = self.controls.pop(pid)
            with contextlib.suppress(OSError):
                os.write(control, json.dumps({"status": statuses[pid]}).encode())
            os.close(control)
        if ended:
            own = os.getpid()
            escaped = [child for child in tree.children_of_thread(own, own) if self.escaped(child)]
            tree.send_all(tree.descendants(escaped), signal.SIGKILL)

    def escaped(self, pid: int) -> bool:
        """Tell whether an orphan that came to the server is in none of its cgroups any more."""
        if pid in self.controls:
            return False
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
                return f"/{os.path.basename(self.root)}/" not in file.read()
        except OSError:
            return False

    def end_all(self) -> None:
        """Kill everything in the cgroups and remove them."""
        if not self.root:
            return
        give_up = time.monotonic() + tree.SWEEP_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), open(f"{self.root}/cgroup.kill", "wb", buffering=0) as file:
                file.write(b"1")
            for directory, _, _ in os.walk(self.root, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
            if not os.path.exists(self.root):
                return
            time.sleep(tree.TICK_SECONDS)


def serve(channel: socket.socket) -> None:
    """Answer requests until the harness is gone; end the trees of supervisors that were killed."""
    family, commands = tree.Family(spared=set()), Commands()
    wake, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, tree.ignore)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == wake:
                os.read(wake, 4096)
            elif len(descriptors := receive(channel)) == 1:
                tidy(family, commands)
                socket.socket(fileno=descriptors[0]).send(b"tidy")
            elif descriptors:
                request = read_request(descriptors[0])
                if request["cgroup"]:
                    commands.start(request, descriptors[1:])
                else:
                    family.spared.add(start_supervisor(channel, request, descriptors[1:]))
            else:
                commands.end_all()
                say_farewell(family, commands)
                return
        tidy(family, commands)


def tidy(family: tree.Family, commands: Commands) -> None:
    """Forget supervisors that ended; end the trees of those that were killed."""
    family.reap()
    commands.ended(family.statuses)
    ended = family.spared & family.statuses.keys()
    killed = any(os.WIFSIGNALED(family.statuses[pid]) for pid in ended)
    family.spared -= ended
    family.statuses.clear()
    if killed:
        family.sweep()


def say_farewell(family: tree.Family, commands: Commands) -> None:
    """Let supervisors end their commands, as they do when their control sockets close, then end whatever is left."""
    give_up = time.monotonic() + FAREWELL_SECONDS
    while family.spared and time.monotonic() < give_up:
        tidy(family, commands)
        time.sleep(tree.TICK_SECONDS)
    family.spared.clear()
    family.sweep()


def main() -> None:
    """Serve on the descriptor that the command line names."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    tree.become_subreaper()
    tree.wake_when_orphaned()
    channel = socket.socket(fileno=int(sys.argv[-1]))
    channel.set_inheritable(False)
    serve(channel)
