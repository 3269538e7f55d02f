"""The bootstrap of a comparison against plain resampling by index, in turns in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from tests.bench.bench import Bench
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import figure, in_turns, timed

from evalwright.stats._engine import Engine
from evalwright.stats._numpy import NumpyEngine
from evalwright.stats._pairs import pair
from evalwright.stats._python import PythonEngine
from evalwright.stats.bootstrap import bootstrap

__all__ = ["bootstraps"]

Arm = dict[str, list[float]]
REPEATS, RESAMPLES = 5, 2_000
TIMES = {"numpy": 1.0, "python": 3.0}


def bootstraps(bench: Bench) -> Iterator[Line]:
    """Measure a whole paired hierarchical bootstrap with each engine, in this process."""
    cases, resamples = bench.count(10_000, 500), bench.count(RESAMPLES, 100)
    random = np.random.default_rng(0)
    before, after = ((random.random((cases, REPEATS)) < 0.5).astype(np.float64) for _ in range(2))
    first, second = ({str(case): values for case, values in enumerate(arm.tolist())} for arm in (before, after))
    for engine in (NumpyEngine(), PythonEngine()):
        sides: dict[str, Callable[[], dict[str, float]]] = {
            OURS: lambda engine=engine: timed(_ours(first, second, engine, resamples)),
            FLOOR: lambda: timed(lambda: _plain(before, after, resamples)),
        }
        cpu = figure(in_turns(sides, bench.rounds), "cpu")
        label = f"CPU with {engine.name}, {cases:,} cases x {REPEATS} repeats x {resamples:,} resamples"
        yield Line(label=label, unit="ms", sides=cpu, targets=[Target(TIMES[engine.name], FLOOR)])


def _ours(first: Arm, second: Arm, engine: Engine, resamples: int) -> Callable[[], object]:
    return lambda: bootstrap(pair(first, second), engine, resamples=resamples, seed=0)


def _plain(first: NDArray[np.float64], second: NDArray[np.float64], resamples: int) -> NDArray[np.float64]:
    """Draw cases and then repeats by index, one resample at a time."""
    random, (cases, repeats) = np.random.default_rng(0), first.shape
    means = np.empty(resamples)
    for number in range(resamples):
        drawn = random.integers(cases, size=(cases, 1))
        arms = [arm[drawn, random.integers(repeats, size=(cases, repeats))] for arm in (first, second)]
        means[number] = float(arms[1].mean() - arms[0].mean())
    return means
