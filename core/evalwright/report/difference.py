"""How one arm differs from another, as a report shows it, wherever the figures come from."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Difference"]


class Difference(NamedTuple):
    """One comparison: ``label`` says what against what; ``low`` and ``high`` are the interval; ``answer`` is a word.

    ``low``, ``high`` and ``p`` are ``None`` where they are unknown. ``note`` may add a sentence.
    """

    label: str
    difference: float | None
    low: float | None
    high: float | None
    answer: str
    p: float | None = None
    note: str = ""

    @property
    def sentence(self) -> str:
        """Return the comparison as one line."""
        text = f"{self.label}: {self.answer}"
        if self.difference is not None:
            text += f", {self.difference:+.2f}".replace("-", "−")
        if self.low is not None and self.high is not None:
            text += f" ({self.low:+.2f} – {self.high:+.2f})".replace("-", "−")
        if self.p is not None:
            text += f", p = {self.p:.3f}" if self.p >= 0.001 else ", p < 0.001"
        return f"{text}. {self.note}".rstrip() if self.note else f"{text}."
