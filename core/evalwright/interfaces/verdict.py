"""What a verdict looks like, so that the core can read it from a judge's reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["GradeForm", "JsonForm", "VerdictForm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonForm:
    """A JSON value that fits ``schema``. ``objection`` says why a value that fits contradicts itself, ``None`` if it does not.

    ``decides`` names the keys that are the verdict proper: two values that agree in them say the same. None means all.
    """

    schema: Mapping[str, Any]
    objection: Callable[[Any], str | None] | None = None
    decides: tuple[str, ...] = ()

    def essence(self, verdict: Any) -> Any:
        """Return the part of a verdict that decides."""
        if not self.decides:
            return verdict
        return {key: verdict[key] for key in self.decides if key in verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeForm:
    """A line ``GRADE: C``, where ``C`` is one of ``grades``, read without regard to case."""

    grades: tuple[str, ...]

    def essence(self, verdict: Any) -> Any:
        """Return the grade."""
        return verdict


VerdictForm = JsonForm | GradeForm
