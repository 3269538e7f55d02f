"""``capabilities``: the machine contract, from literals."""

from __future__ import annotations

import os
from typing import Any

from evalwright.cli.codes import CODES
from evalwright.cli.contract import (
    CONTRACT_VERSION,
    ENVIRONMENT,
    EXIT_CODES,
    FEATURES,
    GLOBAL_FLAGS,
    VERBS,
    Verb,
)
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply

__all__ = ["answer"]

SETTINGS = (
    *("ACKNOWLEDGE_UNSANDBOXED_RUNNER", "EVALS", "JOBS", "KEEP_WORKSPACE", "PRICES", "QUEUE"),
    *("RESERVATION_TTL", "RUNS", "SANDBOX", "TIMEOUT", "WORKSPACES"),
)


def answer(session: Session) -> Reply:
    """Return verbs, flags, exit codes, error codes and environment names; ``--plugins`` reads what is installed too."""
    data: dict[str, Any] = {
        "tool_name": "evalwright",
        "contract_version": CONTRACT_VERSION,
        "features": list(FEATURES),
        "verbs": {name: _verb(verb) for name, verb in VERBS.items()},
        "global_flags": GLOBAL_FLAGS,
        "exit_codes": {str(code): entry for code, entry in EXIT_CODES.items()},
        "error_codes": CODES,
        "env_vars": _variables(),
        "integrations": {
            "git": {"available": _on_path("git"), "supported": True},
            "spoolctl": {"available": _on_path("spoolctl"), "supported": False},
        },
        "schemas_uri": "evalwright schema VERB --json",
        "robot_docs_uri": "evalwright robot-docs guide",
    }
    if session.options.plugins:
        data["plugins"] = _plugins()
    session.json = True
    return Reply(data=data)


def _verb(verb: Verb) -> dict[str, Any]:
    return {
        "description": verb.help,
        "json": verb.json,
        "mutates": verb.mutates,
        "args": list(verb.args),
        "flags": ["--json", "--format", *(flag.name for flag in verb.flags if flag.name != "--format")],
        "exit_codes": list(verb.exit_codes),
    }


def _variables() -> dict[str, str]:
    found = {prefix + name: text for name, text in ENVIRONMENT.items() for prefix in ("EVALWRIGHT_", "EVALCTL_")}
    found |= {prefix + name: f"the setting {name.lower()}" for name in SETTINGS for prefix in ("EVALWRIGHT_", "EVALCTL_")}
    settings = {
        "EVALWRIGHT_DEBUG": "print the traceback of an internal error",
        "SOURCE_DATE_EPOCH": "the time in stored records; never in leases, durations or ids",
        "NO_COLOR": "no colours",
    }
    return found | settings


def _on_path(program: str) -> bool:
    return any(os.access(os.path.join(place, program), os.X_OK) for place in os.get_exec_path())


def _plugins() -> list[dict[str, str]]:
    from evalwright.registry import GROUPS, Catalog

    catalog = Catalog()
    return [
        {"group": GROUPS[kind], "name": item.name, "distribution": item.distribution, "version": item.version}
        for kind in GROUPS
        for item in catalog.listings(kind)
    ]
