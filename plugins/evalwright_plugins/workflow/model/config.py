"""The configuration of a run: what it is about, who works on it where, and what its gates do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from evalwright_plugins.workflow.model.policy import Policy
from evalwright_plugins.workflow.model.workflow import Amount, Budgets, Name

__all__ = ["Gate", "Notify", "Retry", "WorkConfig"]

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Variable = Annotated[str, Field(pattern=r"^[^=\x00]+$")]
Words = Annotated[list[str], Field(min_length=1)]


class Retry(BaseModel, extra="forbid", frozen=True, strict=True):
    """How often a step whose infrastructure failed is tried again before a human is asked; the pause doubles each time."""

    infrastructure: Annotated[int, Field(ge=0, le=100)] = 0
    backoff_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 1.0


class Notify(BaseModel, extra="forbid", frozen=True, strict=True):
    """Where it is told that a run waits or has ended: an address that gets ids and kinds, never content."""

    webhook: Annotated[str, Field(pattern=r"^https?://[^\s]+$")]
    timeout_seconds: Amount = 5.0


class Gate(BaseModel, extra="forbid", frozen=True, strict=True):
    """A program that answers requests: one JSON object on stdin, ``{"decision": "approved"|"rejected", ...}`` on stdout."""

    script: Words
    timeout: Amount = 60.0


class WorkConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """One run. ``workflow`` is a preset, a file beside this one, or the workflow itself.

    ``workers`` and ``sandbox`` are tables of plugins; ``prompt`` and ``prompts`` are texts, or files as ``file://PATH``.
    ``scope`` holds the path prefixes that may change; none means all. ``artifacts`` are documents that people accept by
    their content. ``toolchain`` are files, beside the lock files, whose content a reusable verification depends on.
    """

    work: Annotated[str, Field(pattern=r"^[A-Za-z0-9](\.?[A-Za-z0-9_-])*$", max_length=80)]
    workflow: str | dict[str, Any]
    base: Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")] = "HEAD"
    prompt: str = ""
    prompts: dict[Name, str] = {}
    workers: dict[Name, dict[str, Any]] = {}
    sandbox: dict[str, Any] = {"use": "subprocess"}
    env_allowlist: list[Variable] = ["PATH"]
    env: dict[Variable, Text] = {}
    scope: list[Text] = []
    artifacts: dict[Name, Text] = {}
    policies: list[Policy] = []
    budgets: Budgets = Budgets()
    retry: Retry = Retry()
    stop_at: list[Name] = []
    parallel: bool = False
    notify: Notify | None = None
    on_gate: Literal["ask", "approve", "reject", "fail"] | Gate = "ask"
    triage: Literal["ask", "auto"] = "ask"
    toolchain: list[Text] = []
    reuse: bool = True

    @field_validator("scope")
    @classmethod
    def _inside(cls, scope: list[str]) -> list[str]:
        for prefix in scope:
            parts = prefix.rstrip("/").split("/")
            if not prefix.strip("/") or prefix.startswith("/") or {"", ".", ".."} & set(parts):
                raise ValueError(f"{prefix!r} is no path from the top of the repository")
        return scope

    @field_validator("artifacts", "toolchain")
    @classmethod
    def _below(cls, files: dict[str, str] | list[str]) -> dict[str, str] | list[str]:
        for name in files.values() if isinstance(files, dict) else files:
            if not name or name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"{name!r} is no path from the top of the repository")
        return files
