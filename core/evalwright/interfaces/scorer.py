"""Scorers: what a finished trial is worth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from evalwright.interfaces.plugin import Deadline, Plugin
from evalwright.interfaces.sandbox import Session
from evalwright.model import Score, ScoredTrial

if TYPE_CHECKING:
    from pydantic import BaseModel

    from evalwright.interfaces.judge import JudgeReply, JudgeRequest

__all__ = ["ScoreContext", "Scorer"]

C = TypeVar("C")


class ScoreContext(Protocol):
    """What a scorer may use. Everything here works only after the agent's processes are dead."""

    deadline: Deadline

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Ask a judge that the suite names; cached, limited and retried by the core."""
        ...

    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> AbstractContextManager[Session]:
        """Open a fresh session on a private clone of the final workspace, of the fixture, or on an empty directory.

        ``hidden`` lays the case's hidden files over it, removes the agent's test-runner configuration first, and restores
        files that the hidden ones replace. ``sandbox`` names a table of the suite; ``None`` is the suite's own sandbox.
        """
        ...

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the environment for a command in ``session``: base, allow-list, and the trial's paths.

        ``CASE_FILE`` is the full case, ``OUTPUT_FILE`` the agent's redacted answer, ``SUITE`` the suite's directory.
        """
        ...

    def keep(self, name: str, content: bytes) -> None:
        """Keep evidence beside the score, as ``scorers/<scorer id>.<name>``; redacted."""
        ...


class Scorer(Plugin[C]):
    """Judges one finished trial.

    ``Expect`` maps each key of a case's ``expect`` that this scorer owns to the model that validates its value.
    ``pure`` scorers depend only on stored artifacts, so a report recomputes them.
    """

    Expect: ClassVar[Mapping[str, type[BaseModel]]] = MappingProxyType({})
    pure: ClassVar[bool] = False

    @property
    def advisory(self) -> bool:
        """Tell that the scores inform and never decide a status: a case needs another scorer to be judged."""
        return False

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell from the scorer's own expectations whether it will record a score; known before anything runs."""
        return True

    def services(self, expect: Mapping[str, Any]) -> Collection[str]:
        """Name the services that these expectations are about; one that the suite lacks is refused before anything runs."""
        return ()

    @abstractmethod
    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Judge the trial. Raise ``TrialError`` when it cannot be judged: the trial then becomes ``error``."""

    def solution(self, expect: Mapping[str, Any]) -> str | None:
        """Return an answer that these expectations must accept, for ``audit``; ``None`` when none follows from them."""
        return None

    def weakness(self, expect: Mapping[str, Any]) -> str | None:
        """Say why a pass of this scorer would prove little, for ``audit``; ``None`` when it would prove enough."""
        return None
