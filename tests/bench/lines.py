"""What a row says: lines of figures side by side, what each is held against, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["FLOOR", "OURS", "Line", "Row", "Target"]

OURS, FLOOR = "ours", "floor"


@dataclass(frozen=True, slots=True)
class Target:
    """At most so many ``times`` the figure of the side ``of``; without a side, at most that figure in the line's unit."""

    times: float
    of: str | None = None

    def held_by(self, sides: Mapping[str, float]) -> bool | None:
        """Tell whether our figure holds it; ``None`` when it was not measured, or is lost in noise.

        A ratio needs two figures above nothing; a difference of two measurings may be below it.
        """
        if OURS not in sides:
            return None
        if self.of is None:
            return sides[OURS] <= self.times
        if self.of not in sides or min(sides[OURS], sides[self.of]) <= 0:
            return None
        return sides[OURS] <= self.times * sides[self.of]

    def words(self, unit: str) -> str:
        """Return it as people read it."""
        return f"<= {self.times:g} {unit}".rstrip() if self.of is None else f"<= {self.times:g}x {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of each side, in ``unit``; ``note`` says what a reader must know to read it."""

    label: str
    unit: str
    sides: Mapping[str, float]
    targets: Sequence[Target] = ()
    note: str = ""

    def ratio(self, side: str) -> float | None:
        """Return how many times the figure of a side ours is; ``None`` where one of the two is not above nothing."""
        divisor = self.sides.get(side, 0.0)
        return self.sides[OURS] / divisor if divisor > 0 and self.sides.get(OURS, 0.0) > 0 else None

    @property
    def verdict(self) -> str:
        """Return ``met``, ``missed``, ``not measured``, or nothing where there is no target."""
        held = [target.held_by(self.sides) for target in self.targets]
        if False in held:
            return "missed"
        return "not measured" if None in held else "met" if held else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: its lines, or ``absent``, which says why there are none: something is missing, or it is ``broken``.

    ``stamp`` says when and where it was measured.
    """

    id: str
    what: str
    lines: Sequence[Line] = ()
    absent: str = ""
    broken: bool = False
    stamp: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def missed(self) -> list[Line]:
        """Return the lines that miss a target."""
        return [line for line in self.lines if line.verdict == "missed"]

    def as_json(self) -> dict[str, Any]:
        """Return all fields, and each line's verdict."""
        lines = [asdict(line) | {"verdict": line.verdict} for line in self.lines]
        told = {"absent": self.absent, "broken": self.broken, "stamp": dict(self.stamp)}
        return {"id": self.id, "what": self.what, "lines": lines} | told

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Row:
        """Return the row that :meth:`as_json` told. Raises ``KeyError`` or ``TypeError`` for another document."""
        lines = [
            Line(
                label=line["label"],
                unit=line["unit"],
                sides=line["sides"],
                targets=[Target(**target) for target in line["targets"]],
                note=line["note"],
            )
            for line in document["lines"]
        ]
        told = {name: document[name] for name in ("id", "what", "absent", "broken", "stamp")}
        return Row(lines=lines, **told)
