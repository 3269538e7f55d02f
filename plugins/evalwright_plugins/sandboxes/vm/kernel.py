"""The guest's kernel: the one that this Debian names for clouds, unpacked without being installed."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

from evalwright.errors import SandboxError
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm.cache import Cache, digest_of
from evalwright_plugins.sandboxes.vm.tools import call

__all__ = ["Kernel", "fetch_kernel"]

META_PACKAGE = "linux-image-cloud-amd64"
DOWNLOAD_SECONDS = 600.0
MODULES = (
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_mmio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "drivers/char/virtio_console",
    "fs/squashfs/squashfs",
    "fs/overlayfs/overlay",
)
"""What the guest needs, in the order in which it must be loaded."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel package."""

    package: str
    key: str
    directory: Path

    @property
    def image(self) -> Path:
        """Return the kernel itself."""
        return next((self.directory / "boot").glob("vmlinuz-*"))

    def modules(self) -> dict[str, bytes]:
        """Return the needed modules by name, in loading order; what is built in is left out."""
        root = next((self.directory / "lib" / "modules").iterdir()) / "kernel"
        found: dict[str, bytes] = {}
        for name in MODULES:
            plain, packed = root / f"{name}.ko", root / f"{name}.ko.xz"
            if plain.is_file():
                found[plain.stem] = plain.read_bytes()
            elif packed.is_file():
                found[plain.stem] = lzma.decompress(packed.read_bytes())
        return found


def fetch_kernel(cache: Cache, supervisor: Supervisor) -> Kernel:
    """Return the kernel that apt would install now, downloaded if it is not in the cache. Raises ``SandboxError``."""
    package = _package(supervisor)
    shown = call(supervisor, ["apt-cache", "show", "--no-all-versions", package])
    facts = dict(line.split(": ", 1) for line in shown.splitlines() if ": " in line)
    key = digest_of(package, facts.get("Version"), facts.get("SHA256"))
    with cache.making("kernels", key) as draft:
        if draft:
            download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", package]
            call(supervisor, download, cwd=draft, timeout=DOWNLOAD_SECONDS)
            archive = next(draft.glob("*.deb"))
            call(supervisor, ["dpkg", "-x", str(archive), str(draft)])
            archive.unlink()
    return Kernel(package, key, cache.place("kernels", key))


def _package(supervisor: Supervisor) -> str:
    text = call(supervisor, ["apt-cache", "depends", META_PACKAGE])
    for line in text.splitlines():
        word, _, name = line.strip().partition(": ")
        if word == "Depends" and name.startswith("linux-image-"):
            return name
    raise SandboxError(f"apt knows no {META_PACKAGE}", hint="refresh its lists: apt-get update")
