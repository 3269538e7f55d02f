"""What a run measures, as its record holds it and as its ledger names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import array_pieces, digest_pieces

__all__ = ["IDENTITY_CASES", "identity_in_brief"]

IDENTITY_CASES = ("suite_identity", "cases")
"""Where the one long list of a run's record stands."""


def identity_in_brief(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity with one digest in the place of its cases: two with the same brief form are the same."""
    return {**identity, "cases": digest_pieces(array_pieces(identity["cases"]))}
