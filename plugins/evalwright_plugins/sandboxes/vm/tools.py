"""The programs of the host that building and running virtual machines need: which are missing, and calls to them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalwright.errors import SandboxError
from evalwright.interfaces import BoundedOutput, Command
from evalwright.processes import Supervisor

__all__ = ["BUILD_PROGRAMS", "DEBIAN_PROGRAMS", "QEMU", "RUN_PROGRAMS", "call", "missing_packages"]

QEMU = "qemu-system-x86_64"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN_PROGRAMS: Mapping[str, str] = {QEMU: "qemu-system-x86", "setpriv": "util-linux"}
BUILD_PROGRAMS: Mapping[str, str] = {
    "apt-get": "apt",
    "busybox": "busybox-static",
    "dpkg": "dpkg",
    "ldd": "libc-bin",
    "mksquashfs": "squashfs-tools",
}
DEBIAN_PROGRAMS: Mapping[str, str] = {"debootstrap": "debootstrap"}


def program(name: str) -> str | None:
    """Return the path of a program, looked for where the system keeps those of its administrator too."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def missing_packages(programs: Mapping[str, str]) -> list[str]:
    """Return the Debian packages whose programs are not there."""
    return sorted({package for name, package in programs.items() if program(name) is None})


def call(supervisor: Supervisor, argv: Sequence[str], *, cwd: Path | None = None, timeout: float = 120.0) -> str:
    """Run a program of the host and return its stdout. Raises ``SandboxError`` with the end of what it complained about."""
    env = dict(os.environ) | {"LC_ALL": "C.UTF-8", "PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"}
    done = supervisor.run(Command(argv=argv, cwd=str(cwd) if cwd else None, env=env, timeout=timeout, capture=BoundedOutput))
    if done.exit_code == 0:
        return done.stdout.text
    why = done.spawn_error or done.stderr.text.strip()[-500:] or done.stdout.text.strip()[-500:]
    ended = f"did not end within {timeout:g} s" if done.timed_out else f"failed with exit code {done.exit_code}"
    raise SandboxError(f"{argv[0]} {ended}: {why}", hint="install it or mend what it complains about; evalwright doctor")
