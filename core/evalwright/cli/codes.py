"""Codes of errors and warnings as data: what each is, where it comes from, and whether to try again. Literals only."""

from __future__ import annotations

from typing import Any

__all__ = ["CODES"]


def _code(kind: str, exit_code: int | None, where: str, retryable: bool | None, surface: str = "envelope") -> dict[str, Any]:
    entry: dict[str, Any] = {"class": kind, "where": where.split(), "surface": surface}
    if exit_code is not None:
        entry["exit"] = exit_code
    if kind != "warning":
        entry["retryable"] = retryable
    return entry


CODES: dict[str, dict[str, Any]] = {
    "E_CASE_INVALID": _code("user-input", 1, "validate run case", False),
    "E_SCHEMA_VIOLATION": _code("user-input", 1, "validate run", False),
    "E_SUITE_NOT_FOUND": _code("user-input", 1, "validate run report", False),
    "E_RUN_NOT_FOUND": _code("user-input", 1, "status report run verify explain replay", False),
    "E_RUN_CORRUPT": _code("user-input", 1, "run report status verify", False),
    "E_UNKNOWN_COMMAND": _code("user-input", 1, "any", False),
    "E_UNKNOWN_FLAG": _code("user-input", 1, "any", False),
    "E_IMPORT_SOURCE_MISSING": _code("user-input", 1, "import", False),
    "E_CAPABILITY_MISSING": _code("safety", 2, "run plan audit", False),
    "E_PLUGIN_NOT_FOUND": _code("user-input", 1, "validate run plugins import export", False),
    "E_PLUGIN_AMBIGUOUS": _code("tool-env", 3, "validate run plugins import export", False),
    "E_PLUGIN_BROKEN": _code("tool-env", 3, "validate run plugins import export", False),
    "E_PLUGIN_INVALID": _code("tool-env", 3, "validate run plugins import export", False),
    "E_PLUGIN_API_MISMATCH": _code("tool-env", 3, "validate run plugins import export", False),
    "E_PLUGIN_FAILED": _code("tool-env", 3, "run", False),
    "E_SANDBOX_FAILED": _code("tool-env", 3, "run audit", None),
    "E_SANDBOX_LOST": _code("tool-env", 3, "run audit", True, "runner_json"),
    "E_SERVICE_FAILED": _code("tool-env", 3, "run replay", True, "runner_json"),
    "E_SCORER_FAILED": _code("tool-env", 3, "run report", None),
    "E_JUDGE_FAILED": _code("tool-env", 3, "run", None),
    "E_JUDGE_UNAVAILABLE": _code("transient", 4, "run", True),
    "E_JUDGE_UNREADABLE": _code("tool-env", 3, "run", None),
    "E_JUDGE_REFUSED": _code("tool-env", 3, "run", None),
    "E_STORE_FAILED": _code("tool-env", 3, "run", None),
    "E_JOB_TRANSIENT": _code("transient", 4, "run", True),
    "E_RUN_BUSY": _code("transient", 4, "run replay jobs", True),
    "E_RUN_IN_FLIGHT": _code("transient", 4, "run", True),
    "E_SPOOLCTL_UNAVAILABLE": _code("tool-env", 3, "run replay plan", False),
    "E_SPOOLCTL_INCOMPATIBLE": _code("tool-env", 3, "run replay plan", False),
    "E_VM_UNAVAILABLE": _code("tool-env", 3, "run replay plan", False),
    "E_WORKER_REFUSED": _code("tool-env", 3, "run replay worker", True),
    "E_DISK_FULL": _code("transient", 4, "run replay", True),
    "E_COST_LIMIT": _code("transient", 4, "run", True),
    "E_RUN_CONFLICT": _code("conflict", 5, "run init replay suite case scorer import export new", False),
    "E_INTERRUPTED": _code("interrupted", 130, "run replay", True),
    "E_INTERNAL": _code("tool-env", 3, "any", None),
    "E_RUNNER_FAILED": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_RUNNER_TIMEOUT": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_LIMIT": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_SCORER_CASE_FAILED": _code("tool-env", None, "run replay", None, "score_json"),
    "W_UNSANDBOXED_RUNNER": _code("warning", None, "run replay", None),
    "W_GOLD_REVEALED": _code("warning", None, "validate run", None),
    "W_SELF_JUDGE": _code("warning", None, "validate run", None),
    "W_UNSEALED": _code("warning", None, "report status verify", None),
    "W_ARTIFACT_TAMPERED": _code("warning", None, "report status verify", None),
    "W_REPLAY_CASE_ABSENT": _code("warning", None, "replay", None),
    "W_NOTHING_TO_REPLAY": _code("warning", None, "replay", None),
    "W_AGENT_IDLE": _code("warning", None, "run report", None),
    "W_RUNNER_TIMEOUT": _code("warning", None, "run", None),
    "W_OUTPUT_TRUNCATED": _code("warning", None, "run", None),
    "W_USAGE_UNKNOWN": _code("warning", None, "run", None),
    "W_PATH_UNREADABLE": _code("warning", None, "run", None),
    "W_SUITE_DIFFERS": _code("warning", None, "compare", None),
    "W_PLUGIN_DRIFT": _code("warning", None, "run", None),
    "W_ENVIRONMENT_CHANGED": _code("warning", None, "run report", None),
    "W_RUN_DAMAGED": _code("warning", None, "report compare band", None),
    "W_PARTIAL_RUN": _code("warning", None, "run report", None),
    "W_RESERVATION_RECLAIMED": _code("warning", None, "run", None),
    "W_RESUME_NOTHING_PENDING": _code("warning", None, "run", None),
    "W_LEAKED_PROCESSES": _code("warning", None, "run", None),
    "W_STRAYS_ENDED": _code("warning", None, "run status report verify explain replay jobs", None),
    "W_LEDGER_TAIL_REPAIRED": _code("warning", None, "run", None),
    "W_LEDGER_UNVOUCHED": _code("warning", None, "run", None),
    "W_TRIAL_REDONE": _code("warning", None, "run", None),
    "W_PLUGIN_BROKEN": _code("warning", None, "any", None),
    "W_SANDBOX_LEFT": _code("warning", None, "run", None),
    "W_SERVICE_UNKNOWN_ROUTE": _code("warning", None, "run", None),
    "W_SERVICE_CALLS_DROPPED": _code("warning", None, "run", None),
    "W_SERVICE_LEFT": _code("warning", None, "run", None),
    "W_LEAK_SEARCH_INCOMPLETE": _code("warning", None, "audit", None),
    "W_NOTIFY_FAILED": _code("warning", None, "work", None),
    "W_PREFLIGHT": _code("warning", None, "work", None),
    "W_SUITE_SHADOWED": _code("warning", None, "validate run plan audit", None),
}
