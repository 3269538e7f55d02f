"""Services: stateful fixtures beside a trial, such as a fake issue tracker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from evalwright.interfaces.plugin import Deadline, Plugin

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["RunningService", "Service"]

C = TypeVar("C")


class RunningService(Protocol):
    """One service of one trial.

    ``port`` is one of 127.0.0.1. ``env`` goes into the environment of the agent's commands and says where the service is.
    """

    port: int
    env: Mapping[str, str]

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """Return every call so far as JSON, oldest first.

        ``unknown: true`` in a call says that the service has no such route; ``method`` and ``path`` then name it in a warning.
        A service that bounds its record says in a last entry ``{"dropped": n}`` how many calls are not in it.
        """
        ...

    def state(self) -> Mapping[str, Any]:
        """Return the present state as JSON."""
        ...

    def close(self) -> None:
        """Stop listening and end every connection; a second time does nothing."""
        ...


class Service(Plugin[C]):
    """Starts a service for one trial.

    ``Seed`` validates the JSON file that a case gives the service; without one any JSON will do. ``scheme`` is that of the
    address in ``EVALWRIGHT_SERVICE_<NAME>_URL``.
    """

    Seed: ClassVar[type[BaseModel] | None] = None
    scheme: ClassVar[str] = "http"

    @abstractmethod
    def open(self, seed: Path | None, deadline: Deadline) -> RunningService:
        """Start on a free port of 127.0.0.1, seeded from a JSON file.

        Raises ``TrialError`` when it cannot start; every other exception is a defect. Both end the trial with an error that
        names the service.
        """
