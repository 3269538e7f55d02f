"""QEMU's command line: which machine it makes, from which files, with which rights."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright_plugins.sandboxes.vm.image import Image
from evalwright_plugins.sandboxes.vm.place import MACHINE_USER
from evalwright_plugins.sandboxes.vm.tools import QEMU, program

__all__ = ["AGENT_SOCKET", "MONITOR_SOCKET", "Hardware", "command_line", "probe_line"]

AGENT_SOCKET = "agent.sock"
MONITOR_SOCKET = "monitor.sock"
KVM = Path("/dev/kvm")
ROOT, KERNEL, INITRAMFS, MEMORY = 3, 4, 5, 6
TRANSLATION_MIB = 64
CONFINED = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
APPEND = "console=ttyS0 quiet panic=-1 reboot=t mitigations=off random.trust_cpu=on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a guest finds. ``machine`` is ``microvm`` or ``q35``, ``accelerator`` ``tcg`` or ``kvm``.

    ``tsc_khz`` is the rate of the host's time stamp counter, without which a ``microvm`` cannot measure time.
    """

    machine: str
    accelerator: str
    memory_bytes: int
    disk_bytes: int
    tsc_khz: int


def command_line(image: Image, hardware: Hardware, memory: Path, *, private: bool, restored: bool) -> list[str]:
    """Return the command of a machine; it is to be started in its own directory.

    ``memory`` holds the guest's memory. With ``private`` what the guest writes there is its own and lost at its end.
    """
    bus = "device" if hardware.machine == "microvm" else "pci"
    size = hardware.memory_bytes
    share = "off" if private else "on"
    words = [
        *("-M", f"{hardware.machine},memory-backend=ram"),
        *("-object", f"memory-backend-file,id=ram,size={size},mem-path=/proc/self/fd/{MEMORY},share={share}"),
        *("-m", f"{size // (1 << 20)}"),
        *_common(hardware),
        *("-append", f"{APPEND} tsc_early_khz={hardware.tsc_khz}"),
        *("-drive", f"id=root,file=/proc/self/fd/{ROOT},format=raw,if=none,readonly=on,file.locking=off"),
        *("-device", f"virtio-blk-{bus},drive=root,serial=root"),
        *("-drive", "id=transfer,file=disk,format=raw,if=none,cache=unsafe,file.locking=off"),
        *("-device", f"virtio-blk-{bus},drive=transfer,serial=transfer"),
        *("-device", f"virtio-serial-{bus}"),
        *("-chardev", f"socket,id=agent,path={AGENT_SOCKET},server=on,wait=off"),
        *("-device", "virtserialport,chardev=agent,name=evalwright"),
        *("-qmp", f"unix:{MONITOR_SOCKET},server=on,wait=off"),
    ]
    return _with_files([QEMU, *words, *(["-incoming", "defer"] if restored else [])], image, memory)


def probe_line(image: Image, hardware: Hardware) -> list[str]:
    """Return the command of a machine that only says on its console that it has started, and ends."""
    words = ["-M", hardware.machine, "-m", "128", *_common(hardware)]
    append = f"{APPEND} tsc_early_khz={hardware.tsc_khz} evalwright.probe"
    return _with_files([QEMU, *words, "-append", append], image, Path(os.devnull))


def _common(hardware: Hardware) -> list[str]:
    tcg = f"tcg,thread=multi,tb-size={TRANSLATION_MIB}"
    return [
        *("-accel", "kvm" if hardware.accelerator == "kvm" else tcg),
        *("-cpu", "max", "-smp", "1", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-sandbox", CONFINED),
        *("-kernel", f"/proc/self/fd/{KERNEL}", "-initrd", f"/proc/self/fd/{INITRAMFS}"),
    ]


def _with_files(words: Sequence[str], image: Image, memory: Path) -> list[str]:
    """Return a command that opens the machine's files for it, so that it needs no right to any directory, and drops root."""
    files = {ROOT: image.root, KERNEL: image.kernel, INITRAMFS: image.initramfs}
    opened = " ".join(f"{number}<{shlex.quote(str(path))}" for number, path in files.items())
    return ["/bin/sh", "-c", f'exec "$@" {opened} {MEMORY}<>{shlex.quote(str(memory))}', "sh", *_unprivileged(), *words]


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    user = f"{MACHINE_USER}"
    words = [program("setpriv") or "setpriv", f"--reuid={user}", f"--regid={user}", *_groups()]
    return [*words, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]


def _groups() -> list[str]:
    """Let the machine keep the group that may use KVM, if there is one, and no other."""
    try:
        status = KVM.stat()
    except OSError:
        return ["--clear-groups"]
    usable = stat.S_IMODE(status.st_mode) & 0o060 == 0o060 and status.st_gid != 0
    return [f"--groups={status.st_gid}"] if usable else ["--clear-groups"]
