"""Judges as the core asks them, without waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.interfaces import Deadline, Judge, JudgeReply, JudgeRequest
from evalwright.judging import Limits, PatientJudge, ReplyCache
from evalwright.redaction import Redactor
from evalwright.suite.shape import JudgeShape
from evalwright.testing import FakeHost
from evalwright_plugins.judges.openai import OpenaiConfig, OpenaiJudge

SECONDS = 20.0
MADE: list[OpenaiJudge] = []
"""What a test made; closed at its end."""


def openai(url: str, **config: Any) -> OpenaiJudge:
    """Return a judge that asks a server on loopback, without a key."""
    judge = OpenaiJudge(OpenaiConfig.model_validate({"base_url": url, "model": "m1", "api_key_env": None} | config), FakeHost())
    MADE.append(judge)
    return judge


def patient(
    judge: Judge[Any],
    *,
    pauses: list[float] | None = None,
    cache: Path | None = None,
    limits: Limits | None = None,
    secrets: tuple[str, ...] = (),
    **shape: Any,
) -> PatientJudge:
    """Return the judge with the core around it; ``pauses`` collects the seconds that it would have waited."""
    waited = [] if pauses is None else pauses
    return PatientJudge(
        judge,
        "strict",
        JudgeShape.model_validate(shape),
        limits=limits or Limits(),
        cache=ReplyCache(cache) if cache else None,
        redactor=Redactor(secrets),
        pause=waited.append,
        draw=lambda: 1.0,
    )


def question(text: str = "Is it right?", **fields: Any) -> JudgeRequest:
    """Return a question."""
    return JudgeRequest(messages=[{"role": "user", "content": text}], **fields)


def ask(judge: Judge[Any], request: JudgeRequest | None = None, seconds: float = SECONDS) -> JudgeReply:
    """Ask with a deadline."""
    return judge.ask(request or question(), Deadline.after(seconds))
