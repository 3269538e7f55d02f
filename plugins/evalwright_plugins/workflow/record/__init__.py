"""What is on record of a run: the events of its ledger, and the state that they add up to."""

from evalwright_plugins.workflow.record.journal import Journal, state_of
from evalwright_plugins.workflow.record.reducer import BLOCKED, DISMISSED, advance, refusal
from evalwright_plugins.workflow.record.state import Decision, Outcome, Request, State, Status

__all__ = [
    "BLOCKED",
    "DISMISSED",
    "Decision",
    "Journal",
    "Outcome",
    "Request",
    "State",
    "Status",
    "advance",
    "refusal",
    "state_of",
]
