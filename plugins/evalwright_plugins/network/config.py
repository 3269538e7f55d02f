"""The keys by which a suite says what its trials may reach; a sandbox's own configuration inherits them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evalwright.interfaces import Problem
from evalwright_plugins.network._hosts import AllowList, HostRule
from evalwright_plugins.network._http import HOP_BY_HOP, TOKEN

__all__ = ["Injection", "NetworkConfig", "injection_problems"]

FIELD_NAME = re.compile(TOKEN, re.ASCII)
FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
PLACE = "{value}"
RESERVED = HOP_BY_HOP | {"content-length", "expect", "host"}


class Injection(BaseModel):
    """A header that the proxy sets on requests to one host, with a value from the environment of Evalwright itself.

    ``env`` names the variable; ``format`` says where its value stands in the header. With ``tls`` the proxy speaks
    HTTPS to the host, whatever the agent speaks to the proxy.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    host: str
    header: str
    env: str
    format: str = PLACE
    tls: bool = True

    @field_validator("host")
    @classmethod
    def _one_host(cls, host: str) -> str:
        if HostRule.parse(host).subdomains:
            raise ValueError(f"{host!r}: name one host; a wildcard would send the credential to hosts that you have not seen")
        return host

    @field_validator("header")
    @classmethod
    def _settable(cls, header: str) -> str:
        if not FIELD_NAME.fullmatch(header) or header.lower() in RESERVED:
            raise ValueError(f"{header!r} is not a header that can be set; write one such as 'Authorization'")
        return header

    @field_validator("env")
    @classmethod
    def _variable(cls, env: str) -> str:
        if not VARIABLE.fullmatch(env):
            raise ValueError("not the name of an environment variable; the credential itself does not belong into a suite")
        return env

    @field_validator("format")
    @classmethod
    def _with_place(cls, format: str) -> str:
        if format.count(PLACE) != 1 or not FIELD_VALUE.fullmatch(format):
            raise ValueError(f"{format!r} must have {PLACE} once, as in 'Bearer {PLACE}'")
        return format

    @property
    def rule(self) -> HostRule:
        """Return the host and port that are meant."""
        return HostRule.parse(self.host)

    def value(self, environment: Mapping[str, str]) -> str:
        """Return the header's value. Raises ``ValueError``, without the value, for a variable that is unset or unusable."""
        secret = environment.get(self.env, "")
        if not secret:
            raise ValueError(f"the environment variable {self.env} is not set")
        if not FIELD_VALUE.fullmatch(secret):
            raise ValueError(f"the value of the environment variable {self.env} cannot stand in a header")
        return self.format.replace(PLACE, secret)


class NetworkConfig(BaseModel):
    """``network`` is ``none``, ``host`` (the host's own network) or ``allowlist`` (listed hosts, through a proxy)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    network: Literal["none", "host", "allowlist"] = "none"
    allow: list[str] = []
    inject: list[Injection] = Field(default=[])

    @field_validator("allow")
    @classmethod
    def _hosts(cls, allow: list[str]) -> list[str]:
        AllowList(allow)
        return allow

    @model_validator(mode="after")
    def _consistent(self) -> NetworkConfig:
        if self.network != "allowlist" and (self.allow or self.inject):
            raise ValueError('allow and inject need network: "allowlist"')
        if self.network == "allowlist" and not self.allow:
            raise ValueError('network: "allowlist" needs hosts in allow; to reach none say network: "none"')
        for injection in self.inject:
            self._check_listed(injection)
        return self

    def _check_listed(self, injection: Injection) -> None:
        rule = injection.rule
        port = rule.port or (443 if injection.tls else 80)
        if not AllowList(self.allow).admits(rule.host, port):
            raise ValueError(f"inject names {injection.host!r}, which allow does not list for port {port}")
        others = [other for other in self.inject if other is not injection and other.rule == rule]
        if any(other.tls != injection.tls for other in others):
            raise ValueError(f"inject names {injection.host!r} both with tls and without")
        if any(other.header.lower() == injection.header.lower() for other in others):
            raise ValueError(f"inject sets {injection.header!r} of {injection.host!r} twice")


def injection_problems(config: NetworkConfig, environment: Mapping[str, str], *, place: str) -> Sequence[Problem]:
    """Return a fatal problem for each variable to inject that is missing. ``place`` says where in the suite the table is."""
    problems: list[Problem] = []
    for number, injection in enumerate(config.inject):
        try:
            injection.value(environment)
        except ValueError as error:
            message = f"{place}.inject[{number}] (host {injection.host}): {error}"
            hint = f"export {injection.env} before you start Evalwright, or remove the entry"
            problems.append(Problem(message=message, hint=hint, details={"key": f"{place}.inject[{number}].env"}))
    return problems
