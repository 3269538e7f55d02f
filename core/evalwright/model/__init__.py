"""The values that travel between the stages of a trial: frozen, slotted, standard library only."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.model.manifest import Change, Entry, Manifest
    from evalwright.model.reported_usage import read_usage, usage_from
    from evalwright.model.result import Completed, Output, RunnerResult
    from evalwright.model.score import Finding, Score, ScoredTrial, ServiceRecord
    from evalwright.model.spec import TrialSpec, TrialView
    from evalwright.model.suite import (
        BUILTIN_SCORERS,
        DEFAULT_ALPHA,
        DEFAULT_ARM,
        METRICS,
        AgentTable,
        Arm,
        Case,
        PluginTable,
        Retry,
        ScorerEntry,
        Suite,
    )
    from evalwright.model.transcript import Transcript
    from evalwright.model.usage import Total, Usage
else:
    __getattr__ = lazy(
        __name__,
        {
            ".manifest": "Change Entry Manifest",
            ".reported_usage": "read_usage usage_from",
            ".result": "Completed Output RunnerResult",
            ".score": "Finding Score ScoredTrial ServiceRecord",
            ".spec": "TrialSpec TrialView",
            ".suite": "BUILTIN_SCORERS DEFAULT_ALPHA DEFAULT_ARM METRICS "
            "AgentTable Arm Case PluginTable Retry ScorerEntry Suite",
            ".transcript": "Transcript",
            ".usage": "Total Usage",
        },
    )

__all__ = [
    "BUILTIN_SCORERS",
    "DEFAULT_ALPHA",
    "DEFAULT_ARM",
    "METRICS",
    "AgentTable",
    "Arm",
    "Case",
    "Change",
    "Completed",
    "Entry",
    "Finding",
    "Manifest",
    "Output",
    "PluginTable",
    "Retry",
    "RunnerResult",
    "Score",
    "ScoredTrial",
    "ScorerEntry",
    "ServiceRecord",
    "Suite",
    "Total",
    "Transcript",
    "TrialSpec",
    "TrialView",
    "Usage",
    "read_usage",
    "usage_from",
]
