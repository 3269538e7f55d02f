"""The judge behind Anthropic's messages interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import httpx

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnreadable
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest, Problem
from evalwright.model import Usage
from evalwright_plugins.judges._config import HttpConfig, cost_of, count, expanded, key_of, missing_keys, secret_values
from evalwright_plugins.judges._http import JsonClient, error_text
from evalwright_plugins.judges._json import is_object

__all__ = ["AnthropicConfig", "AnthropicJudge"]

ENDS = frozenset({"end_turn", "stop_sequence"})
VERSION = "2023-06-01"


class AnthropicConfig(HttpConfig, extra="forbid", frozen=True, strict=True):
    """The server, its model and key."""

    base_url: str = "https://api.anthropic.com"
    api_key_env: str | None = "ANTHROPIC_API_KEY"


class AnthropicJudge(Judge[AnthropicConfig]):
    """Posts to ``BASE_URL/v1/messages``."""

    api = "judge/1.0"
    Config = AnthropicConfig

    def __init__(self, config: AnthropicConfig, host: Host, *, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(config, host)
        self._client = JsonClient(config, "/v1/messages", transport)
        self._cold = False

    @property
    def provider(self) -> str | None:
        """Name the server."""
        return self.config.base_url.rstrip("/")

    @property
    def model(self) -> str | None:
        """Name the model."""
        return self.config.model

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say which variable is not set."""
        return missing_keys(self.config)

    def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
        """Return URL, headers and body; the key is not among them."""
        return {"url": self._client.url, "headers": self.config.headers, "body": self._body(request, cold=False)}

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Send the question once; twice when the model refuses a temperature."""
        key = key_of(self.config)
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {}), **expanded(self.config.headers)}
        secrets = secret_values(self.config)
        answer = self._client.post(self._body(request, cold=self._cold), headers, secrets, deadline)
        if answer.status != 200 and not self._cold and "temperature" in error_text(answer.document, []):
            self._cold = True
            answer = self._client.post(self._body(request, cold=True), headers, secrets, deadline)
        if answer.status != 200:
            said = error_text(answer.document, secrets)
            raise JudgeError(f"the server answered {answer.status}: {said}", hint="correct the judge's table")
        return self._reply(answer.document)

    def close(self, deadline: Deadline) -> None:
        """Close the connections."""
        self._client.close()

    def _body(self, request: JudgeRequest, *, cold: bool) -> dict[str, Any]:
        config = self.config
        body: dict[str, Any] = {"max_tokens": config.max_tokens}
        if config.temperature is not None:
            body["temperature"] = config.temperature
        system = "\n\n".join(message["content"] for message in request.messages if message["role"] == "system")
        messages = [dict(message) for message in request.messages if message["role"] != "system"]
        body |= {
            **config.body,
            **request.options,
            "model": config.model,
            "messages": messages,
            **({"system": system} if system else {}),
        }
        if cold:
            body.pop("temperature", None)
        return body

    def _reply(self, document: Mapping[str, Any]) -> JudgeReply:
        usage = _usage(document.get("usage"))
        cost = cost_of(self.config, usage)
        try:
            text, finish = _answered(document)
        except JudgeError as error:
            error.cost = cost
            raise
        model = document.get("model")
        return JudgeReply(text=text, model=model if isinstance(model, str) else None, finish=finish, usage=usage, cost=cost)


def _answered(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text and why it ended."""
    finish = document.get("stop_reason")
    if finish == "refusal":
        raise JudgeRefused("the model declined to answer", hint="change the rubric, or ask another model")
    if finish == "max_tokens":
        raise JudgeUnreadable("the reply was cut", hint="raise max_tokens", kind="judge_truncated")
    try:
        text = "".join(str(part["text"]) for part in document["content"] if part["type"] == "text")
    except (LookupError, TypeError) as error:
        raise JudgeUnreadable("the server's answer has no content", hint="look at the server's log") from error
    if not isinstance(finish, str) or finish not in ENDS or not text:
        raise JudgeUnreadable("the model ended without an answer", hint="look at the server's log")
    return text, finish


def _usage(table: Any) -> Usage | None:
    """Return the tokens; the server counts cached ones apart already."""
    if not is_object(table):
        return None
    return Usage(
        input=count(table, "input_tokens"),
        output=count(table, "output_tokens"),
        cache_read=count(table, "cache_read_input_tokens"),
        cache_write=count(table, "cache_creation_input_tokens"),
    )
