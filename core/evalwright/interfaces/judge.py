"""Judges: transport to a model that reads and answers. Caching, retries and verdict reading are the core's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evalwright.canonical import digest_json
from evalwright.interfaces.plugin import Deadline, Plugin
from evalwright.interfaces.verdict import VerdictForm
from evalwright.model import Usage

__all__ = ["Judge", "JudgeReply", "JudgeRequest"]

C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One question. ``messages`` are ``{"role": ..., "content": ...}``; ``options`` go to the model as they are.

    ``form`` says what a verdict looks like: the core then reads the reply, and asks once more when it holds none.
    ``sample`` tells several answers to the same question apart; ``repeat`` is the pass over the suite, which the core fills
    in. A cache never answers two samples or two repeats with one reply.
    """

    messages: Sequence[Mapping[str, str]]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    form: VerdictForm | None = None
    sample: int = 1
    repeat: int = 1

    @property
    def digest(self) -> str:
        """Return what names the question, whoever is asked and however often."""
        return digest_json({"messages": [dict(message) for message in self.messages], "options": dict(self.options)})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """The raw answer. ``cost`` is in US dollars; ``finish`` the model's own reason for stopping.

    ``verdict`` is what the core read from ``text`` where the request says what to read; a judge that put it together itself
    may give it. ``details`` hold what else belongs on record, such as the votes of a panel. ``tries`` counts calls of the
    model, retries included.
    """

    text: str
    model: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    cached: bool = False
    verdict: Any = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tries: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return what the model answered, for a cache or a recording."""
        record: dict[str, Any] = {"text": self.text, "model": self.model, "finish": self.finish, "cost": self.cost}
        return record | {"usage": self.usage.as_json() if self.usage else None, "details": dict(self.details)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> JudgeReply:
        """Read a record written by :meth:`as_json`; only ``text`` is needed. Raises ``KeyError`` or ``TypeError``."""
        text: Any = record["text"]
        if not isinstance(text, str):
            raise TypeError("text is no string")
        usage = record.get("usage")
        return JudgeReply(
            text=text,
            model=record.get("model"),
            finish=record.get("finish"),
            usage=None if usage is None else Usage.from_json(usage),
            cost=record.get("cost"),
            details=dict(record.get("details") or {}),
        )


class Judge(Plugin[C]):
    """Carries one request to a model."""

    @abstractmethod
    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Send the request once and return the raw reply.

        Raises ``JudgeUnavailable`` when another try may work (with ``retry_after`` in seconds where the server says so),
        ``JudgeRefused`` when the model declines, ``JudgeUnreadable`` for a cut or malformed reply, and any other
        ``JudgeError`` when asking again is useless.
        """

    @property
    def provider(self) -> str | None:
        """Name what several judges share and what limits calls in flight, such as a server's URL."""
        return None

    @property
    def model(self) -> str | None:
        """Name the model that is asked, for the warning about an agent that judges itself."""
        return None

    def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
        """Return everything that decides the reply, without secrets: a cache knows a question by it."""
        config: Any = self.config
        table = config.model_dump(mode="json") if hasattr(config, "model_dump") else None
        return {"judge": f"{type(self).__module__}:{type(self).__qualname__}", "config": table, "question": request.digest}
