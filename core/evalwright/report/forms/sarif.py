"""Findings as SARIF 2.1.0, for code scanning: a run for each pass of an arm, a rule for each scorer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from evalwright import __version__
from evalwright.canonical import digest_text, finite
from evalwright.report.forms.findings import AGENT_FAULT, Part, Remark
from evalwright.report.wording import printable

__all__ = ["sarif_report"]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
WORKSPACE = "WORKSPACE"
MAX_PATH = 1024


def sarif_report(parts: Sequence[Part], *, held_out: int = 0) -> str:
    """Return the document. A finding with a path has a location, relative to the agent's workspace.

    What the harness could not judge is no result: it stands under ``invocations``, which then did not succeed. ``held_out``
    is the number of failures that are not shown.
    """
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [_run(part) for part in parts],
        "properties": {"held_out": held_out},
    }
    return json.dumps(finite(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _run(part: Part) -> dict[str, Any]:
    rules = sorted({remark.rule for remark in part.remarks})
    driver = {"name": "Evalwright", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    notifications = [_notification(problem) for problem in part.problems]
    return {
        "tool": {"driver": driver},
        "automationDetails": {
            "id": "/".join(quote(name, safe="", errors="replace") for name in (part.suite, part.arm, str(part.repeat), ""))
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {WORKSPACE: {"description": {"text": "the agent's workspace, as it left it"}}},
        "invocations": [{"executionSuccessful": not notifications, "toolExecutionNotifications": notifications}],
        "properties": {"run_id": part.run_id, "arm": part.arm, "repeat": part.repeat},
        "results": [_result(remark, rules.index(remark.rule)) for remark in part.remarks],
    }


def _rule(name: str) -> dict[str, Any]:
    text = "the agent ran into its own limit" if name == AGENT_FAULT else f"the scorer {name} objects"
    return {"id": name, "shortDescription": {"text": text}}


def _result(remark: Remark, index: int) -> dict[str, Any]:
    print_ = digest_text(f"{remark.case}\n{remark.rule}\n{remark.path or ''}\n{remark.text}")
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": index,
        "level": remark.level,
        "message": {"text": f"{printable(remark.case)}: {remark.text}"},
        "partialFingerprints": {"finding/v1": print_.removeprefix("sha256:")},
        "properties": {"case": remark.case},
    }
    location: dict[str, Any] = {"logicalLocations": [{"name": remark.case, "kind": "case"}]}
    if remark.path is not None and len(remark.path) <= MAX_PATH:
        location["physicalLocation"] = _place(remark.path, remark.line)
    return result | {"locations": [location]}


def _place(path: str, line: int | None) -> dict[str, Any]:
    uri = quote(path.encode("utf-8", "surrogateescape" if _escapes(path) else "replace"), safe="/")
    place = {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": WORKSPACE}
    return {"artifactLocation": place} | ({"region": {"startLine": line}} if line is not None else {})


def _escapes(path: str) -> bool:
    """Tell whether every lone surrogate stands for a byte, as in a file name that is not UTF-8."""
    return all(not "\ud800" <= c <= "\udfff" or "\udc80" <= c <= "\udcff" for c in path)


def _notification(problem: Remark) -> dict[str, Any]:
    return {
        "level": problem.level,
        "message": {"text": f"{printable(problem.case)}: {problem.text}"},
        "descriptor": {"id": problem.rule},
    }
