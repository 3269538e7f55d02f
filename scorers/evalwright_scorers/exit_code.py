"""The scorer of the runner's exit status."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, RootModel

from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import expected

__all__ = ["ExitCode", "ExitCodeConfig"]


class ExitCodeConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The exit status that every case expects unless it names its own."""

    exit_code: int | None = None


class ExitStatus(RootModel[int], strict=True, frozen=True):
    """The exit status of the runner; negative for a death by signal."""


class ExitCode(Scorer[ExitCodeConfig]):
    """Passes when the runner ended with the expected exit status."""

    api = "scorer/1.0"
    Config = ExitCodeConfig
    Expect = MappingProxyType({"exit_code": ExitStatus})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a status is expected."""
        return expected(expect, "exit_code", self.config) is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Compare the two statuses."""
        wanted = expected(trial.expect, "exit_code", self.config)
        if trial.exit_code == wanted:
            return Score.passed()
        return Score.failed({"why": "exit code mismatch", "expected": wanted, "actual": trial.exit_code})
