"""Random resampling with the standard library alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from random import Random
from typing import Final, Literal

from evalwright.stats._pairs import Pairs


class PythonEngine:
    """Resamples one by one. The same seed gives the same answers on every machine."""

    @property
    def name(self) -> Literal["python"]:
        """Return what a record calls this engine."""
        return "python"

    def resample_cells(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Return means of differences over cases drawn at random, each with its repeats drawn at random."""
        random = Random(seed)
        cells, count = list(zip(pairs.first, pairs.second, strict=True)), len(pairs)
        return [
            math.fsum(
                sum(random.choices(second, k=len(second))) / len(second) - sum(random.choices(first, k=len(first))) / len(first)
                for first, second in random.choices(cells, k=count)
            )
            / count
            for _ in range(resamples)
        ]

    def resample_moments(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Return the same for many cases: the sum over the repeats drawn is normal, given the cases drawn."""
        random, count = Random(seed), len(pairs)
        # The real part is the difference of a case and the imaginary part its variance: one sum adds both.
        moments = [complex(*both) for both in zip(pairs.differences, pairs.within, strict=True)]
        totals = (sum(random.choices(moments, k=count)) for _ in range(resamples))
        return [(total.real + math.sqrt(max(0.0, total.imag)) * random.gauss(0, 1)) / count for total in totals]

    def flip_signs(self, sizes: Sequence[float], flips: int, seed: int) -> list[float]:
        """Return sums of ``sizes``, each with a sign at random."""
        random, total, groups = Random(seed), math.fsum(sizes), Counter(sizes)
        if len(groups) * 8 <= len(sizes):
            return [
                2 * sum(size * random.getrandbits(count).bit_count() for size, count in groups.items()) - total
                for _ in range(flips)
            ]
        count = len(sizes)
        bits = (format(random.getrandbits(count), f"0{count}b").encode().translate(_BITS) for _ in range(flips))
        return [2 * sum(compress(sizes, chosen)) - total for chosen in bits]


_BITS: Final = bytes.maketrans(b"01", b"\x00\x01")
