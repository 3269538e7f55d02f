"""Plan, carry out and finish runs: the only writer of ledger and run directory."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.coordinate.create import provenance_of
    from evalwright.coordinate.extend import Extension, resume_experiment
    from evalwright.coordinate.importing import write_import
    from evalwright.coordinate.inputs import Inputs
    from evalwright.coordinate.lease import Lease, lease_state
    from evalwright.coordinate.looks import take_look
    from evalwright.coordinate.plan import Plan, make_plan
    from evalwright.coordinate.recover import clear_leftovers
    from evalwright.coordinate.request import RunRequest, Selection, check_arms, select_cases
    from evalwright.coordinate.rescoring import rescore
    from evalwright.coordinate.resume import resume_run
    from evalwright.coordinate.run import ExperimentOutcome, RunOutcome, run_experiment, run_suite
    from evalwright.coordinate.state import classify, live_cases, sealed_state, state_of
    from evalwright.processes import Stop
else:
    __getattr__ = lazy(
        __name__,
        {
            ".create": "provenance_of",
            ".extend": "Extension resume_experiment",
            ".importing": "write_import",
            ".inputs": "Inputs",
            ".lease": "Lease lease_state",
            ".looks": "take_look",
            ".plan": "Plan make_plan",
            ".recover": "clear_leftovers",
            ".request": "RunRequest Selection check_arms select_cases",
            ".rescoring": "rescore",
            ".resume": "resume_run",
            ".run": "ExperimentOutcome RunOutcome run_experiment run_suite",
            ".state": "classify live_cases sealed_state state_of",
            "evalwright.processes": "Stop",
        },
    )

__all__ = [
    "ExperimentOutcome",
    "Extension",
    "Inputs",
    "Lease",
    "Plan",
    "RunOutcome",
    "RunRequest",
    "Selection",
    "Stop",
    "check_arms",
    "classify",
    "clear_leftovers",
    "lease_state",
    "live_cases",
    "make_plan",
    "provenance_of",
    "rescore",
    "resume_experiment",
    "resume_run",
    "run_experiment",
    "run_suite",
    "sealed_state",
    "select_cases",
    "state_of",
    "take_look",
    "write_import",
]
