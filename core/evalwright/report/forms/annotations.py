"""Findings as workflow commands of GitHub Actions: each becomes an annotation of the job, at its file if it names one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalwright.report.forms.findings import Part, Remark
from evalwright.report.wording import printable

__all__ = ["github_annotations"]

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github_annotations(parts: Sequence[Part], summary: str) -> str:
    """Return one line for each different finding of an arm's case, with the number of passes it was seen in.

    The last line is a notice with ``summary``. Nothing that an agent wrote can end a line or begin a command.
    """
    seen: Counter[tuple[str, Remark]] = Counter()
    passes: Counter[str] = Counter(part.arm for part in parts)
    for part in parts:
        seen.update({(part.arm, remark) for remark in (*part.remarks, *part.problems)})
    order = list(COMMANDS)
    found = sorted(seen, key=lambda item: (order.index(item[1].level), item[0], item[1].case, item[1].rule, item[1].text))
    lines = [_command(remark, arm, seen[arm, remark], passes[arm], several=len(parts) > 1) for arm, remark in found]
    return "".join(f"{line}\n" for line in [*lines, f"::notice title=Evalwright::{_data(summary)}"])


def _command(remark: Remark, arm: str, count: int, passes: int, *, several: bool) -> str:
    where = f"{remark.case} ({arm}, {count} of {passes} repeats)" if several else remark.case
    properties = {"file": remark.path, "line": None if remark.line is None or not remark.path else str(remark.line)}
    properties |= {"title": f"{where}: {remark.rule}"}
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value is not None)
    return f"::{COMMANDS[remark.level]} {said}::{_data(remark.text)}"


def _data(text: str) -> str:
    """Return a message as the runner wants it. Source: actions/toolkit, packages/core/src/command.ts."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
