"""Who answers a request without leaving the process: nobody, a fixed answer, or a program."""

from __future__ import annotations

import json
from collections.abc import Callable

from evalwright.canonical import is_object
from evalwright.errors import PluginFailed
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.drive.drive import Gate
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.model.config import Gate as GateProgram
from evalwright_plugins.workflow.record import Request

__all__ = ["gate_of"]

DECISIONS = {"approved": "approve", "rejected": "reject", "approve": "approve", "reject": "reject"}


def gate_of(turn: Turn, execute: Callable[[Command], Completed]) -> Gate:
    """Return what ``on_gate`` of the run asks for; a yes that was refused becomes a no. ``execute`` runs its program."""
    wanted = turn.plan.config.on_gate

    def answer(turn: Turn, request: Request, refused: str) -> Order | None:
        if wanted == "ask":
            return None
        if refused:
            return Order(action="reject", by="on_gate", request=request.seq, reason=refused)
        if isinstance(wanted, GateProgram):
            return _asked(turn, request, wanted, execute)
        reason = "on_gate is fail" if wanted == "fail" else ""
        return Order(action="approve" if wanted == "approve" else "reject", by="on_gate", request=request.seq, reason=reason)

    return answer


def _asked(turn: Turn, request: Request, program: GateProgram, execute: Callable[[Command], Completed]) -> Order:
    """Ask a program. ``dismiss`` in its answer holds fingerprints of findings that it dismisses; what is no answer is a no.

    Raises ``PluginFailed`` for a program that cannot be started: nobody has said anything then.
    """
    question = {
        "run": turn.state.run,
        "work": turn.state.work,
        "kind": request.kind,
        "transition": request.transition,
        "subject": dict(request.subject),
        "reasons": list(request.reasons),
        "findings": [{**record, "fingerprint": Finding.from_json(record).fingerprint} for record in turn.state.findings],
    }
    done = execute(Command(argv=program.script, stdin=json.dumps(question).encode(), timeout=program.timeout))
    if done.spawn_error:
        hint = "put it back, then resume the run"
        raise PluginFailed(f"on_gate: the program {program.script[0]} cannot be started: {done.spawn_error}", hint=hint)
    try:
        value = json.loads(done.stdout.text)
    except ValueError:
        value = None
    if done.exit_code != 0 or not is_object(value) or value.get("decision") not in DECISIONS:
        reason = f"the gate's program gave no decision (exit {done.exit_code})"
        return Order(action="reject", by="script", request=request.seq, reason=reason)
    by = str(value.get("by") or "script")
    for fingerprint in value.get("dismiss", ()):
        turn.account.adjudicate(str(fingerprint), "dismissed", by=by, reason=str(value.get("reason", "")))
    action = DECISIONS[value["decision"]]
    return Order(
        action="approve" if action == "approve" else "reject", by=by, request=request.seq, reason=str(value.get("reason", ""))
    )
