"""Guests that have booted already: one snapshot an image, restored copy-on-write for every session."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright_plugins.sandboxes.vm.cache import Cache, digest_of
from evalwright_plugins.sandboxes.vm.image import SNAPSHOTS, Image
from evalwright_plugins.sandboxes.vm.machine import Machine, MachineKilled
from evalwright_plugins.sandboxes.vm.place import MACHINE_USER
from evalwright_plugins.sandboxes.vm.qemu import Hardware

__all__ = ["Memory", "Snapshot", "empty_memory", "restore", "snapshot_key", "snapshots_of", "take_snapshot"]

PROCESSOR = Path("/proc/cpuinfo")
BLOCK_BYTES = 512
CHUNK_BYTES = 1 << 20
UNLIMITED = 1 << 40
WARM_UP = 'for word in /bin/sh tar cat ls env head; do command -v $word; done; python3 -c "import json, subprocess"'
WARM_UP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a stopped guest: its devices in ``state``, its memory in ``memory``, what it ran on in ``hardware``."""

    directory: Path

    @property
    def state(self) -> Path:
        """Return the state of the devices."""
        return self.directory / "state"

    @property
    def memory(self) -> Path:
        """Return the guest's memory, a file with holes."""
        return self.directory / "memory"

    @property
    def size_bytes(self) -> int:
        """Return the size on disk; holes take no room."""
        return sum(path.stat().st_blocks * BLOCK_BYTES for path in (self.state, self.memory))

    @property
    def machine(self) -> str:
        """Return the kind of machine that it belongs to."""
        return str(json.loads((self.directory / "hardware").read_bytes())["machine"])


class Memory:
    """A snapshot's memory, loaded once for a process and sealed: every guest starts from it, and none can change it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._descriptor = os.memfd_create("evalwright-vm", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with snapshot.memory.open("rb") as file:
            _copy_sparse(file.fileno(), self._descriptor)
        fcntl.fcntl(
            self._descriptor,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL,
        )

    @property
    def path(self) -> Path:
        """Return a path under which other processes of the same user open it."""
        return Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")

    def close(self) -> None:
        """Release it; guests that run keep it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def snapshot_key(image: Image, hardware: Hardware, qemu: str) -> str:
    """Return what a snapshot fits to: this image, this hardware, this QEMU, and with KVM this host's processor."""
    lines = PROCESSOR.read_text(encoding="utf-8").splitlines() if hardware.accelerator == "kvm" else []
    processor = sorted({line for line in lines if line.startswith(("flags", "model name", "microcode"))})
    return f"{image.key}-{digest_of(1, asdict(hardware), qemu, processor)}"


def snapshots_of(image: Image) -> list[Snapshot]:
    """Return every snapshot of an image."""
    return [Snapshot(path) for path in sorted((image.directory.parent.parent / SNAPSHOTS).glob(f"{image.key}-*"))]


def empty_memory(place: Path, size: int) -> Path:
    """Make the memory of a guest that boots, as a file with holes that the machine may write."""
    memory = place / "memory"
    memory.touch(mode=0o600)
    os.truncate(memory, size)
    if os.geteuid() == 0:
        os.chown(memory, MACHINE_USER, MACHINE_USER)
    return memory


def take_snapshot(cache: Cache, key: str, hardware: Hardware, boot: Callable[[Path], Machine], deadline: Deadline) -> Snapshot:
    """Return the snapshot of that key; if there is none, boot a guest with the memory file that ``boot`` is given, and stop it.

    Of several processes that want the same one, one boots. Raises ``SandboxError``, ``MachineKilled`` when that is why.
    """
    with cache.making(SNAPSHOTS, key) as draft:
        if draft:
            memory = empty_memory(draft, hardware.memory_bytes)
            machine = boot(memory)
            try:
                _warm_up(machine)
                _save(machine, draft / "state", deadline)
            except (SandboxError, OSError) as error:
                kind = MachineKilled if machine.killed else SandboxError
                raise kind(f"the snapshot could not be taken: {error}", hint="evalwright doctor") from error
            finally:
                machine.stop(Deadline.after(WARM_UP_SECONDS))
            if os.geteuid() == 0:
                os.chown(memory, 0, 0)
            memory.chmod(0o400)
            (draft / "hardware").write_text(json.dumps(asdict(hardware)), encoding="utf-8")
    return Snapshot(cache.place(SNAPSHOTS, key))


def restore(machine: Machine, snapshot: Snapshot, deadline: Deadline) -> None:
    """Give a machine that waits for it the state of a snapshot, and let it go on. Raises ``SandboxError``."""
    descriptor = os.open(snapshot.state, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with machine.monitor(deadline) as monitor:
            _ignore_memory(monitor, deadline)
            monitor.execute("getfd", {"fdname": "state"}, deadline=deadline, descriptor=descriptor)
            monitor.execute("migrate-incoming", {"uri": "fd:state"}, deadline=deadline)
            status = monitor.await_status("query-status", lambda answer: answer["status"] != "inmigrate", deadline)
            if not status["running"]:
                monitor.execute("cont", deadline=deadline)
    finally:
        os.close(descriptor)


def _save(machine: Machine, target: Path, deadline: Deadline) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with machine.monitor(deadline) as monitor:
            _ignore_memory(monitor, deadline)
            monitor.execute("stop", deadline=deadline)
            monitor.execute("getfd", {"fdname": "state"}, deadline=deadline, descriptor=descriptor)
            monitor.execute("migrate", {"uri": "fd:state"}, deadline=deadline)
            ended = monitor.await_status("query-migrate", lambda answer: answer.get("status") in ENDED, deadline)
            if ended["status"] != "completed":
                raise OSError(f"QEMU could not save the guest: {ended}")
    finally:
        os.close(descriptor)


ENDED = frozenset({"completed", "failed", "cancelled"})


def _ignore_memory(monitor: Any, deadline: Deadline) -> None:
    """Leave the memory out of what is saved and loaded: it is a file already."""
    capability = {"capability": "x-ignore-shared", "state": True}
    monitor.execute("migrate-set-capabilities", {"capabilities": [capability]}, deadline=deadline)
    monitor.execute("migrate-set-parameters", {"max-bandwidth": UNLIMITED}, deadline=deadline)


def _warm_up(machine: Machine) -> None:
    """Have the guest read what almost every session will need."""
    request = {"do": "run", "argv": ["/bin/sh", "-c", WARM_UP], "env": {"PATH": "/usr/bin:/bin"}}
    machine.channel.call(request, Deadline.after(WARM_UP_SECONDS))


def _copy_sparse(source: int, target: int) -> None:
    """Copy a file without its holes."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
        except OSError:
            return
        position = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < position:
            data = os.pread(source, min(CHUNK_BYTES, position - start), start)
            with contextlib.suppress(InterruptedError):
                start += os.write(target, data)
