"""The command line of bubblewrap: an empty root with nothing of the host but what is named here."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evalwright.interfaces import Mount

__all__ = ["EXCHANGE", "HOME", "TEMPORARY", "USER", "WORKSPACE", "View", "write_etc"]

WORKSPACE = PurePosixPath("/workspace")
EXCHANGE = PurePosixPath("/exchange")
HOME = PurePosixPath("/home/agent")
TEMPORARY = PurePosixPath("/tmp")
USER = 1000
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
COPIED = ("ld.so.cache", "localtime", "mime.types", "protocols", "services", "ssl/openssl.cnf", "timezone")
MOUNTED = ("alternatives", "ssl/certs", "pki", "terminfo")
NETWORK_COPIED = ("resolv.conf", "gai.conf", "host.conf")
MADE_UP: Mapping[str, str] = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{USER}:{USER}:agent:{HOME}:/bin/sh\n",
    "group": f"root:x:0:\nagent:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


@functools.cache
def _host_file(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def write_etc(directory: Path, *, network: bool) -> None:
    """Fill a directory that stands for ``/etc``: what programs need to start, and nothing that tells of the host."""
    for name in (*COPIED, *(NETWORK_COPIED if network else ())):
        data = _host_file(f"/etc/{name}")
        if data is not None:
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_bytes(data)
    for name, text in MADE_UP.items():
        (directory / name).write_text(text, encoding="utf-8")
    for name in filter(_is_mounted, MOUNTED):
        (directory / name).mkdir(parents=True, exist_ok=True)


def _is_mounted(name: str) -> bool:
    return os.path.isdir(f"/etc/{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a session's commands see. ``etc`` and ``home`` are directories of the host; ``temporary_bytes`` bounds ``/tmp``.

    ``mounts`` are made in their order, so that a later one lies over an earlier one. ``nested`` allows user namespaces
    inside. ``apart`` gives the commands a network namespace without an interface but loopback.
    """

    workspace: Path
    exchange: Path
    etc: Path
    home: Path
    temporary_bytes: int
    apart: bool
    readonly: bool = False
    nested: bool = False
    mounts: Sequence[Mount] = ()

    def options(self, cwd: PurePosixPath, environment: Mapping[str, str]) -> Sequence[str]:
        """Return bubblewrap's options for one command."""
        return [
            *self._namespaces(),
            *("--tmpfs", "/"),
            *_system(),
            *self._etc(),
            *("--proc", "/proc", "--dev", "/dev"),
            *self._scratch(),
            *("--bind", str(self.home), str(HOME)),
            *("--ro-bind" if self.readonly else "--bind", str(self.workspace), str(WORKSPACE)),
            *("--bind", str(self.exchange), str(EXCHANGE)),
            *(word for mount in self.mounts for word in _bound(mount)),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(cwd), "--clearenv"),
            *(word for name, value in environment.items() for word in ("--setenv", name, value)),
            *("--cap-drop", "ALL"),
        ]

    def _namespaces(self) -> Iterator[str]:
        yield from ("--unshare-user", "--uid", str(USER), "--gid", str(USER), "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        yield from ("--unshare-cgroup-try", "--hostname", "sandbox", "--new-session")
        if self.apart:
            yield "--unshare-net"
        if not self.nested:
            yield "--disable-userns"

    def _etc(self) -> Iterator[str]:
        yield from ("--ro-bind", str(self.etc), "/etc")
        for name in filter(_is_mounted, MOUNTED):
            yield from ("--ro-bind", f"/etc/{name}", f"/etc/{name}")

    def _scratch(self) -> Iterator[str]:
        size = str(self.temporary_bytes)
        for place in (str(TEMPORARY), "/dev/shm", "/run"):
            yield from ("--perms", "1777", "--size", size, "--tmpfs", place)
        yield from ("--dir", "/var", "--symlink", "../tmp", "/var/tmp")


def _bound(mount: Mount) -> tuple[str, str, str]:
    return ("--bind" if mount.writable else "--ro-bind", str(mount.source), str(mount.target))


def _system() -> Iterator[str]:
    """Yield ``/usr`` and what leads into it; systems that keep ``/bin`` and the like apart get those too."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in SYSTEM:
        path = f"/{name}"
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
