"""The bootstrap of a comparison against plain resampling by index, in turns in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evalwright.stats._engine import Engine
from evalwright.stats._numpy import NumpyEngine
from evalwright.stats._pairs import pair
from evalwright.stats._python import PythonEngine
from evalwright.stats.bootstrap import bootstrap

__all__ = ["bootstraps"]

Row = dict[str, float]


def bootstraps(*, cases: int, repeats: int, resamples: int, rounds: int) -> dict[str, Row]:
    """Return, for each engine, the CPU time (ms) of a whole bootstrap beside that of the floor."""
    random = np.random.default_rng(0)
    before, after = ((random.random((cases, repeats)) < 0.5).astype(np.float64) for _ in range(2))
    first, second = ({str(case): values for case, values in enumerate(arm.tolist())} for arm in (before, after))

    def ours(engine: Engine) -> float:
        return _cpu(lambda: bootstrap(pair(first, second), engine, resamples=resamples, seed=0))

    rows: dict[str, Row] = {}
    for engine in (NumpyEngine(), PythonEngine()):
        pairs = [(ours(engine), _cpu(lambda: _plain(before, after, resamples))) for _ in range(rounds)]
        mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        rows[f"{engine.name}, cpu (ms)"] = {"ours": mine, "floor": theirs, "ratio": mine / theirs}
    return rows


def _plain(first: NDArray[np.float64], second: NDArray[np.float64], resamples: int) -> NDArray[np.float64]:
    """Draw cases and then repeats by index, one resample at a time."""
    random, (cases, repeats) = np.random.default_rng(0), first.shape
    means = np.empty(resamples)
    for number in range(resamples):
        drawn = random.integers(cases, size=(cases, 1))
        arms = [arm[drawn, random.integers(repeats, size=(cases, repeats))] for arm in (first, second)]
        means[number] = float(arms[1].mean() - arms[0].mean())
    return means


def _cpu(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000
