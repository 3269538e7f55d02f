"""The judge behind any server of chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import httpx

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest, Problem
from evalwright.model import Usage
from evalwright_plugins.judges._config import HttpConfig, cost_of, count, expanded, key_of, missing_keys, secret_values
from evalwright_plugins.judges._http import JsonClient, error_text
from evalwright_plugins.judges._json import is_list, is_object

__all__ = ["OpenaiConfig", "OpenaiJudge"]

ENDS = frozenset({None, "stop", "eos", "eos_token", "end_turn", "stop_sequence"})
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"


class OpenaiConfig(HttpConfig, extra="forbid", frozen=True, strict=True):
    """A server, its model and key."""

    base_url: str = "https://api.openai.com/v1"
    api_key_env: str | None = "OPENAI_API_KEY"


class OpenaiJudge(Judge[OpenaiConfig]):
    """Posts to ``BASE_URL/chat/completions``. A server that refuses ``temperature``, or the name of the limit on tokens, is
    asked once more without it, or by its other name, and from then on so.
    """

    api = "judge/1.0"
    Config = OpenaiConfig

    def __init__(self, config: OpenaiConfig, host: Host, *, transport: httpx.BaseTransport | None = None) -> None:
        super().__init__(config, host)
        self._client = JsonClient(config, "/chat/completions", transport)
        self._without: frozenset[str] = frozenset()

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
        return {"url": self._client.url, "headers": self.config.headers, "body": self._body(request, frozenset())}

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Send the question once; twice when the server refuses a parameter."""
        key = key_of(self.config)
        headers = expanded(self.config.headers) | ({"authorization": f"Bearer {key}"} if key else {})
        secrets = secret_values(self.config)
        body = self._body(request, self._without)
        answer = self._client.post(body, headers, secrets, deadline)
        while answer.status != 200 and (refused := _refused_parameter(answer.document, body)):
            self._without |= {refused}
            body = self._body(request, self._without)
            answer = self._client.post(body, headers, secrets, deadline)
        if answer.status == 200:
            return self._reply(answer.document)
        raise JudgeError(
            f"the server answered {answer.status}: {error_text(answer.document, secrets)}", hint="correct the table"
        )

    def close(self, deadline: Deadline) -> None:
        """Close the connections."""
        self._client.close()

    def _body(self, request: JudgeRequest, without: frozenset[str]) -> dict[str, Any]:
        config = self.config
        body: dict[str, Any] = {OLD_LIMIT: config.max_tokens}
        if config.temperature is not None:
            body["temperature"] = config.temperature
        body |= {
            **config.body,
            **request.options,
            "model": config.model,
            "messages": [dict(message) for message in request.messages],
        }
        if OLD_LIMIT in without:
            body[NEW_LIMIT] = body.pop(OLD_LIMIT, config.max_tokens)
        if "temperature" in without:
            body.pop("temperature", None)
        return body

    def _reply(self, document: Mapping[str, Any]) -> JudgeReply:
        if document.get("error"):
            raise JudgeUnavailable("the server sent an error in place of an answer", hint="try later")
        usage = _usage(document.get("usage"))
        cost = cost_of(self.config, usage)
        try:
            text, finish = _answered(document)
        except JudgeError as error:
            error.cost = cost
            raise
        model = document.get("model")
        return JudgeReply(text=text, model=model if isinstance(model, str) else None, finish=finish, usage=usage, cost=cost)


def _answered(document: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text of the only choice and why it ended."""
    try:
        (choice,) = document["choices"]
        message, finish = choice["message"], choice.get("finish_reason")
        text, refusal = _text(message.get("content")), message.get("refusal")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise JudgeUnreadable("the server's answer has no single choice", hint="look at the server's log") from error
    if refusal or finish == "content_filter":
        raise JudgeRefused("the model declined to answer", hint="change the rubric, or ask another model")
    if finish == "length":
        raise JudgeUnreadable("the reply was cut", hint="raise max_tokens", kind="judge_truncated")
    if not isinstance(finish, str | None) or finish not in ENDS or text is None:
        raise JudgeUnreadable("the model ended without an answer", hint="look at the server's log")
    return text, finish


def _text(content: Any) -> str | None:
    """Return the text of a message, ``None`` when it has none. Some servers send it in parts."""
    if is_list(content):
        content = "".join(str(part["text"]) for part in content if part["type"] == "text")
    return content if isinstance(content, str) and content else None


def _usage(table: Any) -> Usage | None:
    """Return the tokens; the server counts cached ones as input too, and here they stand apart."""
    if not is_object(table):
        return None
    given, cached = count(table, "prompt_tokens"), count(table, "prompt_tokens_details", "cached_tokens")
    return Usage(
        input=None if given is None else max(0, given - (cached or 0)),
        output=count(table, "completion_tokens"),
        cache_read=cached,
        reasoning=count(table, "completion_tokens_details", "reasoning_tokens"),
    )


def _refused_parameter(document: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
    """Return which parameter that was sent the server will not have."""
    error = document.get("error")
    said = f"{error.get('param')} {error.get('message')}" if is_object(error) else str(error)
    return next((name for name in (OLD_LIMIT, "temperature") if name in body and name in said), None)
