"""``audit``: can this suite tell good from bad, and can an agent reach its gold?"""

from __future__ import annotations

import sys

from evalwright.audit import DEFAULT_SECONDS, audit_suite, audit_text, leak_test, leak_text
from evalwright.audit.audit import BLOCKING
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project, selection_of
from evalwright.coordinate import RunRequest, Stop
from evalwright.errors import UsageError

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Run a no-op agent and the gold over every case; exit 6 when a case cannot tell, or with ``--leak`` when gold leaks."""
    project = open_project(session)
    options = session.options
    if options.seconds is not None and not options.leak:
        raise UsageError("--seconds says how long the spy of --leak may search", hint="add --leak", key="seconds")
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
    text = audit_text(data)
    if options.leak:
        seconds = options.seconds or DEFAULT_SECONDS
        sys.stderr.write(f"leak: a spy searches for at most {seconds:g} s\n")
        leak = data["leak"] = leak_test(request, seconds=seconds, stop=stop)
        cannot = cannot or bool(leak["hits"])
        text += leak_text(leak)
        if not leak["complete"]:
            session.warn("W_LEAK_SEARCH_INCOMPLETE", "the spy did not search everything that the sandbox lets an agent read")
    reply = Reply(data=data, text=text, exit_code=6 if cannot else 0)
    return reply.then(f"evalwright run {options.suite or data['suite']} --json", "run the suite with your agent")
