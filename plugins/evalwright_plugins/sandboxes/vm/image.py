"""Bootable images: a kernel, a first file system and a root, made once and kept under the digest of their parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.errors import UsageError
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm.cache import Cache, digest_of, file_digest
from evalwright_plugins.sandboxes.vm.initramfs import agent_digest, write_initramfs
from evalwright_plugins.sandboxes.vm.kernel import fetch_kernel
from evalwright_plugins.sandboxes.vm.roots import busybox_path, root_recipe, write_root

__all__ = ["ROOTS", "SNAPSHOTS", "Image", "build_image", "find_image"]

ROOTS = ("debian", "busybox")
SNAPSHOTS = "snapshots"
KEPT_SECONDS = 30 * 24 * 3600.0


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


def find_image(cache: Cache, root: str) -> Image | None:
    """Return the image with a root of that kind that was built last for this version; it counts as used now."""
    facts = cache.read(_record(root), touch=True)
    key = str(facts.get("key"))
    image = Image(key, cache.place("images", key), facts)
    return image if image.root.is_file() else None


def build_image(cache: Cache, root: str, packages: Sequence[str], supervisor: Supervisor, *, force: bool = False) -> Image:
    """Make an image, or take it from the cache, and make it the one that is used. Raises ``SandboxError``,
    ``UsageError`` for packages where there can be none.

    ``packages`` are installed beside Python and git in a ``debian`` root. ``force`` makes the root anew.
    """
    if root == "busybox" and packages:
        raise UsageError("a busybox root takes no packages", hint="use --root debian", key="package")
    with cache.locked("build"):
        kernel = fetch_kernel(cache, supervisor)
        busybox = busybox_path()
        root_key = _make_root(cache, root, packages, supervisor, force=force)
        key = digest_of(kernel.key, root_key, agent_digest(), file_digest(busybox))
        with cache.making("images", key) as draft:
            if draft:
                os.link(kernel.image, draft / "vmlinuz")
                os.link(cache.place("roots", root_key) / "root.squashfs", draft / "root.squashfs")
                write_initramfs(draft / "initramfs.cpio", kernel, busybox)
        parts = {"kernels": kernel.key, "roots": root_key}
        facts = {"key": key, "root": root, "packages": sorted(packages), "kernel": kernel.package, "parts": parts}
        cache.write(_record(root), facts)
        _prune(cache)
    return Image(key, cache.place("images", key), facts)


def _make_root(cache: Cache, root: str, packages: Sequence[str], supervisor: Supervisor, *, force: bool) -> str:
    """Make a root, unless its recipe was followed before, and return its key."""
    recipe = f"recipe-{root_recipe(root, packages)}.json"
    former = int(cache.read(recipe).get("revision", 0))
    revision = former + 1 if force or not former else former
    key = digest_of(recipe, revision)
    with cache.making("roots", key) as draft:
        if draft:
            write_root(root, packages, draft, supervisor)
    cache.write(recipe, {"revision": revision})
    return key


def _record(root: str) -> str:
    """Return where it is noted which image is used; versions that share a cache do not take one another's."""
    return f"build-{root}-{agent_digest()}.json"


def _prune(cache: Cache) -> None:
    """Remove images that were not used for long, or replaced, with their parts and snapshots; never one that is in use."""
    builds = cache.recent("build-*.json", KEPT_SECONDS)
    for key in cache.prune("images", {str(facts.get("key")) for facts in builds}):
        cache.prune(SNAPSHOTS, {path.name for path in cache.place(SNAPSHOTS, "").glob("*") if not path.name.startswith(key)})
    for kind in ("kernels", "roots"):
        cache.prune(kind, {str(facts.get("parts", {}).get(kind)) for facts in builds})
