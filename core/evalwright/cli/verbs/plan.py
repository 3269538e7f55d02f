"""``plan``: what ``run`` would do, without doing anything."""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import Project, open_project, selection_of
from evalwright.coordinate import Plan, check_arms, make_plan, select_cases
from evalwright.model import DEFAULT_ARM, Case

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the cases, the order and the settings of a run."""
    project = open_project(session)
    options = session.options
    checked = project.suite(options.suite)
    cases = select_cases(checked.suite, selection_of(options))
    arms = check_arms(checked.suite, options.arm) or list(checked.suite.arms) or [DEFAULT_ARM]
    plan, *_ = [make_plan(checked, cases, project.settings, arm=arm) for arm in arms]
    repeats = options.repeats or checked.suite.repeats
    entries = [_entry(plan, case) for case in plan.cases]
    page, pagination = paged(entries, "id", options.limit, options.cursor)
    runs = [{"arm": arm, "repeat": repeat} for repeat in range(1, repeats + 1) for arm in arms]
    data: dict[str, Any] = _data(project, plan, len(runs)) | {"cases": page, "total_count": len(entries), "runs": runs}
    width = data["plan"]["summary"]["parallel_tracks"]
    count = len(entries) * len(runs)
    noun = "trial" if count == 1 else "trials"
    what = f" × {len(arms)} arms" if len(arms) > 1 else ""
    what += f" × {repeats} repeats" if repeats > 1 else ""
    what = f"{len(entries)} cases{what} = {count} {noun}" if what else f"{count} {noun}"
    lines = [f"{plan.suite.name} · {what} · {width} at once · sandbox {plan.tables['sandbox']['use']}"]
    lines += [f"  {entry['id']}" for entry in page]
    reply = Reply(data=data, text="\n".join(lines) + "\n", pagination=pagination if options.limit else None)
    return reply.then(f"evalwright run {options.suite or plan.suite.name} --json", "carry the plan out")


def _entry(plan: Plan, case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "action": "run",
        "reason": "pending case",
        "timeout_seconds": plan.timeout or case.timeout or plan.suite.agent.timeout,
        "workspace": {"source": case.workspace},
        "scorers": [entry.id for entry in plan.suite.scorers],
    }


def _data(project: Project, plan: Plan, runs: int) -> dict[str, Any]:
    suite, settings, run_id = plan.suite, project.settings, project.session.options.run_id
    count = len(plan.cases) * runs
    summary = {"total_items": count, "will_run": count, "will_skip": 0, "blocked": 0}
    return {
        "suite": {"name": suite.name, "suite_dir": str(suite.directory), "case_count": len(suite.cases)},
        "run": {
            "mode": "fresh",
            "run_id": run_id,
            "run_dir": str(project.layout.run(run_id).path) if run_id is not None else None,
            "run_id_strategy": "given" if run_id is not None else "generated_at_run_time",
        },
        "execution": {
            "mode": "synchronous",
            "jobs": settings.jobs,
            "slots": settings.slots,
            "timeout_seconds": plan.timeout_seconds,
            "sandbox": plan.tables["sandbox"]["use"],
            "queue": plan.queue,
        },
        "plan": {"summary": summary | {"parallel_tracks": min(settings.width, count)}},
        "dependency_graph": {"kind": "independent_cases", "edges": list[str]()},
        "plugins": [loaded.provenance() for loaded in plan.plugins],
    }
