"""The audit for people: the answer first, then each case to mend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.audit.audit import BLOCKING

__all__ = ["audit_text"]


def audit_text(data: Mapping[str, Any]) -> str:
    """Return the audit as plain lines."""
    blocking = [problem for problem in data["problems"] if problem["kind"] in BLOCKING]
    cases = len({problem["case"] for problem in blocking})
    total = data["case_count"]
    if blocking:
        head = f"{data['suite']}: this suite cannot tell. Fix {cases} of {total} cases before you believe a score."
    elif data["gold"]["cases"] == 0:
        head = f"{data['suite']}: no case passes by doing nothing. Without gold nothing shows that they can be passed."
    else:
        head = f"{data['suite']}: every case can tell, as far as a no-op agent and the gold show."
    lines = [head]
    for problem in data["problems"]:
        mark = "✗" if problem["kind"] in BLOCKING else "~"
        lines.append(f"  {mark} {problem['case']}  {problem['kind']}: {problem['why']}")
    gold, noop = data["gold"], data["noop"]
    parts = [f"gold passes {gold['pass']} of {gold['cases']}", f"no-op passes {noop['pass']} of {total}"]
    if data["repeats"] > 1:
        parts.append(f"stable over {data['repeats']} repeats: {gold['stable']} of {gold['cases']}")
    if gold["cases"] < total:
        parts.append(f"{total - gold['cases']} cases have no gold")
    return "\n".join([*lines, f"  {' · '.join(parts)}"]) + "\n"
