"""Reads what Last Light's evaluation harness keeps: tiers of cases, scorecards of runs, and an external leaderboard."""

from evalwright_adapters.lastlight.importer import LastlightImporter

__all__ = ["LastlightImporter"]
