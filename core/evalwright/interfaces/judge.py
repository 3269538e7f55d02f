"""Judges: transport to a model that reads and answers. Caching, retries and verdict reading are the core's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evalwright.interfaces.plugin import Deadline, Plugin
from evalwright.model import Usage

__all__ = ["Judge", "JudgeReply", "JudgeRequest"]

C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One question. ``messages`` are ``{"role": ..., "content": ...}``; ``options`` go to the model as they are.

    ``repeat`` tells repeats of the same question apart, so that a cache never answers two of them with one reply.
    """

    messages: Sequence[Mapping[str, str]]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repeat: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """The raw answer. ``cost`` is in US dollars; ``finish`` the model's own reason for stopping."""

    text: str
    model: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    cached: bool = False


class Judge(Plugin[C]):
    """Carries one request to a model."""

    @abstractmethod
    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Send the request once and return the raw reply.

        Raises ``JudgeUnavailable`` when another try may work, ``JudgeRefused`` when the model declines, ``JudgeUnreadable``
        for a cut or malformed reply.
        """
