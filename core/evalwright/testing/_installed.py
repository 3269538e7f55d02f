"""Make a class discoverable by name, as an installed distribution would."""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.interfaces import Plugin
from evalwright.registry import GROUPS

__all__ = ["installed"]

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


@contextlib.contextmanager
def installed(
    kind: str,
    name: str,
    cls: type[Plugin[Any]],
    *,
    distribution: str = "evalwright-test-plugin",
    version: str = "1.0",
) -> Generator[str]:
    """Install a distribution that offers ``cls`` under ``name`` while the block runs, and give that name.

    It is a real ``.dist-info`` directory on ``sys.path``, so that discovery, provenance and duplicates behave as they do for
    a package; only the class itself stays in this process. Registries made inside the block see it.
    """
    module = ModuleType(f"evalwright_installed_{id(cls):x}")
    setattr(module, "plugin", cls)  # noqa: B010  # a module has no such attribute for a type checker
    with tempfile.TemporaryDirectory(prefix="evalwright-installed-") as place:
        info = Path(place) / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA.format(name=distribution, version=version), encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{GROUPS[kind]}]\n{name} = {module.__name__}:plugin\n", encoding="utf-8")
        sys.modules[module.__name__] = module
        sys.path.append(place)
        _forget()
        try:
            yield name
        finally:
            sys.path.remove(place)
            sys.modules.pop(module.__name__, None)
            _forget()


def _forget() -> None:
    """Make the next look see what is installed now: stevedore remembers entry points for the whole process."""
    importlib.invalidate_caches()
    extension = sys.modules.get("stevedore.extension")
    if extension is not None:
        extension.ExtensionManager.ENTRY_POINT_CACHE.clear()
