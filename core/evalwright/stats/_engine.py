"""Choose what draws random numbers: numpy where it can be imported, else the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from evalwright.stats._pairs import Pairs
from evalwright.stats._python import PythonEngine


class Engine(Protocol):
    """Draws resamples; each method returns one number for each resample, in no particular order."""

    @property
    def name(self) -> Literal["numpy", "python"]:
        """Return what the record calls this engine."""
        ...

    def resample_cells(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Draw cases, then repeats of each arm of each case drawn."""
        ...

    def resample_moments(self, pairs: Pairs, resamples: int, seed: int) -> list[float]:
        """Draw cases, then the sum over their repeats as a normal number."""
        ...

    def flip_signs(self, sizes: Sequence[float], flips: int, seed: int) -> list[float]:
        """Draw a sign for each size, and sum up."""
        ...


def best_engine() -> Engine:
    """Return the numpy engine if numpy can be imported, else the one that needs nothing."""
    try:
        from evalwright.stats._numpy import NumpyEngine
    except ImportError:
        return PythonEngine()
    return NumpyEngine()
