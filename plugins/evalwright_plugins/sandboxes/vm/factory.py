"""Makes the machines of one sandbox: the hardware is chosen once, the snapshot taken once, every session gets a fresh guest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import Deadline
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm import host
from evalwright_plugins.sandboxes.vm.cache import Cache
from evalwright_plugins.sandboxes.vm.channel import Stream
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.image import Image, find_image
from evalwright_plugins.sandboxes.vm.machine import Machine, MachineKilled
from evalwright_plugins.sandboxes.vm.place import discard_place, make_place
from evalwright_plugins.sandboxes.vm.qemu import Hardware, command_line
from evalwright_plugins.sandboxes.vm.snapshot import Memory, Snapshot, empty_memory, restore, snapshot_key, take_snapshot

__all__ = ["Factory"]

BOOT_SECONDS = 240.0
RESTORE_SECONDS = 60.0
MACHINES = ("microvm", "q35")
Accept = Callable[[Stream, Mapping[str, Any]], None]


class Factory:
    """Boots and restores guests. Thread-safe; :meth:`prepare` does the slow part once."""

    def __init__(self, config: VmConfig, supervisor: Supervisor) -> None:
        self._config = config
        self._supervisor = supervisor
        self._cache = Cache(config.cache)
        self._lock = threading.Lock()
        self._image: Image | None = None
        self._use: IO[str] | None = None
        self._hardware: Hardware | None = None
        self._snapshot: Snapshot | None = None
        self._memory: Memory | None = None

    def prepare(self) -> None:
        """Choose the hardware and take the snapshot, or find the one that was taken.

        Raises ``SandboxError``, ``MachineKilled`` for a machine that somebody killed meanwhile.
        """
        with self._lock:
            if self._hardware:
                return
            self._image = self._held()
            errors: list[str] = []
            for machine in MACHINES if self._config.machine == "auto" else (self._config.machine,):
                hardware = self._wanted(self._image, machine)
                try:
                    self._settle(self._image, hardware)
                    return
                except MachineKilled:
                    raise
                except SandboxError as error:
                    errors.append(f"{machine}: {error.message}")
            raise SandboxError(f"no machine starts: {'; '.join(errors)}", hint="evalwright doctor")

    def make(self, owner: str, accept: Accept) -> Machine:
        """Return a machine whose agent is ready. Raises ``SandboxError``."""
        self.prepare()
        if self._image is None or self._hardware is None:
            raise SandboxError("the sandbox was closed")
        if self._snapshot is None or self._memory is None:
            return self._boot(self._image, self._hardware, owner, accept, None)
        deadline = Deadline.after(RESTORE_SECONDS)
        place = make_place(owner, self._hardware.disk_bytes)
        argv = command_line(self._image, self._hardware, self._memory.path, private=True, restored=True)
        machine = self._started(argv, place, accept, deadline)
        try:
            restore(machine, self._snapshot, deadline)
        except SandboxError as error:
            machine.stop(Deadline.after(RESTORE_SECONDS))
            raise SandboxLost(f"{error.message}: {machine.last_words()}", hint=error.hint) from error
        machine.ready(deadline)
        return machine

    def close(self) -> None:
        """Forget the snapshot's memory."""
        with self._lock:
            if self._memory:
                self._memory.close()
            if self._use:
                self._use.close()
            self._memory = self._snapshot = self._hardware = self._image = self._use = None

    def _held(self) -> Image:
        """Return the image, kept from being pruned until :meth:`close`."""
        image = find_image(self._cache, self._config.root)
        if image and self._use is None:
            self._use = self._cache.use("images", image.key)
        if image is None or not image.root.is_file():
            command = f"evalwright vm build --root {self._config.root}"
            raise SandboxError(f"there is no {self._config.root} image of this version", hint=f"make it: {command}")
        return image

    def _wanted(self, image: Image, machine: str) -> Hardware:
        return Hardware(
            machine=machine,
            accelerator=host.accelerator(self._cache, image, self._config.accelerator, self._supervisor),
            memory_bytes=self._config.memory_bytes,
            disk_bytes=self._config.disk_bytes,
            tsc_khz=host.tsc_khz(self._cache),
        )

    def _settle(self, image: Image, hardware: Hardware) -> None:
        """Take the hardware if a guest starts on it."""
        if not self._config.snapshot:
            self._hardware = hardware
            return
        key = snapshot_key(image, hardware, host.qemu_version(self._supervisor))

        def boot(memory: Path) -> Machine:
            return self._boot(image, hardware, "snapshot", _refuse, memory)

        self._snapshot = take_snapshot(self._cache, key, hardware, boot, Deadline.after(BOOT_SECONDS))
        self._memory = Memory(self._snapshot)
        self._hardware = hardware

    def _boot(self, image: Image, hardware: Hardware, owner: str, accept: Accept, memory: Path | None) -> Machine:
        deadline = Deadline.after(BOOT_SECONDS)
        place = make_place(owner, hardware.disk_bytes)
        argv = command_line(
            image, hardware, memory or empty_memory(place, hardware.memory_bytes), private=memory is None, restored=False
        )
        machine = self._started(argv, place, accept, deadline)
        machine.ready(deadline)
        return machine

    def _started(self, argv: list[str], place: Path, accept: Accept, deadline: Deadline) -> Machine:
        try:
            return Machine(
                argv, place, self._supervisor, silence=self._config.silence_seconds, accept=accept, deadline=deadline
            )
        except BaseException:
            if place.exists():
                discard_place(place)
            raise


def _refuse(stream: Stream, _request: Mapping[str, Any]) -> None:
    stream.channel.close_stream(stream)
