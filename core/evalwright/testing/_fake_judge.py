"""A judge that answers from memory, over a real HTTP client and no network."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, SecretStr

from evalwright.errors import JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest
from evalwright.model import Usage

__all__ = ["CannedConfig", "CannedJudge"]

URL = "http://judge.invalid/ask"
RETRYABLE = frozenset({408, 409, 425, 429})


class CannedConfig(BaseModel):
    """The reply of every question: its text, status and reason for stopping, or a ``body`` sent as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer: str = "yes"
    status: int = 200
    finish: str = "stop"
    body: str | None = None
    api_key: SecretStr = SecretStr("")


class CannedJudge(Judge[CannedConfig]):
    """Asks ``httpx.MockTransport``; ``asked`` lists every question. ``handler`` replaces the canned reply."""

    api = "judge/1.0"
    Config = CannedConfig

    def __init__(
        self,
        config: CannedConfig | None = None,
        host: Host | None = None,
        *,
        handler: Callable[[httpx.Request], httpx.Response] | None = None,
    ) -> None:
        super().__init__(config or CannedConfig(), host)  # type: ignore[arg-type]  # it never asks its host
        self.asked: list[JudgeRequest] = []
        self._client = httpx.Client(transport=httpx.MockTransport(handler or self._reply))

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Send the question and read the reply."""
        self.asked.append(request)
        headers = {"Authorization": f"Bearer {self.config.api_key.get_secret_value()}"}
        body = {"messages": [dict(message) for message in request.messages], **request.options}
        try:
            response = self._client.post(URL, json=body, headers=headers, timeout=max(deadline.remaining, 0.001))
        except httpx.HTTPError as error:
            raise JudgeUnavailable(f"the judge cannot be reached: {type(error).__name__}", hint="try later") from error
        return _read(response)

    def close(self, deadline: Deadline) -> None:
        """Close the client."""
        self._client.close()

    def _reply(self, request: httpx.Request) -> httpx.Response:
        config = self.config
        if config.body is not None:
            return httpx.Response(config.status, text=config.body)
        usage = {"input": len(request.content), "output": len(config.answer)}
        document = {"text": config.answer, "finish": config.finish, "model": "canned", "usage": usage}
        return httpx.Response(config.status, json=document)


def _read(response: httpx.Response) -> JudgeReply:
    if response.status_code in RETRYABLE or response.status_code >= 500:
        raise JudgeUnavailable(f"the judge answered {response.status_code}", hint="try later")
    if response.status_code != 200:
        raise JudgeRefused(f"the judge answered {response.status_code}", hint="correct the request")
    try:
        document: dict[str, Any] = response.json()
        text, finish = str(document["text"]), str(document["finish"])
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise JudgeUnreadable("the judge's reply is not in its format", hint="look at the judge's log") from error
    if finish == "refusal":
        raise JudgeRefused("the judge declined to answer", hint="change the question")
    if finish == "length":
        raise JudgeUnreadable("the judge's reply was cut", hint="allow more tokens")
    return JudgeReply(text=text, model=document.get("model"), finish=finish, usage=Usage.from_json(document["usage"]))
