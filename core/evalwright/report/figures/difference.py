"""How one arm differs from another, as reports and pictures show it, wherever the figures come from."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Difference"]


class Difference(NamedTuple):
    """One comparison: ``label`` says what against what, ``sentence`` all of it in words.

    ``difference`` and the ends of its interval, ``low`` and ``high``, are ``None`` where they are unknown. ``answer`` is
    ``better``, ``worse`` or ``no-evidence``.
    """

    label: str
    difference: float | None
    low: float | None
    high: float | None
    answer: str
    sentence: str
