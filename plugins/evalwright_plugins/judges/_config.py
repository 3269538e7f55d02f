"""What all judges over HTTP share: their table, their key, and what a reply costs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator

from evalwright.errors import JudgeError
from evalwright.interfaces import Problem
from evalwright.model import Usage
from evalwright_plugins.judges._json import is_object

__all__ = ["HttpConfig", "Price", "cost_of", "count", "expanded", "key_of", "missing_keys", "secret_values"]

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MILLION = 1_000_000
MOST_TOKENS = 2**53


class Price(BaseModel, extra="forbid", frozen=True, strict=True):
    """US dollars per million tokens; cached tokens are billed once, at their own rates, which a table may leave unknown."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return what the tokens cost, ``None`` where a number or a rate is unknown. An unknown cache counts as unused."""
        if usage.input is None or usage.output is None:
            return None
        cost = usage.input * self.input + usage.output * self.output
        for tokens, rate in ((usage.cache_read, self.cache_read), (usage.cache_write, self.cache_write)):
            if tokens and rate is None:
                return None
            cost += (tokens or 0) * (rate or 0.0)
        return cost / MILLION


class HttpConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The server, the model and the bounds of one call; times in seconds. Keys are named, never written down.

    ``body`` has further keys of the request, as the server takes them.
    """

    base_url: str
    model: Annotated[str, Field(min_length=1)]
    api_key_env: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(gt=0)] = 1024
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    connect_timeout_seconds: Seconds = 10.0
    read_timeout_seconds: Seconds = 60.0
    call_timeout_seconds: Seconds = 120.0
    price: Price | None = None

    @field_validator("body")
    @classmethod
    def _is_further(cls, body: dict[str, Any]) -> dict[str, Any]:
        own = sorted({"model", "messages", "system", "max_tokens", "temperature", "stream"} & body.keys())
        if own:
            raise ValueError(f"holds further keys only, not {', '.join(own)}")
        return body

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be http://HOST... or https://HOST...")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("holds no user, password, query or fragment; keys go into api_key_env")
        return url


def cost_of(config: HttpConfig, usage: Usage | None) -> float | None:
    """Return what a reply cost in US dollars, ``None`` when the table names no price or the server no tokens."""
    return config.price.cost(usage) if config.price and usage else None


def key_of(config: HttpConfig) -> str:
    """Return the key. Raises ``JudgeError`` when the variable is not set or holds what cannot be a header."""
    name = config.api_key_env
    if name is None:
        return ""
    key = os.environ.get(name, "")
    if not key:
        raise JudgeError(f"{name} is not set", hint=f"set {name} to the key of {config.base_url}", kind="judge_no_key")
    if not (key.isascii() and key.isprintable()):
        raise JudgeError(
            f"{name} holds what cannot be a key", hint="it has a line end or an odd character", kind="judge_no_key"
        )
    return key


def expanded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with every ``${NAME}`` replaced from the environment. Raises ``JudgeError`` for one that is not set."""
    found = {name: VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value) for name, value in headers.items()}
    for name, value in found.items():
        if not (value.isascii() and value.isprintable() and name.isascii() and name.isprintable()):
            raise JudgeError(f"the header {name!r} cannot be sent", hint="it has a line end or an odd character")
    return found


def secret_values(config: HttpConfig) -> list[str]:
    """Return the values that no message may show."""
    names = {name for value in config.headers.values() for name in VARIABLE.findall(value)}
    values = [os.environ.get(name, "") for name in (*names, config.api_key_env or "")]
    return sorted((value for value in values if value), key=len, reverse=True)


def missing_keys(config: HttpConfig) -> list[Problem]:
    """Return a problem for every variable that the table names and that is not set."""
    names = [name for value in config.headers.values() for name in VARIABLE.findall(value)]
    names += [config.api_key_env] if config.api_key_env else []
    return [
        Problem(message=f"{name} is not set", hint=f"set {name} to the key of {config.base_url}")
        for name in dict.fromkeys(names)
        if not os.environ.get(name)
    ]


def count(table: Any, *path: str) -> int | None:
    """Return the number of tokens at a path of a server's usage, ``None`` when there is none."""
    for name in path:
        table = table.get(name) if is_object(table) else None
    return table if isinstance(table, int) and not isinstance(table, bool) and 0 <= table <= MOST_TOKENS else None
