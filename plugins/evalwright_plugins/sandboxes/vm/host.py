"""What this host offers to machines: the rate of its time stamp counter, and whether KVM really works."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import time

from evalwright.errors import SandboxError
from evalwright.interfaces import Command
from evalwright.processes import Supervisor, boot_id
from evalwright_plugins.sandboxes.vm.cache import Cache, digest_of
from evalwright_plugins.sandboxes.vm.image import Image
from evalwright_plugins.sandboxes.vm.qemu import KVM, Hardware, probe_line
from evalwright_plugins.sandboxes.vm.tools import QEMU, call

__all__ = ["accelerator", "qemu_version", "tsc_khz"]

READ_COUNTER = bytes.fromhex("0f3148c1e2204809d0c3")
"""``rdtsc``; the two halves put together; return."""
MEASURE_SECONDS = 0.1
TOLERANCE = 0.002
PROBE_SECONDS = 20.0
PROBE_WORD = b"EVALWRIGHT-PROBE"


def qemu_version(supervisor: Supervisor) -> str:
    """Return the first line of what QEMU says about itself. Raises ``SandboxError`` when it is not installed."""
    return call(supervisor, [QEMU, "--version"]).splitlines()[0]


def tsc_khz(cache: Cache) -> int:
    """Return the rate of the time stamp counter in kHz, the same value for as long as it has not really changed."""
    with cache.locked("tsc"):
        known = cache.read("tsc.json")
        if known.get("boot_id") == boot_id():
            return int(known["khz"])
        measured = _measure()
        khz = int(known.get("khz", 0))
        if abs(measured - khz) > measured * TOLERANCE:
            khz = measured
        cache.write("tsc.json", {"boot_id": boot_id(), "khz": khz})
        return khz


def accelerator(cache: Cache, image: Image, wanted: str, supervisor: Supervisor) -> str:
    """Return ``kvm`` when that is wanted or, with ``auto``, when a guest was seen to start with it; else ``tcg``.

    The probe's answer is kept until the next boot: a device that can be opened says nothing about whether guests run.
    """
    if wanted != "auto":
        return wanted
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    name = f"kvm-{digest_of(boot_id(), qemu_version(supervisor), image.facts['kernel'])}.json"
    with cache.locked("kvm"):
        known = cache.read(name)
        if "works" not in known:
            known = {"works": _guest_starts(image, tsc_khz(cache), supervisor)}
            cache.write(name, known)
    return "kvm" if known["works"] else "tcg"


def _guest_starts(image: Image, khz: int, supervisor: Supervisor) -> bool:
    hardware = Hardware(machine="microvm", accelerator="kvm", memory_bytes=0, disk_bytes=0, tsc_khz=khz)
    done = supervisor.run(Command(argv=probe_line(image, hardware), env=dict(os.environ), timeout=PROBE_SECONDS))
    return PROBE_WORD in done.stdout.head


def _measure() -> int:
    """Count for a tenth of a second. ``SandboxError`` where no code may be made at run time."""
    with contextlib.suppress(OSError):
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(READ_COUNTER)
        counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        before, started = counter(), time.perf_counter()
        time.sleep(MEASURE_SECONDS)
        return int((counter() - before) / (time.perf_counter() - started) / 1000)
    raise SandboxError("the time stamp counter cannot be read here", hint="use another sandbox")
