"""Which versions carry a trial out: a worker with others would measure something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright import __version__
from evalwright.canonical import digest_json
from evalwright.errors import PluginError
from evalwright.registry import Registry

__all__ = ["lock_of"]


def lock_of(tables: Mapping[str, Any], registry: Registry) -> str:
    """Return the digest of the distributions and versions of the core and of every plugin that a worker may use."""
    used = [("runner", tables["runner"]["use"]), ("sandbox", tables["sandbox"]["use"])]
    used += [("runner", use) for use in tables.get("workers", ())]
    used += [("sandbox", table["use"]) for table in tables.get("sandboxes", {}).values()]
    used += [("service", table["use"]) for table in tables.get("services", {}).values()]
    used += [("judge", table["use"]) for table in tables.get("judges", {}).values()]
    used += [("scorer", entry["table"]["use"]) for entry in tables["scorers"]]
    if transcript := tables["agent"].get("transcript"):
        used.append(("transcript", transcript["parser"]["use"]))
    found = {f"evalwright {__version__}", *(_version(registry, kind, use) for kind, use in used)}
    return digest_json(sorted(found))


def _version(registry: Registry, kind: str, use: str) -> str:
    try:
        loaded = registry.load(kind, use)
        return f"{loaded.distribution} {loaded.version}"
    except PluginError:
        return f"no {kind} {use}"
