"""What a user may say about an import."""

from __future__ import annotations

import shlex
from typing import Any

from pydantic import BaseModel, field_validator

__all__ = ["LastlightConfig"]


class LastlightConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The options of ``import lastlight``, each given as ``--set NAME=VALUE``.

    ``argv`` is the agent's command, as a list or one line of words. ``node`` is the Node.js that runs the tests.
    ``as_shipped`` judges as that harness does unless told otherwise: the agent ended well. ``markers`` asks the agent for the
    marker lines of the expectations and checks them. ``gold`` is a file of SWE-bench predictions whose patches become the
    reference solutions. ``leaderboard`` is the file of other tools' scores to rank results in.
    """

    argv: list[str] = []
    node: str = "node"
    as_shipped: bool = False
    markers: bool = False
    gold: str | None = None
    leaderboard: str | None = None

    @field_validator("argv", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value
