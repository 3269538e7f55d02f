"""The band of repeats in words."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.report.figures.banding import ArmBand
from evalwright.report.wording import printable, shown

__all__ = ["band_text"]

MAX_NAMES = 12


def band_text(found: ArmBand) -> str:
    """Return the spread first, then what any or all repeats reach, then which cases flip."""
    lines = [_headline(found)]
    if found.lost:
        lines.append(f"  Not scored in every repeat: {_names(found.lost)}: {len(found.lost)} of {found.cases} cases")
    if found.items:
        count = len(found.union_at_k)
        lines.append(f"  hit by any repeat {found.union} of {found.items}, by every repeat {found.intersection}")
        lines.append(f"  by any of k = 1 … {count}: {_row(found.union_at_k)}")
        lines.append(f"  by all of k = 1 … {count}: {_row(found.intersection_at_k)}")
    if found.flip_rate is not None:
        lines.append(f"  a case comes out differently in {found.flip_rate:.0%} of all pairs of repeats")
    for kind, label in (("flaky", "Flaky (pass in some repeats)"), ("never", "Never passed")):
        names = sorted(case for case, its in found.stability.items() if its == kind)
        if names:
            lines.append(f"  {label}: {_names(names)}")
    return "\n".join(lines) + "\n"


def _names(names: Sequence[str]) -> str:
    more = f", … ({len(names)})" if len(names) > MAX_NAMES else ""
    return printable(", ".join(names[:MAX_NAMES])) + more


def _headline(found: ArmBand) -> str:
    values = ", ".join(shown(value) for value in found.values)
    arm, band = printable(found.arm), found.band
    if band is None or band.repeats < 2:
        return f"{arm} · {found.metric} {values} in one repeat: a band needs two or more"
    interval = "" if band.interval is None else f" ({band.interval.low:.2f} – {band.interval.high:.2f})"
    spread = f"{shown(band.minimum)} to {shown(band.maximum)}"
    return f"{arm} · {found.metric} {shown(band.mean)}{interval} over {band.repeats} repeats, {spread}: {values}"


def _row(values: Sequence[float | None]) -> str:
    return "  ".join(shown(value) for value in values)
