"""Which part of a case's ``expect`` a scorer sees: the keys that it owns, or what stands under its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import is_object
from evalwright.interfaces import Scorer
from evalwright.model import ScorerEntry

__all__ = ["own_expectations"]


def own_expectations(entry: ScorerEntry, scorer: Scorer[Any], expect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scorer's own expectations by key. A value under the scorer's id stands for those it does not find."""
    own = {key: expect[key] for key in scorer.Expect if key in expect}
    if own or entry.id not in expect or entry.id in scorer.Expect:
        return own
    value = expect[entry.id]
    if len(scorer.Expect) == 1:
        return {next(iter(scorer.Expect)): value}
    return dict(value) if is_object(value) else {}
