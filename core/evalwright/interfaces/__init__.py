"""The interfaces that plugins implement: abstract classes, and the frozen values that their methods take and give.

A new method always has a default body and a new argument is always a new field of a request value, so that an older
plugin keeps working. Nothing here imports pydantic at run time.
"""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.interfaces.adapter import (
        Exporter,
        Imported,
        ImportedCase,
        ImportedFile,
        ImportedSuite,
        Importer,
        RunView,
        Unsupported,
    )
    from evalwright.interfaces.forwarding import ForwardingSession
    from evalwright.interfaces.imported_runs import ImportedRun, ImportedScore, ImportedSummary, ImportedTrial
    from evalwright.interfaces.judge import Judge, JudgeReply, JudgeRequest
    from evalwright.interfaces.local import Killable, LocalSession
    from evalwright.interfaces.output import BoundedOutput, OutputSink
    from evalwright.interfaces.ownership import give, give_tree
    from evalwright.interfaces.plugin import API, Deadline, Host, Plugin, Problem
    from evalwright.interfaces.prompt import PromptTemplate
    from evalwright.interfaces.queue import Beat, Job, Outcome, Queue, QueueRun
    from evalwright.interfaces.runner import Runner, RunnerContext
    from evalwright.interfaces.sandbox import Command, Mount, Sandbox, SandboxRequest, Session
    from evalwright.interfaces.scorer import ScoreContext, Scorer
    from evalwright.interfaces.service import RunningService, Service
    from evalwright.interfaces.store import Store
    from evalwright.interfaces.threaded import ThreadedQueue
    from evalwright.interfaces.transcript import JsonLinesReader, TranscriptParser, TranscriptReader
    from evalwright.interfaces.verb import PluginVerb, VerbAnswer, VerbFlag
    from evalwright.interfaces.verdict import GradeForm, JsonForm, VerdictForm
else:
    __getattr__ = lazy(
        __name__,
        {
            ".adapter": "Exporter Imported ImportedCase ImportedFile ImportedSuite Importer RunView Unsupported",
            ".forwarding": "ForwardingSession",
            ".imported_runs": "ImportedRun ImportedScore ImportedSummary ImportedTrial",
            ".judge": "Judge JudgeReply JudgeRequest",
            ".local": "Killable LocalSession",
            ".output": "BoundedOutput OutputSink",
            ".ownership": "give give_tree",
            ".plugin": "API Deadline Host Plugin Problem",
            ".prompt": "PromptTemplate",
            ".queue": "Beat Job Outcome Queue QueueRun",
            ".runner": "Runner RunnerContext",
            ".sandbox": "Command Mount Sandbox SandboxRequest Session",
            ".scorer": "ScoreContext Scorer",
            ".service": "RunningService Service",
            ".store": "Store",
            ".threaded": "ThreadedQueue",
            ".transcript": "JsonLinesReader TranscriptParser TranscriptReader",
            ".verb": "PluginVerb VerbAnswer VerbFlag",
            ".verdict": "GradeForm JsonForm VerdictForm",
        },
    )

__all__ = [
    "API",
    "Beat",
    "BoundedOutput",
    "Command",
    "Deadline",
    "Exporter",
    "ForwardingSession",
    "GradeForm",
    "Host",
    "Imported",
    "ImportedCase",
    "ImportedFile",
    "ImportedRun",
    "ImportedScore",
    "ImportedSuite",
    "ImportedSummary",
    "ImportedTrial",
    "Importer",
    "Job",
    "JsonForm",
    "JsonLinesReader",
    "Judge",
    "JudgeReply",
    "JudgeRequest",
    "Killable",
    "LocalSession",
    "Mount",
    "Outcome",
    "OutputSink",
    "Plugin",
    "PluginVerb",
    "Problem",
    "PromptTemplate",
    "Queue",
    "QueueRun",
    "RunView",
    "Runner",
    "RunnerContext",
    "RunningService",
    "Sandbox",
    "SandboxRequest",
    "ScoreContext",
    "Scorer",
    "Service",
    "Session",
    "Store",
    "ThreadedQueue",
    "TranscriptParser",
    "TranscriptReader",
    "Unsupported",
    "VerbAnswer",
    "VerbFlag",
    "VerdictForm",
    "give",
    "give_tree",
]
