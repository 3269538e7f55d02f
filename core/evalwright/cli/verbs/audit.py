"""``audit``: can this suite tell good from bad?"""

from __future__ import annotations

from evalwright.audit import audit_suite, audit_text
from evalwright.audit.audit import BLOCKING
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project, selection_of
from evalwright.coordinate import RunRequest, Stop

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Run a no-op agent and the gold over every case; exit 6 when a case cannot tell."""
    project = open_project(session)
    options = session.options
    stop = Stop()
    stop.listen()
    request = RunRequest(
        checked=project.suite(options.suite),
        layout=project.layout,
        settings=project.settings,
        selection=selection_of(options),
        argv=session.argv,
        environment=session.environment,
    )
    data = audit_suite(
        request,
        repeats=options.repeats or 1,
        require_gold=options.require_gold,
        stop=stop,
        observers=project.observers,
        warn=session.warn,
    )
    cannot = any(problem["kind"] in BLOCKING for problem in data["problems"])
    reply = Reply(data=data, text=audit_text(data), exit_code=6 if cannot else 0)
    return reply.then(f"evalwright run {options.suite or data['suite']} --json", "run the suite with your agent")
