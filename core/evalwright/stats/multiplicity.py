"""Many questions asked of the same data: many arms, or the same arms looked at again and again."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evalwright.errors import UsageError
from evalwright.stats.outcomes import at_least, fraction


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return adjusted p values, to be held against alpha: the chance of any false alarm among them stays at alpha or below.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979). Raises
    ``UsageError`` at a p value outside 0 to 1.
    """
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise UsageError(f"{name!r} has the p value {p}", hint="a p value lies between 0 and 1")
    adjusted, floor = dict[str, float](), 0.0
    for position, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        floor = max(floor, min(1.0, (len(p_values) - position) * p))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p_values}


def look_alpha(alpha: float, look: int, *, planned: int | None = None) -> float:
    """Return the alpha that the ``look``-th look (from 1) at growing data may use, so that all looks together keep ``alpha``.

    With ``planned`` looks in all: the increments of the spending function alpha ln(1 + (e - 1) k / planned) of Lan and
    DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), Pocock-like; one planned look spends
    all of it; a look past the plan has nothing left and gets 0.0. Without: alpha 6 / (pi k) squared, whose sum over all
    k is alpha (Euler, 1735), however many looks there will be. Each increment is used as a level of its own, so the
    union bound alone keeps the total: no assumption on how the looks depend on one another.
    """
    fraction(alpha, "alpha")
    at_least(look, 1, "look")
    if planned is None:
        return alpha * 6 / (math.pi * look) ** 2
    if look > at_least(planned, 1, "planned looks"):
        return 0.0
    spent = [alpha * math.log1p((math.e - 1) * number / planned) for number in (look - 1, look)]
    return spent[1] - spent[0]
