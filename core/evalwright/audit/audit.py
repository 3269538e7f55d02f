"""Run the two agents over a suite and list the cases that cannot tell."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from evalwright.coordinate import RunRequest, Stop, run_suite, select_cases
from evalwright.errors import TrialError
from evalwright.hooks import Observers
from evalwright.interfaces import ScoreContext
from evalwright.model import Case, PluginTable, ScoredTrial
from evalwright.report import Projection, ReportedCase
from evalwright.report.wording import finding_text
from evalwright.rundir import Layout
from evalwright.store import DirectoryStore
from evalwright.suite import CheckedSuite
from evalwright.suite.expect import own_expectations

__all__ = ["BLOCKING", "audit_suite"]

Record = dict[str, Any]
Warn = Callable[[str, str], None]
ObserverSource = Callable[[Callable[[str], None]], Observers]
AGENTS = "evalwright.audit.agents"
BLOCKING = frozenset({"noop-passes", "gold-fails", "gold-flaky", "cannot-fail", "unpassable", "no-gold"})
"""Kinds of problems that keep a suite from telling; ``weak`` alone does not."""


def audit_suite(
    request: RunRequest, *, repeats: int, require_gold: bool, stop: Stop, observers: ObserverSource, warn: Warn
) -> Record:
    """Return ``{suite, case_count, repeats, noop{}, gold{}, problems[{case, kind, why}]}``. Leaves nothing behind.

    Raises as :func:`evalwright.coordinate.run_suite`.
    """
    cases = select_cases(request.checked.suite, request.selection)
    with tempfile.TemporaryDirectory(prefix="evalwright-audit-") as scratch:
        layout = Layout(Path(scratch), Path(scratch) / "runs")

        def run(name: str, checked: CheckedSuite, chosen: Sequence[Case]) -> Projection:
            selection = replace(request.selection, cases=[case.id for case in chosen])
            trial = replace(request, checked=checked, layout=layout, run_id=name, selection=selection)
            return run_suite(trial, stop=stop, observers=observers, warn=_quiet(warn)).report

        noop = run("noop", _with_runner(request.checked, PluginTable(use=f"{AGENTS}:NoOpRunner")), cases)
        solved = [case for case in cases if case.gold is not None]
        golden = _gold_suite(request, solved, layout) if solved else None
        golds = [run(f"gold-{number}", golden, solved) for number in range(1, repeats + 1)] if golden else []
    problems = [
        *_noop_problems(noop),
        *_gold_problems(golds),
        *_static_problems(request.checked, cases),
        *(
            [_problem(case.id, "no-gold", "the case has no reference solution") for case in cases if case.gold is None]
            if require_gold
            else []
        ),
    ]
    return {
        "suite": request.checked.suite.name,
        "case_count": len(cases),
        "repeats": repeats,
        "noop": _totals([noop]),
        "gold": _totals(golds[:1]) | {"cases": len(solved), "stable": _stable(golds)},
        "problems": sorted(problems, key=lambda problem: (problem["kind"] not in BLOCKING, problem["case"], problem["kind"])),
    }


def _with_runner(checked: CheckedSuite, runner: PluginTable, **agent: Any) -> CheckedSuite:
    suite = checked.suite
    table = replace(suite.agent, redact_env_values=(), transcript=None, limits=None, **agent)
    return replace(checked, suite=replace(suite, runner=runner, agent=table))


def _gold_suite(request: RunRequest, cases: Sequence[Case], layout: Layout) -> CheckedSuite:
    """Return the suite with the agent that knows: its files come from a tree of their own, its case by its real id."""
    store = DirectoryStore(layout.store)
    suite = request.checked.suite
    results = request.layout.within(suite.directory)
    tree = store.put_tree(suite.directory, skip=lambda path: path in results)
    solutions = {case.id: case.gold for case in cases}
    config = {"store": str(layout.store), "tree": tree, "solutions": solutions}
    return _with_runner(request.checked, PluginTable(use=f"{AGENTS}:GoldRunner", config=config), reveal_id=True)


def _noop_problems(report: Projection) -> list[Record]:
    found = [_problem(case.id, "noop-passes", "an agent that does nothing passes") for case in report.cases if case.ok]
    found += [
        _problem(case.id, "cannot-fail", "no scorer applies to this case, so nothing can fail")
        for case in report.cases
        if case.status == "unscored"
    ]
    return found


def _gold_problems(reports: Sequence[Projection]) -> list[Record]:
    found: list[Record] = []
    by_case: dict[str, list[ReportedCase]] = {}
    for report in reports:
        for case in report.cases:
            by_case.setdefault(case.id, []).append(case)
    for case_id, trials in by_case.items():
        passed = sum(trial.ok for trial in trials)
        if passed == len(trials):
            continue
        failed = next(trial for trial in trials if not trial.ok)
        if passed:
            why = f"the reference solution passes {passed} of {len(trials)} times: {_reason(failed)}"
            found.append(_problem(case_id, "gold-flaky", why))
        else:
            found.append(_problem(case_id, "gold-fails", f"the reference solution does not pass: {_reason(failed)}"))
    return found


def _static_problems(checked: CheckedSuite, cases: Sequence[Case]) -> list[Record]:
    """Ask each scorer what an accepted answer would be, and let it judge that; and whether its pass proves much."""
    found: list[Record] = []
    for case in cases:
        for entry, scorer in checked.scorers:
            own = own_expectations(entry, scorer, case.expect)
            if not scorer.applies(own):
                continue
            weakness = scorer.weakness(own)
            if weakness:
                found.append(_problem(case.id, "weak", f"{entry.id}: {weakness}"))
            why = _unpassable(scorer, own, case, native=checked.suite.native)
            if why:
                found.append(_problem(case.id, "unpassable", f"{entry.id}: {why}"))
    return found


def _unpassable(scorer: Any, own: Mapping[str, Any], case: Case, *, native: bool) -> str | None:
    answer = scorer.solution(own)
    if answer is None:
        return None
    trial = ScoredTrial(case_id=case.id, task=case.task, expect=own, output=answer, exit_code=0, native=native)
    try:
        score = scorer.score(trial, cast(ScoreContext, None))
    except TrialError as error:
        return f"the right answer {answer!r} cannot be judged: {error}"
    return None if score.ok else f"the right answer {answer!r} does not pass, so no agent can"


def _reason(case: ReportedCase) -> str:
    for score in case.scores:
        if not score["ok"]:
            first = finding_text(score["findings"][0]) if score["findings"] else score["label"]
            return f"{score.get('id', score['scorer'])}: {first}"
    return case.status


def _totals(reports: Sequence[Projection]) -> dict[str, int]:
    totals: dict[str, int] = dict.fromkeys(("pass", "fail", "error", "unscored"), 0)
    for report in reports:
        for status, count in report.counts.items():
            totals[status] += count
    return totals


def _stable(reports: Sequence[Projection]) -> int:
    """Return how many cases passed in every repeat of the gold."""
    passed: list[set[str]] = [{case.id for case in report.cases if case.ok} for report in reports]
    return len(passed[0].intersection(*passed[1:])) if passed else 0


def _problem(case: str, kind: str, why: str) -> Record:
    return {"case": case, "kind": kind, "why": why}


def _quiet(warn: Warn) -> Warn:
    """Pass on what concerns the machine, not what concerns the two artificial agents."""

    def only_plugins(code: str, message: str) -> None:
        if code == "W_PLUGIN_BROKEN":
            warn(code, message)

    return only_plugins
