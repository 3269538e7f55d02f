"""The sign-flip test: could differences of this size have had either sign?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from evalwright.stats._engine import Engine

_LISTED = 14
_MOST_BYTES = 500_000_000
_FINEST = 1000
_SLACK = 1e-9


def sign_flip_p(differences: Sequence[float], engine: Engine, *, flips: int, seed: int) -> tuple[float, bool]:
    """Return the two-sided p value that the differences are symmetric about 0, and whether it is exact.

    Fisher, "The design of experiments" (1935), section 21: of all ways to give the differences signs, the share whose sum is
    as far from 0 as the one seen. Up to 14 differences all ways are listed. More are counted exactly, hundreds or a
    thousand of them, if all are multiples of one unit, as those of passes and fails are; with one repeat that is McNemar's
    exact test. Beyond that ``flips`` are drawn at random, and the one seen counts with them, (b + 1) / (m + 1): Phipson and
    Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010).
    Differences of 0 carry no sign.
    """
    largest = max(map(abs, differences), default=0.0)
    signed = [difference / largest for difference in differences if abs(difference) > _SLACK * largest]
    if not signed:
        return 1.0, True
    if len(signed) <= _LISTED:
        return _listed(signed), True
    units = _in_units(signed)
    if units is not None and len(units) ** 2 * sum(map(abs, units)) < 8 * _MOST_BYTES:
        return _counted(units), True
    sums = engine.flip_signs([abs(value) for value in signed], flips, seed)
    threshold = _threshold(signed)
    return (sum(abs(total) >= threshold for total in sums) + 1) / (flips + 1), False


def _listed(signed: Sequence[float]) -> float:
    sums = [0.0]
    for value in signed:
        sums = [total + value for total in sums] + [total - value for total in sums]
    threshold = _threshold(signed)
    return sum(abs(total) >= threshold for total in sums) / len(sums)


def _threshold(signed: Sequence[float]) -> float:
    """Return how far from 0 the sum seen is, less what rounding may have added."""
    return abs(math.fsum(signed)) - _SLACK * len(signed)


def _in_units(signed: Sequence[float]) -> list[int] | None:
    """Return the values as multiples of their greatest common unit, or null if they have none of a sensible size."""
    shares = {value: Fraction(value).limit_denominator(_FINEST) for value in set(signed)}
    unit = math.lcm(*(share.denominator for share in shares.values()))
    if unit > _FINEST**2 or any(abs(value - share) > _SLACK for value, share in shares.items()):
        return None
    return [int(shares[value] * unit) for value in signed]


def _counted(units: Sequence[int]) -> float:
    """Return the exact share by counting, for every sum of some of the sizes, the choices that have it.

    The counts are the coefficients of the product of (1 + x^size), held as one integer with a field of ``width`` bytes for
    each: to multiply is to shift and add. Choosing the positive sizes decides the sum of signs, 2 s - total.
    """
    sizes = [abs(unit) for unit in units]
    total, seen, width = sum(sizes), abs(sum(units)), len(units) // 8 + 1
    product = 1
    for size in sizes:
        product += product << (8 * width * size)
    fields = product.to_bytes(width * (total + 1), "little")
    extreme: int = sum(
        int.from_bytes(fields[width * chosen : width * (chosen + 1)], "little")
        for chosen in range(total + 1)
        if abs(2 * chosen - total) >= seen
    )
    ways: int = 1 << len(units)
    return extreme / ways
