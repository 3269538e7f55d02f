"""The command line as data: verbs, flags, exit codes. Literals only, so that reading it costs nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ENVIRONMENT", "EXIT_CODES", "FEATURES", "GLOBAL_FLAGS", "VERBS", "Flag", "Verb"]

CONTRACT_VERSION = 1


class Flag(NamedTuple):
    """One flag.

    ``kind`` is ``flag`` (no value), ``text``, ``count`` (1 or more), ``seconds``, ``usd``, ``number`` (0 or more),
    ``fraction`` (between 0 and 1) or ``list`` (repeatable text).
    """

    name: str
    kind: str
    help: str
    choices: tuple[str, ...] = ()
    metavar: str = ""


class Verb(NamedTuple):
    """One verb. ``args`` are positional: ``NAME`` is needed, ``NAME?`` is not; ``a|b`` is a choice of actions.

    ``meanings`` explains exit codes that no other verb has, ``actions`` how each action is called.
    """

    help: str
    args: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    exit_codes: tuple[int, ...] = (0, 1)
    mutates: bool = False
    json: bool = True
    meanings: dict[int, str] | None = None
    actions: dict[str, str] | None = None


JOBS = Flag("--jobs", "count", "trials in flight at once (default: the number of processors, at most 4)", metavar="N")
TIMEOUT = Flag("--timeout", "seconds", "time limit of every trial; overrides the suite and its cases", metavar="S")
RUN_ID = Flag("--run-id", "text", "id of the new run", metavar="ID")
RUN_DIR = Flag("--run-dir", "text", "a run directory anywhere, instead of an id", metavar="PATH")
FAIL_ON_FAIL = Flag("--fail-on-fail", "flag", "exit 6 when a trial is not pass")
ACKNOWLEDGE = Flag("--acknowledge-unsandboxed-runner", "flag", "say that you know what an unsandboxed runner can do")
SANDBOX = Flag("--sandbox", "text", "sandbox to use instead of the suite's", metavar="NAME")
SELECTION = (
    Flag("--case", "list", "only this case (repeatable)", metavar="ID"),
    Flag("--tag", "list", "only cases with this tag (repeatable)", metavar="TAG"),
    Flag("--split", "list", "only cases of this split (repeatable)", metavar="SPLIT"),
    Flag("--max-cases", "count", "at most so many cases, by id", metavar="N"),
)
CASES_OF = SELECTION[:3]
PAGING = (
    Flag("--limit", "count", "entries per page", metavar="N"),
    Flag("--cursor", "text", "where the page starts: next_cursor of the one before", metavar="C"),
)
EXECUTION = (JOBS, TIMEOUT, RUN_ID, SANDBOX, FAIL_ON_FAIL, ACKNOWLEDGE)
KEEP = Flag("--keep-workspace", "text", "keep the agent's workspace with the evidence", ("none", "failed", "all"))
PARANOID = Flag("--paranoid", "flag", "read every file of the workspace again after the agent, changed or not")
PROFILE = Flag("--profile", "flag", "measure where the time of every trial goes: profile.txt, .svg and .jsonl of the run")
SLOTS = Flag("--slots", "count", "trials in flight in a queue with workers of its own (default: --jobs)", metavar="N")
ARM = Flag("--arm", "list", "only this arm of the suite (repeatable; default: all of them)", metavar="NAME")
REPEATS = Flag("--repeats", "count", "how often every arm passes over the suite (default: the suite's, or 1)", metavar="N")
MAX_COST = Flag("--max-cost", "usd", "stop, resumable, when so much was spent by all runs together", metavar="USD")
METRIC = Flag(
    "--metric", "text", "pass_rate, score, cost, duration, a scorer's id, or ID.NAME for one of its metrics", metavar="NAME"
)
ALPHA = Flag("--alpha", "fraction", "chance of a false alarm that you accept (default: the experiment's, 0.05)", metavar="P")
QUEUE = Flag("--queue", "text", "queue that carries the trials", metavar="NAME")
SET = Flag("--set", "list", "an option of the format (repeatable)", metavar="KEY=VALUE")
TTL = Flag("--reservation-ttl", "count", "seconds after which other hosts may take over a silent run", metavar="S")

VERBS: dict[str, Verb] = {
    "init": Verb(
        "write the sample suite code-review into evals/",
        flags=(Flag("--force", "flag", "replace the sample suite"),),
        exit_codes=(0, 5),
        mutates=True,
    ),
    "validate": Verb("check a suite without running anything", ("SUITE?",), exit_codes=(0, 1, 3)),
    "plan": Verb(
        "show what run would do",
        ("SUITE?",),
        (JOBS, TIMEOUT, RUN_ID, SANDBOX, QUEUE, SLOTS, ARM, REPEATS, *SELECTION, *PAGING),
        (0, 1, 2, 3),
    ),
    "run": Verb(
        "run a suite, once per arm and repeat; or resume a run or an experiment",
        ("SUITE?",),
        (
            *EXECUTION,
            ARM,
            REPEATS,
            MAX_COST,
            Flag("--gate", "list", "exit 6 unless METRIC>=NUMBER (<=, >, <, ==) or no-regression holds", metavar="GATE"),
            Flag("--baseline", "text", "for no-regression: a run, an experiment of one arm, or ID:ARM", metavar="RUN"),
            Flag("--resume", "text", "finish a run or an experiment; --arm and --repeats extend it", metavar="RUN"),
            Flag("--force", "flag", "with --resume: go on although versions of plugins changed"),
            QUEUE,
            SLOTS,
            KEEP,
            PARANOID,
            PROFILE,
            TTL,
            *SELECTION,
        ),
        (0, 1, 2, 3, 4, 5, 6, 130),
        mutates=True,
    ),
    "status": Verb("show the state of a run or an experiment, live too", ("RUN?",), (RUN_DIR, *PAGING)),
    "report": Verb(
        "show the verdicts of a run or an experiment, recomputed from artifacts",
        ("RUN?",),
        (
            RUN_DIR,
            Flag("--format", "text", "form of the report", ("text", "markdown", "json", "junit", "sarif", "github")),
            Flag("--failures", "flag", "only what did not pass"),
            Flag("--group-by", "text", "put failures together by what they share", ("finding", "case", "tag", "split", "arm")),
            Flag(
                "--out", "text", "with --format markdown: write report.md and its pictures into this directory", metavar="DIR"
            ),
            *CASES_OF,
            *PAGING,
        ),
        (0, 1, 3),
    ),
    "compare": Verb(
        "say whether one arm is better than another: an experiment's arms, or two of ID and ID:ARM",
        ("A", "B?"),
        (
            Flag("--arm", "list", "with one experiment: these arms, the first being the baseline (repeatable)", metavar="NAME"),
            METRIC,
            ALPHA,
            Flag("--min-effect", "number", "the least difference that matters, in the metric's unit", metavar="D"),
        ),
    ),
    "band": Verb(
        "say how much the repeats of each arm differ: band, flaky cases, what any or all of them reach",
        ("EXPERIMENT",),
        (METRIC, Flag("--items", "text", "what is hit or missed: pass, or the name of a score with hits", metavar="NAME")),
    ),
    "rescore": Verb(
        "judge stored trials again, by the suite as it is now, into linked runs; the agent does not run",
        ("RUN",),
        (
            Flag("--suite", "text", "suite to take scorers and judges from, instead of the run's", metavar="SUITE"),
            Flag("--scorer", "list", "only this scorer judges again (repeatable; default: all that can)", metavar="ID"),
            Flag("--judge", "list", "only scorers that ask this judge (repeatable)", metavar="NAME"),
            RUN_ID,
            JOBS,
            FAIL_ON_FAIL,
        ),
        (0, 1, 3, 4, 5, 6),
        mutates=True,
    ),
    "explain": Verb("show one trial hop by hop: times, plugins, digests", ("RUN", "CASE"), (RUN_DIR,)),
    "verify": Verb("check ledger, seals and digests of a run or an experiment", ("RUN?",), (RUN_DIR,)),
    "replay": Verb(
        "run the trials of a run again that did not pass",
        ("RUN?",),
        (
            Flag("--failed", "flag", "those that did not pass (needed)"),
            RUN_DIR,
            Flag("--suite", "text", "suite to take the cases from, instead of the run's", metavar="SUITE"),
            Flag("--force", "flag", "replace a finished run of that id"),
            *EXECUTION,
            QUEUE,
            SLOTS,
            KEEP,
            PARANOID,
            TTL,
        ),
        (0, 1, 2, 3, 4, 5, 6, 130),
        mutates=True,
    ),
    "audit": Verb(
        "find out whether a suite can tell good from bad: no-op and gold over every case",
        ("SUITE?",),
        (
            JOBS,
            SANDBOX,
            Flag("--repeats", "count", "repeats of the gold, to find flaky cases", metavar="N"),
            Flag("--require-gold", "flag", "a case without gold is a problem"),
            Flag("--leak", "flag", "plant canaries and let a spy in the sandbox search for them; exit 6 when it finds gold"),
            Flag("--seconds", "seconds", "with --leak: how long the spy may search (default: 60)", metavar="S"),
            *SELECTION,
        ),
        (0, 1, 2, 3, 6),
    ),
    "judge": Verb(
        "ask every judge of a suite a trivial question, or hold one against items that people labelled",
        ("check|calibrate", "SUITE?"),
        (
            Flag("--judge", "list", "check: only this judge (repeatable)", metavar="NAME"),
            Flag("--items", "text", "calibrate: JSON Lines of items with output and label", metavar="FILE"),
            Flag("--scorer", "text", "calibrate: id of the scorer that asks the judge (default: the first)", metavar="ID"),
            Flag("--samples", "count", "calibrate: how often each item is judged (default: 2)", metavar="N"),
            JOBS,
        ),
        (0, 1, 3),
    ),
    "worker": Verb(
        "carry out one trial from a spec file, which a queue's coordinator wrote",
        ("SPEC",),
        (
            Flag("--bundle", "text", "directory for the sealed evidence (default: the store)", metavar="DIR"),
            Flag("--store", "text", "content store to use instead of the spec's", metavar="DIR"),
            Flag("--lock", "text", "refuse unless the versions here have this digest", metavar="DIGEST"),
            Flag("--coordinator", "text", "end when it is gone: {pid, start_time, boot_id, host}", metavar="JSON"),
            Flag("--out", "text", "write the outcome to this file", metavar="FILE"),
        ),
        (0, 1, 3, 130),
        mutates=True,
    ),
    "jobs": Verb(
        "list runs, show one, or remove what dead processes left",
        ("list|get|prune", "RUN?"),
        (Flag("--yes", "flag", "prune for real"), Flag("--force", "flag", "the same as --yes"), *PAGING),
        mutates=True,
    ),
    "suite": Verb(
        "create a suite",
        ("add", "NAME"),
        (
            Flag("--runner-argv", "text", "the agent's command, split as a shell splits words", metavar="ARGV"),
            Flag("--runner-command", "text", "the agent's command as one shell line; needs --shell", metavar="CMD"),
            Flag("--shell", "flag", "run --runner-command by a shell"),
            Flag("--native", "flag", "write the native form (schema_version 2)"),
        ),
        (0, 1, 5),
        mutates=True,
    ),
    "case": Verb(
        "add a case to a suite, or many from stdin",
        ("add", "SUITE"),
        (
            Flag("--task", "text", "what the agent is asked to do", metavar="TEXT"),
            Flag("--workspace", "text", "fixture directory inside the suite", metavar="PATH"),
            Flag("--id", "text", "id of the case", metavar="ID"),
            Flag("--diff", "text", "diff file inside the suite", metavar="PATH"),
            Flag("--expect-json", "text", "expectations as a JSON object", metavar="JSON"),
            Flag("--stdin", "flag", "read cases from stdin, one JSON object a line"),
        ),
        (0, 1, 5),
        mutates=True,
    ),
    "scorer": Verb(
        "add a scorer to a suite",
        ("add", "SUITE"),
        (
            Flag("--name", "text", "name of the scorer", metavar="NAME"),
            Flag("--id", "text", "id of this entry", metavar="ID"),
            Flag("--required", "flag", "it decides the status (default)"),
            Flag("--advisory", "flag", "it never changes the status"),
            Flag("--argv", "text", "command scorer: words, split as a shell splits them", metavar="ARGV"),
            Flag("--command", "text", "command scorer: one shell line; needs --shell", metavar="CMD"),
            Flag("--shell", "flag", "run --command by a shell"),
            Flag("--timeout", "count", "command scorer: seconds", metavar="S"),
        ),
        (0, 1, 5),
        mutates=True,
    ),
    "import": Verb(
        "make a suite, or an experiment, from a foreign format",
        ("FORMAT", "SOURCE?"),
        (
            Flag("--out", "text", "directory of the new suite, or id of the new experiment", metavar="PATH"),
            SET,
        ),
        (0, 1, 3, 5),
        mutates=True,
    ),
    "export": Verb(
        "write a run in a foreign format",
        ("FORMAT", "RUN?"),
        (RUN_DIR, Flag("--out", "text", "file or directory to write (default: named after the run)", metavar="PATH"), SET),
        (0, 1, 3, 5),
        mutates=True,
    ),
    "plugins": Verb("list installed plugins, or check one", ("list|check", "NAME?"), exit_codes=(0, 1, 3)),
    "new": Verb(
        "write the skeleton of a plugin package",
        ("KIND", "NAME"),
        (Flag("--out", "text", "directory to create (default: the name)", metavar="PATH"),),
        (0, 1, 5),
        mutates=True,
    ),
    "doctor": Verb(
        "say what works here, with every effective setting and its origin",
        flags=(
            Flag("--component", "text", "only this one", metavar="NAME"),
            Flag("--fast", "flag", "look, but start nothing"),
        ),
    ),
    "capabilities": Verb(
        "print the machine contract", flags=(Flag("--plugins", "flag", "add the installed plugins"),), exit_codes=(0,)
    ),
    "schema": Verb("print JSON Schemas of outputs and files", ("VERB?",)),
    "robot-docs": Verb("print the handbook for agents", ("guide",), json=False),
}

GLOBAL_FLAGS = {
    "--json": "one JSON envelope on stdout; the default when stdout is no terminal",
    "--format": "text or json, whatever stdout is; --json beats it",
    "--no-color": "no colours",
    "--help": "help for a verb; never has a side effect",
    "--version": "print the version",
}

EXIT_CODES: dict[int, dict[str, Any]] = {
    0: {"meaning": "success", "retryable": None},
    1: {"meaning": "user input is wrong", "retryable": False},
    2: {"meaning": "safety block: a required capability is missing", "retryable": False},
    3: {"meaning": "environment: a broken plugin or a harness failure", "retryable": None},
    4: {"meaning": "transient; retry or resume", "retryable": True},
    5: {"meaning": "conflict with something that exists", "retryable": False},
    6: {"meaning": "the evaluation failed", "retryable": False},
    130: {"meaning": "interrupted; resume", "retryable": True},
}

FEATURES = (
    "universal_envelope",
    "deterministic_output",
    "artifact_replay",
    "workspace_diff",
    "authoring",
    "execution_replay",
    "command_scorer",
    "durable_runs",
    "resumable",
    "run_state_jobs",
    "hidden_tests",
    "sealed_artifacts",
    "plugins",
    "audit",
    "leak_test",
)

ENVIRONMENT = {
    "CASE_FILE": "the case as JSON: without gold for a runner, complete for a scorer",
    "WORKSPACE": "the trial's private workspace",
    "OUTPUT_FILE": "where the runner may write its answer",
    "TASK_FILE": "the task as text",
    "TRANSCRIPT_FILE": "where the agent may write its transcript",
    "USAGE_FILE": "where the agent may write what it consumed",
    "DIFF_FILE": "the case's diff, or empty",
    "AGENT": "the agent's own files (runner.files)",
    "REPEAT": "number of the pass over the suite, from 1",
    "SEED": "a number for the agent's random choices: the same for every arm, another in every pass",
    "SUITE": "the suite's directory, for scorers only",
    "REPORT_FILE": "where a hidden-test driver writes its report",
}
