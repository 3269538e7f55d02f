"""``judge``: does every judge of a suite answer, and how far can it be trusted?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.judge_items import judge_items, read_items
from evalwright.cli.project import Project, open_project
from evalwright.errors import JudgeError, UsageError
from evalwright.interfaces import Deadline, Judge, JudgeRequest, Scorer
from evalwright.judging import Judging, Limits
from evalwright.judging.calibration import calibration
from evalwright.model import PluginTable
from evalwright.registry import PluginHost
from evalwright.suite import CheckedSuite

__all__ = ["answer"]

CHECK_SECONDS = 120.0
CLOSE_SECONDS = 10.0
QUESTION = JudgeRequest(messages=[{"role": "user", "content": "Answer with the single word: ready"}])
SHOWN = 200
Record = dict[str, Any]


def answer(session: Session) -> Reply:
    """Ask every judge a trivial question, or hold one against labelled items."""
    project = open_project(session)
    checked = project.suite(session.options.suite)
    judges = _Judges(checked, project.layout.evals / "cache" / "judge")
    if not judges.names:
        raise UsageError(f"the suite {checked.suite.name} names no judge", hint="add one under judges", key="judges")
    try:
        return _check(session, judges) if session.options.action == "check" else _calibrate(session, project, checked, judges)
    finally:
        judges.close()


class _Judges:
    """The judges of a suite, ready to be asked as in a trial."""

    def __init__(self, checked: CheckedSuite, cache: Path) -> None:
        written: Mapping[str, Any] = checked.suite.document.get("judges", {})
        whole = {name: {"use": table} if isinstance(table, str) else table for name, table in written.items()}
        tables = {name: PluginTable.from_json(table) for name, table in whole.items()}
        self.names = sorted(tables)
        self._host = PluginHost(checked.registry, {"judges": tables}, {"judge": Judging(tables, Limits(), cache).make})
        self._asked: dict[str, Judge[Any]] = {}

    def get(self, name: str) -> Judge[Any]:
        """Return a judge. Raises ``UsageError`` for a name that the suite does not have."""
        if name not in self.names:
            raise UsageError(f'the suite names no judge "{name}"', hint=f"it names: {', '.join(self.names)}", key="judge")
        self._asked[name] = self._host.create(f"judges.{name}")
        return self._asked[name]

    def close(self) -> None:
        """Close what was asked."""
        for judge in self._asked.values():
            judge.close(Deadline.after(CLOSE_SECONDS))


def _check(session: Session, judges: _Judges) -> Reply:
    found = [_checked(name, judges.get(name)) for name in session.options.judge or judges.names]
    lines = [_line(record) for record in found]
    ok = all(record["ok"] for record in found)
    return Reply(data={"judges": found}, text="\n".join(lines) + "\n", exit_code=0 if ok else 3)


def _checked(name: str, judge: Judge[Any]) -> Record:
    record: Record = {
        "name": name,
        "ok": False,
        "model": judge.model,
        "reply": None,
        "cost": None,
        "tries": None,
        "error": None,
    }
    problems = [problem.message for problem in judge.check("coordinator") if problem.fatal]
    if problems:
        return record | {"latency_ms": None, "error": {"kind": "judge_not_ready", "message": problems[0]}}
    started = time.monotonic()
    try:
        reply = judge.ask(QUESTION, Deadline.after(CHECK_SECONDS))
        record |= {"ok": True, "model": reply.model, "reply": reply.text[:SHOWN], "cost": reply.cost, "tries": reply.tries}
        record |= {"cached": reply.cached}
    except JudgeError as error:
        record |= {"error": {"kind": error.kind, "message": error.message}}
    return record | {"latency_ms": round((time.monotonic() - started) * 1000)}


def _line(record: Record) -> str:
    if record["error"]:
        return f"{record['name']}: {record['error']['kind']}: {record['error']['message']}"
    cost = "cost unknown" if record["cost"] is None else f"{record['cost']:.6f} USD"
    cached = ", from the cache" if record["cached"] else ""
    return f"{record['name']} ({record['model']}): {record['reply']!r} in {record['latency_ms']} ms{cached}, {cost}"


def _calibrate(session: Session, project: Project, checked: CheckedSuite, judges: _Judges) -> Reply:
    options = session.options
    if not options.items:
        raise UsageError("judge calibrate needs labelled items", hint="--items FILE", key="items")
    name, scorer = _scorer(checked, options.scorer)
    items = read_items(Path(options.items))
    answers = judge_items(scorer, judges.get, items, samples=options.samples or 2, width=project.settings.jobs)
    data = {"scorer": name, "judges": list(scorer.uses()), **calibration(answers)}
    return Reply(data=data, text=_text(data), exit_code=0 if data["judged"] else 3)


def _scorer(checked: CheckedSuite, wanted: str | None) -> tuple[str, Scorer[Any]]:
    asking = {entry.id: scorer for entry, scorer in checked.scorers if "needs-judge" in scorer.capabilities}
    if not asking or (wanted is not None and wanted not in asking):
        raise UsageError(
            f"no scorer {wanted or ''} of the suite asks a judge".replace("  ", " "),
            hint=f"those that do: {', '.join(asking) or 'none'}",
            key="scorer",
        )
    name = wanted or next(iter(asking))
    return name, asking[name]


def _text(data: Record) -> str:
    interval = data["kappa_interval"]
    ends = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    rows = [
        f"{data['scorer']}: {data['judged']} of {data['items']} items judged",
        *(f"  {kind}: {count}" for kind, count in data["errors"].items()),
        f"accuracy {_number(data['accuracy'])}   kappa {_number(data['kappa'])}{ends}",
        f"leniency {_number(data['leniency'])}   repeatability {_number(data['repeatability'])}",
        f"position bias {_number(data['position_bias'])}",
        *_table(data["confusion"]),
    ]
    return "\n".join(rows) + "\n"


def _table(confusion: Mapping[str, Mapping[str, int]]) -> Sequence[str]:
    """Return the confusion as lines: people's labels down, the judge's across."""
    columns = sorted({column for counts in confusion.values() for column in counts})
    width = max(len(label) for label in (*confusion, *columns, "people")) + 2
    lines = ["people".ljust(width) + "".join(column.rjust(width) for column in columns)]
    for row, counts in confusion.items():
        lines.append(row.ljust(width) + "".join(str(counts.get(column, 0)).rjust(width) for column in columns))
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
