"""The importer: one name for all that this harness keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalwright.interfaces import Imported, Importer
from evalwright_adapters.lastlight.config import LastlightConfig
from evalwright_adapters.lastlight.instances import read_tier
from evalwright_adapters.lastlight.source import TierFiles, find_source
from evalwright_adapters.lastlight.tiers import suite_of_tier

__all__ = ["LastlightImporter"]


class LastlightImporter(Importer[LastlightConfig]):
    """Reads a tier as a suite."""

    api = "importer/1.0"
    Config = LastlightConfig

    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe what lies at ``source``. Raises ``SourceMissing`` or ``UsageError``."""
        found = find_source(source)
        if isinstance(found, TierFiles):
            yield from suite_of_tier(read_tier(found), self.config, _license_of(found.place))


def _license_of(place: Path) -> bytes | None:
    """Return the licence that lies in the tier, beside it, or beside the directory of all tiers."""
    for directory in (place, place.parent, place.parent.parent):
        if (directory / "LICENSE").is_file():
            return (directory / "LICENSE").read_bytes()
    return None
