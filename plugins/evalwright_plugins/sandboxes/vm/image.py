"""Bootable images: a kernel, a first file system and a root, made once and kept under the digest of their parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm.cache import Cache, digest_of
from evalwright_plugins.sandboxes.vm.initramfs import agent_digest, write_initramfs
from evalwright_plugins.sandboxes.vm.kernel import fetch_kernel
from evalwright_plugins.sandboxes.vm.roots import busybox_path, root_recipe, write_root

__all__ = ["ROOTS", "Image", "build_image", "find_image"]

ROOTS = ("debian", "busybox")


@dataclass(frozen=True, slots=True)
class Image:
    """One image. ``key`` names its content; ``facts`` say what it was made of."""

    key: str
    directory: Path
    facts: Mapping[str, Any]

    @property
    def kernel(self) -> Path:
        """Return the kernel."""
        return self.directory / "vmlinuz"

    @property
    def initramfs(self) -> Path:
        """Return the first file system."""
        return self.directory / "initramfs.cpio"

    @property
    def root(self) -> Path:
        """Return the root file system."""
        return self.directory / "root.squashfs"

    @property
    def size_bytes(self) -> int:
        """Return the size on disk."""
        return sum(path.stat().st_size for path in (self.kernel, self.initramfs, self.root))

    @property
    def current(self) -> bool:
        """Tell whether the agent in it is the one that this version speaks with."""
        return self.facts.get("agent") == agent_digest()


def find_image(cache: Cache, root: str) -> Image | None:
    """Return the image that was built last with a root of that kind."""
    facts = cache.read(f"{root}.json")
    key = str(facts.get("key"))
    image = Image(key, cache.place("images", key), facts)
    return image if image.root.is_file() else None


def build_image(cache: Cache, root: str, packages: Sequence[str], supervisor: Supervisor, *, force: bool = False) -> Image:
    """Make an image, or take it from the cache, and make it the one that is used. Raises ``SandboxError``.

    ``packages`` are installed beside Python and git in a ``debian`` root. ``force`` makes the root anew.
    """
    if root == "busybox" and packages:
        raise SandboxError("a busybox root takes no packages", hint="use --root debian")
    with cache.locked(f"build-{root}"):
        kernel = fetch_kernel(cache, supervisor)
        busybox = busybox_path()
        root_key = root_recipe(root, packages)
        former = cache.read(f"root-{root_key}.json").get("revision", 0)
        revision = former + 1 if force or not former else former
        root_key = digest_of(root_key, revision)
        with cache.making("roots", root_key) as draft:
            if draft:
                write_root(root, packages, draft, supervisor)
        cache.write(f"root-{root_recipe(root, packages)}.json", {"revision": revision})
        key = digest_of(kernel.key, root_key, agent_digest(), busybox.stat().st_size)
        with cache.making("images", key) as draft:
            if draft:
                os.link(kernel.image, draft / "vmlinuz")
                os.link(cache.place("roots", root_key) / "root.squashfs", draft / "root.squashfs")
                write_initramfs(draft / "initramfs.cpio", kernel, busybox)
        facts = {"key": key, "root": root, "packages": sorted(packages), "kernel": kernel.package, "agent": agent_digest()}
        cache.write(f"{root}.json", facts)
    return Image(key, cache.place("images", key), facts)
