"""What is installed: entry points listed by stevedore, none imported, each with the distribution it comes from."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from evalwright.errors import PluginAmbiguous, PluginNotFound

__all__ = ["GROUPS", "Catalog", "Listing"]

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "runner": "evalwright.runners",
        "scorer": "evalwright.scorers",
        "sandbox": "evalwright.sandboxes",
        "queue": "evalwright.queues",
        "judge": "evalwright.judges",
        "service": "evalwright.services",
        "importer": "evalwright.importers",
        "exporter": "evalwright.exporters",
        "transcript": "evalwright.transcripts",
        "command": "evalwright.commands",
        "hook": "evalwright.hooks",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One entry point as installed. ``target`` is ``module:Class``."""

    kind: str
    name: str
    target: str
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        """Return the distribution and its version, for messages."""
        return f"{self.distribution} {self.version}"


class Catalog:
    """The installed plugins of every kind. Reading it imports none of them."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Sequence[Listing]] = {}

    def listings(self, kind: str) -> Sequence[Listing]:
        """Return every entry of a kind, sorted by name, then distribution."""
        if kind not in self._by_kind:
            self._by_kind[kind] = self._read(kind)
        return self._by_kind[kind]

    def find(self, kind: str, name: str, distribution: str | None = None) -> Listing:
        """Return the one entry of that name.

        Raises ``PluginNotFound`` with the nearest names, or ``PluginAmbiguous`` naming every distribution that claims it.
        """
        claims = [item for item in self.listings(kind) if item.name == name]
        if distribution is not None:
            claims = [item for item in claims if _normal(item.distribution) == _normal(distribution)]
        if len(claims) > 1:
            origins = ", ".join(item.origin for item in claims)
            raise PluginAmbiguous(
                f'two packages offer the {kind} "{name}": {origins}',
                hint=f'name one of them: "{claims[0].distribution}:{name}"',
                valid_values=[f"{item.distribution}:{name}" for item in claims],
            )
        if not claims:
            raise self._not_found(kind, name)
        return claims[0]

    def _not_found(self, kind: str, name: str) -> PluginNotFound:
        import difflib

        names = sorted({item.name for item in self.listings(kind)})
        near = difflib.get_close_matches(name, names, 1)
        return PluginNotFound(
            f'no {kind} is called "{name}"',
            hint=f"did you mean {near[0]}?" if near else f"installed: {', '.join(names) or 'none'}",
            did_you_mean=near[0] if near else None,
            valid_values=names,
        )

    def _read(self, kind: str) -> Sequence[Listing]:
        from stevedore.named import NamedExtensionManager

        NamedExtensionManager.ENTRY_POINT_CACHE.pop(GROUPS[kind], None)
        found = [item for item in _installed(tuple(sys.path)) if item.kind == kind]
        try:
            manager: NamedExtensionManager[object] = NamedExtensionManager(GROUPS[kind], names=[])
            pairs = {(point.name, point.value) for point in manager.list_entry_points()}
            found = [item for item in found if (item.name, item.target) in pairs]
        except (OSError, ValueError):
            # One distribution whose metadata cannot be read must not hide the others.
            pass
        return sorted(found, key=lambda item: (item.name, item.distribution))


@lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> Sequence[Listing]:
    """Return what the metadata of every distribution on a path declares; stevedore's own entries do not say whose they are."""
    kinds = {group: kind for kind, group in GROUPS.items()}
    found: dict[str, list[Listing]] = {}
    for distribution in importlib.metadata.distributions(path=list(path)):
        try:
            if "[evalwright." not in (distribution.read_text("entry_points.txt") or ""):
                continue
            points = [point for point in distribution.entry_points if point.group in kinds]
            about = distribution.metadata
            if "Name" not in about or "Version" not in about:
                continue
            name, version = str(about["Name"]), str(about["Version"])
            if _shadowed(name, version):
                continue
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        found.setdefault(
            _normal(name),
            [
                Listing(kind=kinds[point.group], name=point.name, target=point.value, distribution=name, version=version)
                for point in points
            ],
        )
    return [listing for listings in found.values() for listing in listings]


def _shadowed(name: str, version: str) -> bool:
    """Tell whether another copy of a distribution, nearer on the path, is the one that is really installed."""
    try:
        return importlib.metadata.version(name) != version
    except importlib.metadata.PackageNotFoundError:
        return False


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
