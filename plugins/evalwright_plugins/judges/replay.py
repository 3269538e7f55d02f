"""The judge that answers from a recording, so that a judgement can be repeated without a model."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from evalwright.errors import JudgeError
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest, Problem

__all__ = ["ReplayConfig", "ReplayJudge"]

Key = tuple[str, int | None, int | None]


class ReplayConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The recordings: JSON Lines of ``{"digest", "text", "sample"?, "repeat"?, ...}``, as scorers keep them."""

    files: Annotated[list[str], Field(min_length=1)]


class ReplayJudge(Judge[ReplayConfig]):
    """Gives the recorded reply of a question, known by its digest. A line that names sample or repeat answers only those.

    Files are taken from the suite; read once, on the first question.
    """

    api = "judge/1.0"
    Config = ReplayConfig
    capabilities = frozenset({"deterministic"})

    def __init__(self, config: ReplayConfig, host: Host) -> None:
        super().__init__(config, host)
        self._lock = threading.Lock()
        self._replies: dict[Key, JudgeReply] | None = None

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say what is wrong with the recordings."""
        try:
            self._recorded()
        except JudgeError as error:
            return [Problem(message=error.message, hint=error.hint)]
        return ()

    def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
        """Return the question and the answer that it will get: a recording that changed is asked again."""
        reply = self._found(request)
        return {"replay": request.digest, "reply": reply.as_json() if reply else None}

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Return the recorded reply, which costs nothing again. Raises ``JudgeError`` for a question that was not recorded."""
        reply = self._found(request)
        if reply is None:
            raise JudgeError(
                f"no reply is recorded for {request.digest}", hint="record it with the judge itself", kind="judge_not_recorded"
            )
        return replace(reply, cost=0.0)

    def _found(self, request: JudgeRequest) -> JudgeReply | None:
        recorded = self._recorded()
        digest = request.digest
        keys: list[Key] = [(digest, sample, repeat) for sample in (request.sample, None) for repeat in (request.repeat, None)]
        return next((recorded[key] for key in keys if key in recorded), None)

    def _recorded(self) -> dict[Key, JudgeReply]:
        with self._lock:
            if self._replies is None:
                found: dict[Key, JudgeReply] = {}
                for name in self.config.files:
                    found |= _read(self.host.file(name))
                self._replies = found
            return self._replies


def _read(path: Path) -> dict[Key, JudgeReply]:
    found: dict[Key, JudgeReply] = {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"{path} cannot be read: {error}", hint="name a recording of the suite in files") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record: Any = json.loads(line)
                found[str(record["digest"]), record.get("sample"), record.get("repeat")] = JudgeReply.from_json(record)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise JudgeError(f"{path}:{number} is no recorded reply", hint='it needs "digest" and "text"') from error
    return found
