"""Plan, carry out and finish runs: the only writer of ledger and run directory."""

from evalwright.coordinate.create import provenance_of
from evalwright.coordinate.importing import write_import
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.lease import Lease, lease_state
from evalwright.coordinate.plan import Plan, make_plan
from evalwright.coordinate.recover import recover
from evalwright.coordinate.request import RunRequest, Selection, select_cases
from evalwright.coordinate.resume import resume_run
from evalwright.coordinate.run import RunOutcome, run_suite
from evalwright.coordinate.state import classify, live_cases, state_of
from evalwright.processes import Stop

__all__ = [
    "Inputs",
    "Lease",
    "Plan",
    "RunOutcome",
    "RunRequest",
    "Selection",
    "Stop",
    "classify",
    "lease_state",
    "live_cases",
    "make_plan",
    "provenance_of",
    "recover",
    "resume_run",
    "run_suite",
    "select_cases",
    "state_of",
    "write_import",
]
