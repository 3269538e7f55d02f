"""Reader of TAP, versions 13 and 14. Subtests are judged by the line of their parent."""

from __future__ import annotations

import re

from evalwright_scorers.reports import Listed, Outcome, Report, ReportUnreadable

__all__ = ["read_tap"]

_RESULT = re.compile(r"(?P<not>not )?ok\b(?:[ \t]+(?P<number>\d+))?(?:[ \t]+-)?[ \t]*(?P<rest>.*)")
_PLAN = re.compile(r"1\.\.(?P<count>\d{1,9})\b")
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(?P<word>skip|todo)\S*(?:\s+(?P<reason>.*))?", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([\\#])")


def read_tap(document: bytes) -> Report:
    """Return the results of a TAP document. Raises ``ReportUnreadable`` when its plan and its results disagree."""
    tests: list[Listed] = []
    planned: int | None = None
    for line in document.decode("utf-8", "replace").splitlines():
        if line.startswith("Bail out!"):
            raise ReportUnreadable(f"the tests bailed out:{line[9:209]}")
        if plan := _PLAN.match(line):
            if planned is not None:
                raise ReportUnreadable("it holds two plans")
            planned = int(plan["count"])
        elif result := _RESULT.fullmatch(line):
            tests.append(_listed(result, len(tests) + 1))
    if planned != len(tests):
        plan_text = "no plan" if planned is None else f"a plan of {planned}"
        raise ReportUnreadable(f"it holds {plan_text} and {len(tests)} results")
    return Report(tests)


def _listed(result: re.Match[str], position: int) -> Listed:
    directive = _DIRECTIVE.search(result["rest"])
    name = result["rest"][: directive.start()] if directive else result["rest"]
    return Listed(
        name=_ESCAPE.sub(r"\1", name).strip() or result["number"] or str(position),
        outcome=_outcome(result["not"] is None, directive["word"].lower() if directive else ""),
        detail=(directive["reason"] or "").strip()[:200] if directive else "",
    )


def _outcome(ok: bool, directive: str) -> Outcome:
    if directive == "todo":
        return "xpassed" if ok else "xfailed"
    if not ok:
        return "failed"
    return "skipped" if directive == "skip" else "passed"
