"""One trial's guest: its files go in before the first command and come back at the end."""

from __future__ import annotations

import errno
import io
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.errors import SandboxError, SandboxLost, TrialError
from evalwright.interfaces import Command, Deadline, LocalSession, SandboxRequest
from evalwright.model import Completed
from evalwright_plugins.network import SessionNetwork
from evalwright_plugins.sandboxes.vm.archive import read_archive
from evalwright_plugins.sandboxes.vm.channel import record_of
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.execution import Execution
from evalwright_plugins.sandboxes.vm.guest import wire
from evalwright_plugins.sandboxes.vm.machine import Machine
from evalwright_plugins.sandboxes.vm.pack import Tree, pack
from evalwright_plugins.sandboxes.vm.tunnel import Tunnels
from evalwright_plugins.sandboxes.vm.unpack import unpack

__all__ = ["VmSession"]

WORKSPACE = PurePosixPath("/workspace")
EXCHANGE = PurePosixPath("/exchange")
HOME = PurePosixPath("/home/agent")
TEMPORARY = PurePosixPath("/tmp")
TOOLS = "/run/evalwright/busybox"
RECEIVE = f"{TOOLS} tar x -p -C / -f /dev/archive"
READ_ONLY = f"{TOOLS} mount -o remount,bind,ro /workspace"
SEND = f"{TOOLS} tar c -C / -f - workspace exchange > /dev/transfer && {TOOLS} sync"
ENTROPY_BYTES = 64
BEGIN_SECONDS = 120.0
CALL_SECONDS = 60.0


