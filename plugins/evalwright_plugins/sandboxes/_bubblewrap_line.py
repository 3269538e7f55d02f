"""The command line of bubblewrap: an empty root with nothing of the host but what is named here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

__all__ = ["EXCHANGE", "HOME", "TEMPORARY", "USER", "WORKSPACE", "View", "made_up_etc"]

WORKSPACE = PurePosixPath("/workspace")
EXCHANGE = PurePosixPath("/exchange")
HOME = PurePosixPath("/home/agent")
TEMPORARY = PurePosixPath("/tmp")
USER = 1000
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "mime.types", "protocols"),
    *("services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "ca-certificates", "pki", "crypto-policies"),
)
NETWORK_ETC = ("resolv.conf", "gai.conf", "host.conf")
MADE_UP: Mapping[str, str] = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{USER}:{USER}:agent:{HOME}:/bin/sh\n",
    "group": f"root:x:0:\nagent:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def made_up_etc(directory: Path) -> None:
    """Write the files of ``/etc`` that tell nothing of the host."""
    for name, text in MADE_UP.items():
        (directory / name).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a session's commands see. ``etc`` and ``home`` are directories of the host; ``temporary_bytes`` bounds ``/tmp``.

    ``mounts`` maps a path inside to the file or directory of the host that is seen there, read-only. ``nested`` allows user
    namespaces inside. ``apart`` gives the commands a network namespace without an interface but loopback.
    """

    workspace: Path
    exchange: Path
    etc: Path
    home: Path
    temporary_bytes: int
    apart: bool
    readonly: bool = False
    nested: bool = False
    network_files: bool = False
    mounts: Mapping[PurePosixPath, Path] = field(default_factory=dict[PurePosixPath, Path])

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
            *(word for target, source in self.mounts.items() for word in ("--ro-bind", str(source), str(target))),
            *("--remount-ro", "/", "--chdir", str(cwd), "--clearenv"),
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
        for name in (*ETC, *(NETWORK_ETC if self.network_files else ())):
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        for name in MADE_UP:
            yield from ("--ro-bind", str(self.etc / name), f"/etc/{name}")

    def _scratch(self) -> Iterator[str]:
        size = str(self.temporary_bytes)
        for place in (str(TEMPORARY), "/dev/shm"):
            yield from ("--perms", "1777", "--size", size, "--tmpfs", place)
        yield from ("--tmpfs", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")


def _system() -> Iterator[str]:
    """Yield ``/usr`` and what leads into it; systems that keep ``/bin`` and the like apart get those too."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in SYSTEM:
        path = f"/{name}"
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
