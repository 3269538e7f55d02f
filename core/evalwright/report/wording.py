"""How a thing is said in one line, safely: text for a terminal, a finding, figures with their signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import stable_json

__all__ = ["digits_of", "finding_text", "printable", "shown", "signed"]

WIDTH = 160


def printable(text: str) -> str:
    """Return text without characters that a terminal would act on; each stands as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def finding_text(finding: Mapping[str, Any]) -> str:
    """Return a finding as one line of at most 160 characters: what it is about, why, and the rest in brackets."""
    subject = finding.get("test") or finding.get("path") or ""
    why = str(finding.get("why", ""))
    value = f" {stable_json(finding['value'])}" if "value" in finding else ""
    rest = {
        key: item for key, item in finding.items() if key not in {"test", "path", "why", "value"} and item not in ("", None)
    }
    details = ", ".join(f"{key} {item if isinstance(item, str) else stable_json(item)}" for key, item in rest.items())
    text = f"{subject}: {why}{value}" if subject else f"{why}{value}"
    text = printable(" ".join(f"{text} ({details})".split() if details else text.split()))
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def signed(value: float, digits: int = 2) -> str:
    """Return a figure with its sign and so many digits after the point."""
    return f"{value:+.{digits}f}"


def digits_of(value: float) -> int:
    """Return how many digits after the point show two significant ones: 2 at least, 4 at most."""
    return 2 if value == 0 or abs(value) >= 0.095 else 3 if abs(value) >= 0.0095 else 4


def shown(value: float | None) -> str:
    """Return a figure of at most three significant digits; a dash for one that is unknown."""
    return "–" if value is None else f"{value:.2f}" if 0.01 <= abs(value) < 100 else f"{value:.3g}"
