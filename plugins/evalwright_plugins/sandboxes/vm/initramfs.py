"""The guest's first file system: busybox, the kernel's modules, ``init`` and the agent, in the kernel's own archive format."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from evalwright_plugins.sandboxes.vm.cache import digest_of
from evalwright_plugins.sandboxes.vm.kernel import Kernel

__all__ = ["agent_digest", "write_initramfs"]

GUEST = "evalwright_plugins.sandboxes.vm.guest"
AGENT_FILES = ("agent.py", "begin.py", "cgroups.py", "files.py", "loop.py", "run.py", "wire.py")
DIRECTORIES = ("agent", "bin", "dev", "modules", "proc", "sys")


def agent_digest() -> str:
    """Return the digest of everything of ours that runs in the guest."""
    return digest_of({name: _shipped(name).hex() for name in ("init", *AGENT_FILES)})


def write_initramfs(target: Path, kernel: Kernel, busybox: Path) -> None:
    """Write the archive."""
    modules = kernel.modules()
    with target.open("wb") as file:
        for number, (name, mode, content) in enumerate(_members(modules, busybox.read_bytes()), 1):
            file.write(_entry(number, name, mode, content))
        file.write(_entry(0, "TRAILER!!!", 0, b""))


def _members(modules: dict[str, bytes], busybox: bytes) -> Iterator[tuple[str, int, bytes]]:
    for name in DIRECTORIES:
        yield name, stat.S_IFDIR | 0o755, b""
    yield "bin/busybox", stat.S_IFREG | 0o755, busybox
    yield "init", stat.S_IFREG | 0o755, _shipped("init")
    for name in AGENT_FILES:
        yield f"agent/{name}", stat.S_IFREG | 0o644, _shipped(name)
    for name, content in modules.items():
        yield f"modules/{name}.ko", stat.S_IFREG | 0o644, content
    yield "modules/order", stat.S_IFREG | 0o644, " ".join(modules).encode()


def _shipped(name: str) -> bytes:
    return files(GUEST).joinpath(name).read_bytes()


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    """Return one member in the format ``newc``: a header of hexadecimal fields, the name and the content, each padded."""
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    return _padded(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
