"""Services: stateful fixtures beside a trial, such as a fake issue tracker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from evalwright.interfaces.plugin import Deadline, Plugin

__all__ = ["RunningService", "Service"]

C = TypeVar("C")


class RunningService(Protocol):
    """One service of one trial."""

    port: int
    env: Mapping[str, str]

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """Return every call so far, oldest first."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return the present state as JSON."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Service(Plugin[C]):
    """Starts a service for one trial."""

    @abstractmethod
    def open(self, seed: Path | None, deadline: Deadline) -> RunningService:
        """Start on a free port of loopback, seeded from a JSON file."""
