"""The shape of ``suite.json`` and of a line of ``cases.jsonl``: keys, types and ranges."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evalwright.canonical import is_object

__all__ = ["AGENT_KEYS", "PLANNED_KEYS", "AgentShape", "CaseShape", "RetryShape", "ScorerShape", "SuiteShape"]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
CASE_ID = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
PLANNED_KEYS = ("arms", "repeats", "judges")

Seconds = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Table = str | dict[str, Any]
ServiceName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]


class AgentShape(BaseModel):
    """The keys of ``runner`` that every runner shares."""

    model_config = STRICT

    timeout_seconds: Seconds = 300.0
    max_output_bytes: Annotated[int, Field(gt=0)] = 5 * 1024 * 1024
    env_allowlist: list[str] = []
    env: dict[str, str] = {}
    redact_env_values: list[str] = []
    redact_patterns: list[str] = []
    files: list[str] = []
    reveal_expect: bool = False
    reveal_id: bool = False

    @field_validator("env")
    @classmethod
    def _variables(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} cannot be an environment variable: no =, no NUL, not empty")
        return env

    @field_validator("redact_patterns")
    @classmethod
    def _compile(cls, patterns: list[str]) -> list[str]:
        import regex

        for pattern in patterns:
            try:
                regex.compile(pattern)
            except regex.error as error:
                raise ValueError(f"{pattern!r} is not a pattern: {error}") from error
        return patterns


AGENT_KEYS = tuple(AgentShape.model_fields)


class ScorerShape(BaseModel):
    """The keys of an entry of ``scorers`` that every scorer shares."""

    model_config = STRICT

    name: Name | None = None
    use: Name | None = None
    id: Name | None = None
    required: bool = True


class RetryShape(BaseModel):
    """``retry``: how often an attempt that the infrastructure spoiled is made again, and after how long."""

    model_config = STRICT

    infrastructure: Annotated[int, Field(ge=0, le=100)] = 0
    backoff_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.0


class SuiteShape(BaseModel):
    """``suite.json``."""

    model_config = STRICT

    schema_version: Literal[2] | None = None
    name: Name
    cases: Annotated[str, Field(min_length=1)] = "cases.jsonl"
    runner: Table
    scorers: list[Table] = []
    acknowledged_unsandboxed_runner: bool = False
    tags: list[str] = []
    meta: dict[str, Any] = {}
    sandbox: Table = "subprocess"
    sandboxes: dict[str, Table] = {}
    services: Annotated[dict[ServiceName, Table], Field(max_length=20)] = {}
    requires: list[str] = []
    retry: RetryShape = RetryShape()
    primary: str | None = None

    @field_validator("name")
    @classmethod
    def _safe_name(cls, name: str) -> str:
        return _safe(name)

    @field_validator("services")
    @classmethod
    def _distinct_variables(cls, services: dict[str, Table]) -> dict[str, Table]:
        variables: dict[str, str] = {}
        for name in services:
            first = variables.setdefault(name.upper().replace("-", "_"), name)
            if first != name:
                raise ValueError(
                    f'"{first}" and "{name}" differ only in case or punctuation; the agent could not tell them apart'
                )
        return services


class CaseShape(BaseModel):
    """One line of ``cases.jsonl``."""

    model_config = STRICT

    id: str | None = None
    task: str
    workspace: Annotated[str, Field(min_length=1)]
    diff: str | None = None
    expect: dict[str, Any] = {}
    hidden: str | None = None
    gold: str | dict[str, Any] | None = None
    sandbox: dict[str, Any] = {}
    services: dict[str, str] = {}
    timeout_seconds: Seconds | None = None
    tags: list[str] = []
    split: str | None = None
    human: Any = None
    meta: dict[str, Any] = {}

    @field_validator("id")
    @classmethod
    def _safe_id(cls, value: str | None) -> str | None:
        return None if value is None else _safe(value)

    @field_validator("gold")
    @classmethod
    def _gold(cls, value: Any) -> Any:
        if is_object(value) and not (set(value) == {"output"} and isinstance(value["output"], str)):
            raise ValueError('give a path, or {"output": "the right answer"}')
        return value


def _safe(value: str) -> str:
    if ".." in value or value == "." or not CASE_ID.fullmatch(value):
        raise ValueError("use letters, digits, dot, underscore, dash; at most 100, and no two dots in a row")
    return value
