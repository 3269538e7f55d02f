"""Whether the variables that a suite lets through still hold what they held when a run was started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import digest_text, is_object
from evalwright.model import AgentTable
from evalwright.redaction import names_credential

__all__ = ["fingerprints", "moved_variables"]

DIGITS = 4
UNSET = "unset"


def fingerprints(agent: AgentTable, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the first four hexadecimal digits of the digest of each variable that the agent gets, or ``unset``.

    So few digits tell a change and no value. Credentials are left out: with another key the same thing is measured.
    """
    hidden = {*agent.redact_env_values, *agent.env}
    names = sorted(name for name in {*agent.env_allowlist} - hidden if not names_credential(name))
    return {name: _digits(environment[name]) if name in environment else UNSET for name in names}


def moved_variables(record: Mapping[str, Any], agent: AgentTable, environment: Mapping[str, str]) -> list[dict[str, str]]:
    """Return a warning that names the variables which changed since a run's record was written; none where it does not say."""
    provenance = record.get("provenance")
    before = provenance.get("env_digests") if is_object(provenance) else None
    if not is_object(before):
        return []
    now = fingerprints(agent, environment)
    moved = [f"{name} (was {before[name]}, is {now[name]})" for name in now if before.get(name, now[name]) != now[name]]
    message = f"variables that the agent gets changed since {record.get('run_id')} was started: {', '.join(moved)}"
    return [{"code": "W_ENVIRONMENT_CHANGED", "message": message}] if moved else []


def _digits(value: str) -> str:
    return digest_text(value).partition(":")[2][:DIGITS]
