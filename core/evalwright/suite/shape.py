"""The shape of ``suite.json`` and of a line of ``cases.jsonl``: keys, types and ranges."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evalwright.canonical import is_object
from evalwright.model import DEFAULT_ALPHA

__all__ = [
    "AGENT_KEYS",
    "MAX_REPEATS",
    "AgentShape",
    "AnalysisShape",
    "ArmShape",
    "CaseShape",
    "JudgeShape",
    "RetryShape",
    "ScorerShape",
    "SuiteShape",
]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
CASE_ID = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
ARM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
MAX_REPEATS = 1000

Seconds = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Count = Annotated[int, Field(ge=0, le=20)]
Width = Annotated[int, Field(ge=1, le=1000)]
Table = str | dict[str, Any]
ServiceName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]


class TranscriptShape(BaseModel):
    """``runner.transcript``: which parser reads it, and the file that holds it where it is not stdout."""

    model_config = STRICT

    parser: Table
    path: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("parser")
    @classmethod
    def _named(cls, parser: str | dict[str, Any]) -> str | dict[str, Any]:
        if isinstance(parser, dict) and not isinstance(parser.get("use"), str):
            raise ValueError('give the name of a parser, or {"use": name, ...}')
        return parser

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str | None) -> str | None:
        if path is not None and (path.startswith("/") or ".." in path.split("/") or "\0" in path):
            raise ValueError("give a path inside the workspace, or $EVALWRIGHT_TRANSCRIPT_FILE")
        return path


class LimitsShape(BaseModel):
    """``runner.limits``: what one trial may consume."""

    model_config = STRICT

    tokens: Annotated[int, Field(gt=0)] | None = None
    cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    turns: Annotated[int, Field(gt=0)] | None = None


class AgentShape(BaseModel):
    """The keys of ``runner`` that every runner shares."""

    model_config = STRICT

    timeout_seconds: Seconds = 300.0
    score_on_timeout: bool = False
    max_output_bytes: Annotated[int, Field(gt=0)] = 5 * 1024 * 1024
    env_allowlist: list[str] = []
    env: dict[str, str] = {}
    redact_env_values: list[str] = []
    redact_patterns: list[str] = []
    files: list[str] = []
    reveal_expect: bool = False
    reveal_id: bool = False
    transcript: TranscriptShape | None = None
    limits: LimitsShape = LimitsShape()

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


class JudgeShape(BaseModel):
    """The keys of a judge's table that every judge shares: what the core does for it.

    ``retries`` follow a call that failed on its way (429, 5xx, a broken connection), ``reasks`` a reply without a verdict;
    ``timeout_seconds`` bounds one question with all its tries.
    """

    model_config = STRICT

    retries: Count = 3
    reasks: Count = 1
    backoff_seconds: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = 0.5
    timeout_seconds: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 120.0
    max_in_flight: Width = 16
    provider_max_in_flight: Width = 64
    cache: bool = True


class RetryShape(BaseModel):
    """``retry``: how often an attempt that the infrastructure spoiled is made again, and after how long."""

    model_config = STRICT

    infrastructure: Annotated[int, Field(ge=0, le=100)] = 0
    backoff_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.0


class AnalysisShape(BaseModel):
    """``analysis``: by what arms are compared, and the chance of a false alarm; on record before anything is measured."""

    model_config = STRICT

    metric: Name | None = None
    alpha: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = DEFAULT_ALPHA


class ArmShape(BaseModel):
    """One entry of ``arms``: what it overrides, key by key."""

    model_config = STRICT

    runner: Table | None = None
    sandbox: Table | None = None
    judges: dict[str, Table] | None = None


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
    judges: dict[str, Table] = {}
    requires: list[str] = []
    retry: RetryShape = RetryShape()
    primary: str | None = None
    analysis: AnalysisShape = AnalysisShape()
    arms: dict[str, ArmShape] = {}
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 1

    @field_validator("arms")
    @classmethod
    def _arm_names(cls, arms: dict[str, ArmShape]) -> dict[str, ArmShape]:
        for name in arms:
            if not ARM_NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot name an arm: use letters, digits, underscore, dash; at most 64")
        return arms

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
