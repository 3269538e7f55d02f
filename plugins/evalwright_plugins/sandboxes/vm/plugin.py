"""The sandbox ``vm``: a virtual machine for every session, restored from a snapshot of one that has booted."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import Deadline, Host, Problem, Sandbox, SandboxRequest, Session
from evalwright.processes import Supervisor
from evalwright_plugins.network import injection_problems
from evalwright_plugins.sandboxes.vm import host
from evalwright_plugins.sandboxes.vm.cache import Cache
from evalwright_plugins.sandboxes.vm.channel import Stream
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.factory import Factory
from evalwright_plugins.sandboxes.vm.image import Image, find_image
from evalwright_plugins.sandboxes.vm.machine import Machine
from evalwright_plugins.sandboxes.vm.place import reap_places
from evalwright_plugins.sandboxes.vm.session import VmSession
from evalwright_plugins.sandboxes.vm.tools import RUN_PROGRAMS, missing_packages

__all__ = ["VmSandbox"]

FIND_SECONDS = 30.0
UNAVAILABLE = "E_VM_UNAVAILABLE"
ROOTS = ("debian", "busybox")


class VmSandbox(Sandbox[VmConfig]):
    """Runs commands under a kernel of their own, which has nothing of the host but a copy of the workspace."""

    api = "sandbox/1.0"
    Config = VmConfig
    in_place = False
    capabilities = frozenset(
        {"fs-isolated", "gold-isolated", "network-allowlist", "network-off", "pid-isolated", "resource-limits", "snapshot"}
    )

    def __init__(self, config: VmConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()
        self._factory = Factory(config, self._supervisor)
        self._lock = threading.Lock()
        self._machines: list[Machine] = []

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say which programs or which image are missing, and whether KVM is asked for and does not work."""
        if platform.machine() != "x86_64":
            return [_problem("virtual machines need an x86-64 host", "use another sandbox")]
        missing = missing_packages(RUN_PROGRAMS)
        if missing:
            return [_problem("QEMU is not installed", f"install it: apt-get install {' '.join(missing)}")]
        problems = list(injection_problems(self.config, os.environ, place="sandbox"))
        cache = Cache(self.config.cache)
        image = find_image(cache, self.config.root)
        if image is None:
            return [_without_image(self.config.root, [root for root in ROOTS if find_image(cache, root)])]
        if self.config.accelerator == "kvm" and not self._runs_on_kvm(cache, image):
            problems.append(
                Problem(message="no guest starts with KVM here", hint='say accelerator: "auto", or repair /dev/kvm')
            )
        return problems

    def _runs_on_kvm(self, cache: Cache, image: Image) -> bool:
        try:
            return host.accelerator(cache, image, "auto", self._supervisor) == "kvm"
        except (SandboxError, OSError):
            return False

    def start(self, deadline: Deadline) -> None:
        """Take the snapshot if there is none, and remove sockets and disks of machines that died with their harness."""
        reap_places()
        if not self.check("worker"):
            self._factory.prepare()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session in a guest of its own. Raises ``SandboxError`` when none can be made."""
        return VmSession(request, self._make, self.config)

    def find(self, variable: str) -> Sequence[int]:
        """List the processes of all guests whose environment holds ``NAME=value``, by their ids there."""
        found: list[int] = []
        for machine in self.machines:
            with contextlib.suppress(SandboxLost):
                answer = machine.channel.call({"do": "find", "variable": variable}, Deadline.after(FIND_SECONDS))
                found += [pid for pid in answer.get("pids", []) if isinstance(pid, int)]
        return found

    def close(self, deadline: Deadline) -> None:
        """End every machine."""
        with self._lock:
            machines, self._machines = self._machines, []
        for machine in machines:
            with contextlib.suppress(OSError):
                machine.stop(deadline)
        self._supervisor.close()
        self._factory.close()

    @property
    def machines(self) -> Sequence[Machine]:
        """Return the machines that run."""
        with self._lock:
            return [machine for machine in self._machines if machine.running()]

    def _make(self, owner: str, accept: Callable[[Stream, Mapping[str, Any]], None]) -> Machine:
        machine = self._factory.make(owner, accept)
        with self._lock:
            self._machines = [known for known in self._machines if known.running()] + [machine]
        return machine


def _without_image(root: str, others: Sequence[str]) -> Problem:
    """Say that an image is missing, and which others are there."""
    there = f"; there is one of {' and '.join(others)}" if others else ""
    use = f', or let the suite say "root": "{others[0]}"' if others else ""
    return _problem(f"no {root} image was built for this version{there}", f"make it: evalwright vm build --root {root}{use}")


def _problem(message: str, hint: str) -> Problem:
    return Problem(message=message, hint=hint, details={"code": UNAVAILABLE})
