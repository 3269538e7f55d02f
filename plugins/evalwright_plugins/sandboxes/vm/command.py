"""Build or show the images of virtual machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalwright.interfaces import PluginVerb, VerbAnswer, VerbFlag

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.cache import Cache
    from evalwright_plugins.sandboxes.vm.image import Image

__all__ = ["VmVerb"]

Record = dict[str, Any]
ROOTS = ("debian", "busybox")
MIB = 1 << 20


class VmVerb(PluginVerb):
    """``vm build`` makes the image that the sandbox ``vm`` boots; ``vm status`` says which ones there are."""

    args = ("build|status",)
    flags = (
        VerbFlag(name="--root", help="build: a small Debian (default), or busybox and this Python", choices=ROOTS),
        VerbFlag(name="--package", kind="list", help="build: a Debian package to install as well (repeatable)", metavar="NAME"),
        VerbFlag(name="--force", kind="flag", help="build: make the root anew, with the packages of today"),
        VerbFlag(name="--cache", help="directory of images and snapshots, instead of the usual one", metavar="PATH"),
    )
    exit_codes = (0, 1, 3)
    mutates = True

    def answer(self, options: Any, warn: Callable[[str, str], None]) -> VerbAnswer:
        """Build, or look."""
        from evalwright_plugins.sandboxes.vm.cache import Cache

        cache = Cache(options.cache)
        return _build(cache, options) if options.action == "build" else _status(cache)


def _build(cache: Cache, options: Any) -> VerbAnswer:
    from evalwright.errors import SandboxError, UsageError
    from evalwright.processes import Supervisor
    from evalwright_plugins.sandboxes.vm.image import build_image
    from evalwright_plugins.sandboxes.vm.tools import BUILD_PROGRAMS, DEBIAN_PROGRAMS, missing_packages

    root = options.root or ROOTS[0]
    try:
        cache.prepare()
    except OSError as error:
        raise UsageError(
            f"images cannot be kept in {cache.directory}: {error}", hint="name a directory", key="cache"
        ) from error
    missing = missing_packages({**BUILD_PROGRAMS, **(DEBIAN_PROGRAMS if root == "debian" else {})})
    if missing:
        raise SandboxError(f"programs are missing: {', '.join(missing)}", hint=f"apt-get install {' '.join(missing)}")
    with Supervisor() as supervisor:
        image = build_image(cache, root, options.package, supervisor, force=options.force)
    data = _image(image)
    text = f"built: {_line(data)}\n"
    return VerbAnswer(data=data, text=text, next_steps={"evalwright vm status": "see what there is, and what runs it"})


def _status(cache: Cache) -> VerbAnswer:
    from evalwright.processes import Supervisor
    from evalwright_plugins.sandboxes.vm import host
    from evalwright_plugins.sandboxes.vm.image import find_image
    from evalwright_plugins.sandboxes.vm.tools import RUN_PROGRAMS, missing_packages

    images = [image for root in ROOTS if (image := find_image(cache, root))]
    missing = missing_packages(RUN_PROGRAMS)
    accelerator = version = None
    if not missing:
        with Supervisor() as supervisor:
            version = host.qemu_version(supervisor)
            accelerator = host.accelerator(cache, images[0], "auto", supervisor) if images else None
    data: Record = {
        "cache": str(cache.directory),
        "images": [_image(image) for image in images],
        "qemu": version,
        "accelerator": accelerator,
        "missing_packages": missing,
    }
    steps = {} if images else {"evalwright vm build": "there is no image yet"}
    return VerbAnswer(data=data, text=_text(data), next_steps=steps)


def _image(image: Image) -> Record:
    from evalwright_plugins.sandboxes.vm.snapshot import snapshots_of

    snapshots = [
        {"key": found.directory.name, "size_bytes": found.size_bytes, "machine": found.machine} for found in snapshots_of(image)
    ]
    return {
        "root": image.facts["root"],
        "key": image.key,
        "path": str(image.directory),
        "size_bytes": image.size_bytes,
        "kernel": image.facts["kernel"],
        "packages": image.facts["packages"],
        "snapshots": snapshots,
    }


def _text(data: Record) -> str:
    lines = [_line(image) for image in data["images"]] or ["no image: evalwright vm build"]
    lines.append(f"cache {data['cache']}")
    lines.append(f"{data['qemu'] or 'QEMU is not installed'}, accelerator {data['accelerator'] or 'not known before an image'}")
    if data["missing_packages"]:
        lines.append(f"missing: apt-get install {' '.join(data['missing_packages'])}")
    return "\n".join(lines) + "\n"


def _line(image: Record) -> str:
    snapshots = ", ".join(f"{each['machine']} {each['size_bytes'] // MIB} MiB" for each in image["snapshots"]) or "none yet"
    packages = f" with {' '.join(image['packages'])}" if image["packages"] else ""
    size = image["size_bytes"] // MIB
    return f"{image['root']}{packages}: {image['key']}, {size} MiB, {image['kernel']}, snapshots: {snapshots}"
