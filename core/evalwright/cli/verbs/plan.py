"""``plan``: what ``run`` would do, without doing anything."""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import open_project, selection_of
from evalwright.coordinate import make_plan, select_cases

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the cases, the order and the settings of a run."""
    project = open_project(session)
    checked = project.suite(session.options.suite)
    suite, settings, options = checked.suite, project.settings, session.options
    plan = make_plan(checked, select_cases(suite, selection_of(options)), settings)
    entries: list[dict[str, Any]] = [
        {
            "id": case.id,
            "action": "run",
            "reason": "pending case",
            "timeout_seconds": settings.timeout or case.timeout or suite.agent.timeout,
            "workspace": {"source": case.workspace},
            "scorers": [entry.id for entry in suite.scorers],
        }
        for case in plan.cases
    ]
    page, pagination = paged(entries, "id", options.limit, options.cursor)
    width = min(settings.jobs, len(entries))
    data: dict[str, Any] = {
        "suite": {"name": suite.name, "suite_dir": str(suite.directory), "case_count": len(suite.cases)},
        "run": {
            "mode": "fresh",
            "run_id": options.run_id,
            "run_dir": str(project.layout.run(options.run_id).path) if options.run_id else None,
            "run_id_strategy": "given" if options.run_id else "generated_at_run_time",
        },
        "execution": {
            "mode": "synchronous",
            "jobs": settings.jobs,
            "timeout_seconds": plan.timeout_seconds,
            "sandbox": plan.tables["sandbox"]["use"],
            "queue": settings.queue or "local",
        },
        "plan": {
            "summary": {
                "total_items": len(entries),
                "will_run": len(entries),
                "will_skip": 0,
                "blocked": 0,
                "parallel_tracks": width,
            }
        },
        "dependency_graph": {"kind": "independent_cases", "edges": []},
        "cases": page,
        "total_count": len(entries),
        "plugins": [loaded.provenance() for loaded in plan.plugins],
    }
    lines = [f"{suite.name} · {len(entries)} trials · {width} at once · sandbox {plan.tables['sandbox']['use']}"]
    lines += [f"  {entry['id']}" for entry in page]
    reply = Reply(data=data, text="\n".join(lines) + "\n", pagination=pagination if options.limit else None)
    return reply.then(f"evalwright run {suite.name} --json", "carry the plan out")
