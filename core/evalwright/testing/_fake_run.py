"""A finished run as exporters see it, from memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["FakeRun"]

CASES: Mapping[str, tuple[str, str]] = {
    "broken": ("error", ""),
    "odd-text": ("fail", "<b>&amp; ]]> \x00 \u202e \U0001f680 'a' \"b\"\r\n"),
    "right": ("pass", "right\n"),
    "unscored": ("unscored", ""),
}


class FakeRun:
    """See :class:`evalwright.interfaces.RunView`. ``cases`` gives status and answer by case id."""

    def __init__(self, cases: Mapping[str, tuple[str, str]] = CASES, *, run_id: str = "run-1", suite: str = "demo") -> None:
        self.run_id = run_id
        self.suite = suite
        self.answers = {case_id: answer for case_id, (_, answer) in cases.items()}
        listed = [{"id": case_id, "status": status, "ok": status == "pass"} for case_id, (status, _) in sorted(cases.items())]
        counts = {name: sum(case["status"] == name for case in listed) for name in ("pass", "fail", "error", "unscored")}
        ok = bool(listed) and all(case["ok"] for case in listed)
        failures = [{**case, "scores": [_score(self.answers[str(case["id"])])]} for case in listed if not case["ok"]]
        self.report: Mapping[str, Any] = {
            "run": {"ok": ok, "suite": suite, "case_count": len(listed), "status_counts": counts},
            "cases": listed,
            "failures": failures,
        }

    def artifact(self, case_id: str, name: str) -> bytes:
        """Return the answer as ``output.txt``. Raises ``FileNotFoundError`` for anything else."""
        if case_id not in self.answers or name != "output.txt":
            raise FileNotFoundError(f"{case_id}/{name}")
        return self.answers[case_id].encode()


def _score(answer: str) -> dict[str, Any]:
    findings = [{"why": "wrong answer", "answer": answer}]
    return {"scorer": "exact", "ok": False, "score": 0.0, "label": "fail", "findings": findings, "required": True}
