"""Random resampling with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalwright.stats._pairs import Pairs

_CHUNK = 1_000_000
Floats = NDArray[np.float64]


class NumpyEngine:
    """Resamples in blocks of about a million draws. The same seed gives the same answers with the same numpy."""

    @property
    def name(self) -> Literal["numpy"]:
        """Return what a record calls this engine."""
        return "numpy"

    def resample_cells(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Return means of differences over cases drawn at random, each with its repeats drawn at random."""
        random, count = np.random.default_rng(seed), len(pairs)
        first, second = _padded(pairs.first), _padded(pairs.second)
        means: list[float] = []
        for block in _blocks(resamples, count * max(first[0].shape[1], second[0].shape[1])):
            cases = random.integers(count, size=(block, count))
            differences = _drawn(second, cases, random) - _drawn(first, cases, random)
            means += differences.mean(axis=1).tolist()
        return means

    def resample_moments(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Return the same for many cases: the sum over the repeats drawn is normal, given the cases drawn."""
        random, count = np.random.default_rng(seed), len(pairs)
        differences, within = np.asarray(pairs.differences), np.asarray(pairs.within)
        means: list[float] = []
        for block in _blocks(resamples, count):
            cases = random.integers(count, size=(block, count), dtype=np.uint32)
            noise = np.sqrt(within[cases].sum(axis=1)) * random.standard_normal(block)
            means += ((differences[cases].sum(axis=1) + noise) / count).tolist()
        return means

    def flip_signs(self, sizes: Sequence[float], flips: int, seed: int) -> list[float]:
        """Return sums of ``sizes``, each with a sign at random."""
        random, weights = np.random.default_rng(seed), np.asarray(sizes, dtype=np.float64)
        sums: list[float] = []
        for block in _blocks(flips, len(sizes)):
            signs = random.integers(2, size=(block, len(sizes)), dtype=np.int8).astype(np.float64)
            sums += (2 * (signs @ weights) - weights.sum()).tolist()
        return sums


def _blocks(total: int, width: int) -> list[int]:
    most = max(1, _CHUNK // max(1, width))
    return [min(most, total - done) for done in range(0, total, most)]


def _padded(cells: Sequence[Sequence[float]]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the values, a row for each case filled up with 0, and how many of each row are real."""
    lengths = np.asarray([len(cell) for cell in cells], dtype=np.int64)
    values = np.zeros((len(cells), int(lengths.max())))
    for row, cell in zip(values, cells, strict=True):
        row[: len(cell)] = cell
    return values, lengths


def _drawn(arm: tuple[Floats, NDArray[np.int64]], cases: NDArray[np.int64], random: np.random.Generator) -> Floats:
    """Return for each case in ``cases`` the mean of as many repeats as it has, drawn from it with replacement."""
    values, lengths = arm
    sizes = lengths[cases]
    repeats = (random.random((*cases.shape, values.shape[1])) * sizes[..., None]).astype(np.int64)
    columns = np.asarray(range(values.shape[1]), dtype=np.int64)
    real = np.less(columns, sizes[..., None])
    sums: Floats = np.where(real, values[cases[..., None], repeats], 0.0).sum(axis=-1)
    means: Floats = sums / sizes
    return means
