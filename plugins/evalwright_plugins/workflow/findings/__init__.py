"""What reviewers find: how it is read, recognised again, judged by people, and when a review goes in circles."""

from evalwright_plugins.workflow.findings.account import Account, Adjudication, Decision
from evalwright_plugins.workflow.findings.convergence import not_converging
from evalwright_plugins.workflow.findings.envelope import Envelope, EnvelopeError, Status, read_envelope
from evalwright_plugins.workflow.findings.finding import SEVERITIES, Finding, Severity, Split, more_severe, split

__all__ = [
    "SEVERITIES",
    "Account",
    "Adjudication",
    "Decision",
    "Envelope",
    "EnvelopeError",
    "Finding",
    "Severity",
    "Split",
    "Status",
    "more_severe",
    "not_converging",
    "read_envelope",
    "split",
]
