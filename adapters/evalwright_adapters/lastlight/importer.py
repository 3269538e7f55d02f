"""The importer: one name for all that this harness keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalwright.errors import SourceMissing
from evalwright.interfaces import Imported, Importer
from evalwright_adapters.lastlight.config import LastlightConfig
from evalwright_adapters.lastlight.instances import read_tier
from evalwright_adapters.lastlight.leaderboard import Leaderboard, read_leaderboard, reference_experiment
from evalwright_adapters.lastlight.results import experiment_of
from evalwright_adapters.lastlight.source import LEADERBOARD, Results, TierFiles, find_source
from evalwright_adapters.lastlight.tiers import suite_of_tier

__all__ = ["LastlightImporter"]

LEVELS = 3


class LastlightImporter(Importer[LastlightConfig]):
    """Reads a tier as a suite, scorecards as an experiment, a leaderboard as an experiment of reference scores."""

    api = "importer/1.0"
    Config = LastlightConfig

    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe what lies at ``source``. Raises ``SourceMissing`` or ``UsageError``."""
        found = find_source(source)
        if isinstance(found, TierFiles):
            yield from suite_of_tier(read_tier(found), self.config, _license_of(found.place))
        elif isinstance(found, Results):
            yield from experiment_of(found, self._leaderboard(found.place), self.host)
        else:
            yield from reference_experiment(read_leaderboard(found.path))

    def _leaderboard(self, place: Path) -> Leaderboard | None:
        """Return the leaderboard that the user names, or one that lies with the results or up to three directories above."""
        if self.config.leaderboard is not None:
            named = Path(self.config.leaderboard)
            if not named.is_file():
                raise SourceMissing(f"there is no leaderboard at {named}", hint=f"Name a {LEADERBOARD}.")
            return read_leaderboard(named)
        here = place.resolve()
        near = [directory / LEADERBOARD for directory in (here, *here.parents[:LEVELS])]
        return next((read_leaderboard(path) for path in near if path.is_file()), None)


def _license_of(place: Path) -> bytes | None:
    """Return the licence that lies in the tier, beside it, or beside the directory of all tiers."""
    for directory in (place, place.parent, place.parent.parent):
        if (directory / "LICENSE").is_file():
            return (directory / "LICENSE").read_bytes()
    return None
