"""Virtual machines for tests: their configuration, and commands in a guest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.interfaces import Command, Deadline
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.guest import wire
from evalwright_plugins.sandboxes.vm.machine import Machine

PATH = "/usr/local/bin:/usr/bin:/bin"


def config(**options: Any) -> VmConfig:
    """Return the configuration of a sandbox with the tests' image."""
    return VmConfig(root="busybox", **options)


def sh(script: str, **fields: Any) -> Command:
    """Return a command for the guest's shell."""
    env = {"PATH": PATH, **fields.pop("env", {})}
    return Command(argv=["/bin/sh", "-c", script], env=env, timeout=fields.pop("timeout", 60.0), **fields)


def as_root(machine: Machine, script: str, env: dict[str, str] | None = None) -> str:
    """Run a script as the guest's root, which no command of a session is, and return what it said."""
    words = {"do": "run", "root": True, "cwd": "/", "argv": ["/bin/sh", "-c", script], "env": {"PATH": PATH, **(env or {})}}
    stream = machine.channel.open(words)
    said = bytearray()
    deadline = Deadline.after(60.0)
    while not deadline.expired:
        frame = stream.receive(1.0)
        if frame and frame.kind == wire.DONE:
            return said.decode()
        if frame and frame.kind in (wire.DATA, wire.ERROR):
            said += frame.payload
            stream.consumed(len(frame.payload))
    raise TimeoutError("the guest did not answer")


def alive(pid: int) -> bool:
    """Tell whether a process of this host lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