class VmSession(LocalSession):
    """A session in a guest of its own. Once the guest's files are back, they are read on the host."""

    isolation = "vm"
    restored = True
    in_place = False
    ending_seconds = 120.0

    def __init__(
        self,
        request: SandboxRequest,
        make: Callable[[str, Callable[..., None]], Machine],
        config: VmConfig,
    ) -> None:
        super().__init__(request)
        self.workspace, self.exchange, self.home, self.temporary = WORKSPACE, EXCHANGE, HOME, TEMPORARY
        self._limits = {**config.limits.in_force(), **request.limits}
        self._disk_bytes = config.disk_bytes
        self._network = SessionNetwork(config, request, ("none", "allowlist"))
        self._tunnels = Tunnels(request.endpoints, self._network.connected)
        self._trees = [_mounted(mount.source, mount.target) for mount in request.mounts]
        self._ending = threading.Lock()
        self._touched = self._collected = self._destroyed = False
        try:
            self.machine = make(request.owner, self._tunnels.accept)
        except BaseException:
            self._network.close(Deadline.after(CALL_SECONDS))
            raise
        try:
            self._begin()
        except BaseException:
            self._stop(Deadline.after(CALL_SECONDS))
            raise

    def execute(self, command: Command) -> Completed:
        """Run a command as the guest's user. Raises ``SandboxLost`` when the guest is gone."""
        if command.cwd is not None:
            self.host_path(PurePosixPath(command.cwd))
        if self._killed:
            raise SandboxError("the session was ended", hint="run commands before kill")
        self._touched = True
        whole = replace(command, env={**self.request.env, **command.env, **self._network.environment})
        execution = Execution(self.machine.channel, whole, {**self._limits, **command.limits})
        with self.running(execution):
            return execution.follow()

    def put(self, source: Path | bytes, to: PurePosixPath) -> None:
        """Write bytes, or copy a file or directory of the host, to a path inside."""
        self.host_path(to)
        if self._collected:
            raise SandboxError("the session was ended", hint="put files before collect")
        self._touched = True
        target = os.path.normpath(self.workspace / to)
        archive = io.BytesIO()
        if isinstance(source, bytes):
            archive.write(source)
            script = 'mkdir -p "$(dirname "$TARGET")" && cat > "$TARGET"'
        else:
            pack([Tree(source=source, target=os.path.basename(target))], archive, self._disk_bytes)
            script = 'mkdir -p "$(dirname "$TARGET")" && tar x -p -C "$(dirname "$TARGET")" -f -'
        env = {"TARGET": target, "PATH": "/usr/bin:/bin"}
        command = Command(argv=["/bin/sh", "-c", script], env=env, stdin=archive.getvalue(), timeout=CALL_SECONDS)
        done = Execution(self.machine.channel, command, {}).follow()
        if done.exit_code != 0:
            raise SandboxError(f"{to} cannot be written in the guest: {done.stderr.text[-300:] or done.spawn_error}")

    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        """Read a regular file; links are not followed, and a FIFO never blocks."""
        if self._collected:
            return super().get(path, max_bytes=max_bytes)
        self.host_path(path)
        inside = os.path.normpath(self.workspace / path)
        stream = self.machine.channel.open({"do": "read", "path": inside, "max_bytes": max_bytes})
        content = bytearray()
        deadline = Deadline.after(CALL_SECONDS)
        while not deadline.expired:
            frame = stream.receive(deadline.remaining)
            if frame and frame.kind == wire.DATA:
                content += frame.payload
                stream.consumed(len(frame.payload))
            elif frame:
                return _read(frame.payload, bytes(content[:max_bytes]), path)
        raise SandboxLost(f"the guest did not send {path} in time")

    def size(self, path: PurePosixPath) -> int | None:
        """Return a file's size; links are not followed."""
        if self._collected:
            return super().size(path)
        request = {"do": "size", "path": os.path.normpath(self.workspace / path)}
        size = self.machine.channel.call(request, Deadline.after(CALL_SECONDS)).get("size")
        return size if isinstance(size, int) else None

    def alive(self) -> bool:
        """Tell whether commands can still run."""
        return not self._killed and self.machine.running()

    def kill(self, deadline: Deadline) -> None:
        """End every running command. A guest that does not do that in time is ended itself."""
        with self._idle:
            self._killed = True
            live = list(self._live)
        for execution in live:
            execution.kill()
        try:
            self.machine.channel.call({"do": "kill"}, deadline)
        except TimeoutError:
            self.machine.stop(Deadline.after(CALL_SECONDS))
            raise SandboxLost("the guest did not end its commands in time and was ended") from None
        except SandboxLost:
            if live:
                raise
        with self._idle:
            self._idle.wait_for(lambda: not self._live, deadline.remaining)

    def collect(self, deadline: Deadline) -> None:
        """Bring workspace and exchange directory back by content, and end the guest.

        Raises ``SandboxLost`` when the guest is gone, ``TrialError`` when it has left what cannot be taken.
        """
        with self._ending:
            if self._collected or self._destroyed:
                return
            if self._touched:
                try:
                    self._bring_back(deadline)
                except SandboxLost:
                    raise
                except SandboxError as error:
                    raise TrialError("workspace_unreadable", f"what the guest left cannot be taken: {error}"[:500]) from error
            self._collected = True
            self._stop(deadline)

    def destroy(self, deadline: Deadline) -> None:
        """End the guest and remove everything of it."""
        self._killed = self._destroyed = True
        self._stop(deadline)

    def account(self) -> Mapping[str, Any]:
        """Return what the guest asked for."""
        return self._network.account()

    def prompt(self) -> bool:
        """Tell that somebody has to watch over the ending."""
        return False

    def inside(self, source: Path) -> PurePosixPath:
        """Return the path under which commands see a mounted file or directory of the host."""
        for mount in self.request.mounts:
            if source == mount.source or mount.source in source.parents:
                return mount.target / source.relative_to(mount.source)
        raise SandboxError(f"{source} is not mounted", hint="name it in the request's mounts")

    def _stop(self, deadline: Deadline) -> None:
        try:
            self.machine.stop(deadline)
        finally:
            self._network.close(deadline)

    def _begin(self) -> None:
        """Give the guest the time, fresh randomness and its files."""
        deadline = Deadline.after(BEGIN_SECONDS)
        trees = [
            Tree(source=self.request.workspace, target=WORKSPACE.name),
            Tree(source=self.request.exchange, target=EXCHANGE.name),
            *self._trees,
        ]
        with (self.machine.place / "disk").open("r+b") as file:
            size = pack(trees, file, self._disk_bytes)
        request: dict[str, Any] = {"do": "begin", "entropy": secrets.token_hex(ENTROPY_BYTES), "archive_bytes": size}
        request |= {"ports": list(self._tunnels.ports), "time": time.time()}
        self.machine.channel.call(request, deadline)
        self._system(f"{RECEIVE} && {READ_ONLY}" if self.request.readonly else RECEIVE, deadline)

    def _bring_back(self, deadline: Deadline) -> None:
        self._system(SEND, deadline)
        with (self.machine.place / "disk").open("rb") as file:
            members = read_archive(file, self._disk_bytes)
            if not self.request.readonly:
                unpack(members, file, WORKSPACE.name, self.request.workspace)
            unpack(members, file, EXCHANGE.name, self.request.exchange)

    def _system(self, script: str, deadline: Deadline) -> None:
        """Run a script of ours as the guest's root. Raises ``SandboxError`` with what it complained about."""
        argv = [TOOLS, "sh", "-c", script]
        request: dict[str, Any] = {"do": "run", "root": True, "argv": argv, "cwd": "/", "env": {}}
        said = bytearray()
        stream = self.machine.channel.open(request)
        while not deadline.expired:
            frame = stream.receive(deadline.remaining)
            if frame and frame.kind in (wire.DATA, wire.ERROR):
                said += frame.payload[: max(0, 2000 - len(said))]
                stream.consumed(len(frame.payload))
            elif frame:
                if record_of(frame.payload).get("status") == 0:
                    return
                text = said.decode("utf-8", "replace").strip()
                raise SandboxError(
                    f"files cannot be carried: {text or frame.payload!r}", hint="raise sandbox.memory_bytes or disk_bytes"
                )
        raise SandboxLost("the guest did not carry its files in time")


def _mounted(source: Path, target: PurePosixPath) -> Tree:
    """Return what a mount carries in; it may not lie where the agent writes."""
    clean = PurePosixPath(os.path.normpath(target))
    taken = any(clean.is_relative_to(root) or root.is_relative_to(clean) for root in (WORKSPACE, EXCHANGE))
    if taken or not clean.is_absolute():
        raise SandboxError(f"nothing can be mounted at {target}", hint="choose a path outside workspace and exchange directory")
    return Tree(source=source, target=str(clean), owned=False)


def _read(answer: bytes, content: bytes, path: PurePosixPath) -> bytes:
    number = int(record_of(answer).get("errno", errno.EIO))
    if number:
        raise OSError(number, os.strerror(number), str(path))
    return content
