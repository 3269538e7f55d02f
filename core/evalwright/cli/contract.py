"""The command line as data: verbs, flags, exit codes, error codes. Literals only, so that reading it costs nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["CODES", "ENVIRONMENT", "EXIT_CODES", "FEATURES", "GLOBAL_FLAGS", "VERBS", "Flag", "Verb"]

CONTRACT_VERSION = 1


class Flag(NamedTuple):
    """One flag.

    ``kind`` is ``flag`` (no value), ``text``, ``count`` (1 or more), ``seconds``, ``usd`` or ``list`` (repeatable text).
    """

    name: str
    kind: str
    help: str
    choices: tuple[str, ...] = ()
    metavar: str = ""


class Verb(NamedTuple):
    """One verb. ``args`` are positional: ``NAME`` is needed, ``NAME?`` is not; ``a|b`` is a choice of actions."""

    help: str
    args: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    exit_codes: tuple[int, ...] = (0, 1)
    mutates: bool = False
    json: bool = True


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
SLOTS = Flag("--slots", "count", "trials in flight in a queue with workers of its own (default: --jobs)", metavar="N")
ARM = Flag("--arm", "list", "only this arm of the suite (repeatable; default: all of them)", metavar="NAME")
REPEATS = Flag("--repeats", "count", "how often every arm passes over the suite (default: the suite's, or 1)", metavar="N")
MAX_COST = Flag("--max-cost", "usd", "stop, resumable, when so much was spent by all runs together", metavar="USD")
QUEUE = Flag("--queue", "text", "queue that carries the trials", metavar="NAME")
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
            Flag("--resume", "text", "finish a run or an experiment; --arm and --repeats extend it", metavar="RUN"),
            Flag("--force", "flag", "with --resume: go on although versions of plugins changed"),
            QUEUE,
            SLOTS,
            KEEP,
            PARANOID,
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
        "make a suite from a foreign format",
        ("FORMAT", "SOURCE?"),
        (Flag("--out", "text", "directory of the new suite", metavar="PATH"),),
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


def _code(kind: str, exit_code: int | None, where: str, retryable: bool | None, surface: str = "envelope") -> dict[str, Any]:
    entry: dict[str, Any] = {"class": kind, "where": where.split(), "surface": surface}
    if exit_code is not None:
        entry["exit"] = exit_code
    if kind != "warning":
        entry["retryable"] = retryable
    return entry


CODES: dict[str, dict[str, Any]] = {
    "E_CASE_INVALID": _code("user-input", 1, "validate run case", False),
    "E_SCHEMA_VIOLATION": _code("user-input", 1, "validate run", False),
    "E_SUITE_NOT_FOUND": _code("user-input", 1, "validate run report", False),
    "E_RUN_NOT_FOUND": _code("user-input", 1, "status report run verify explain replay", False),
    "E_RUN_CORRUPT": _code("user-input", 1, "run report status verify", False),
    "E_UNKNOWN_COMMAND": _code("user-input", 1, "any", False),
    "E_UNKNOWN_FLAG": _code("user-input", 1, "any", False),
    "E_IMPORT_SOURCE_MISSING": _code("user-input", 1, "import", False),
    "E_CAPABILITY_MISSING": _code("safety", 2, "run plan audit", False),
    "E_PLUGIN_NOT_FOUND": _code("user-input", 1, "validate run plugins import", False),
    "E_PLUGIN_AMBIGUOUS": _code("tool-env", 3, "validate run plugins import", False),
    "E_PLUGIN_BROKEN": _code("tool-env", 3, "validate run plugins import", False),
    "E_PLUGIN_INVALID": _code("tool-env", 3, "validate run plugins import", False),
    "E_PLUGIN_API_MISMATCH": _code("tool-env", 3, "validate run plugins import", False),
    "E_PLUGIN_FAILED": _code("tool-env", 3, "run", False),
    "E_SANDBOX_FAILED": _code("tool-env", 3, "run audit", None),
    "E_SANDBOX_LOST": _code("tool-env", 3, "run audit", True, "runner_json"),
    "E_SCORER_FAILED": _code("tool-env", 3, "run report", None),
    "E_JUDGE_FAILED": _code("tool-env", 3, "run", None),
    "E_JUDGE_UNAVAILABLE": _code("transient", 4, "run", True),
    "E_JUDGE_UNREADABLE": _code("tool-env", 3, "run", None),
    "E_JUDGE_REFUSED": _code("tool-env", 3, "run", None),
    "E_STORE_FAILED": _code("tool-env", 3, "run", None),
    "E_JOB_TRANSIENT": _code("transient", 4, "run", True),
    "E_RUN_BUSY": _code("transient", 4, "run replay jobs", True),
    "E_RUN_IN_FLIGHT": _code("transient", 4, "run", True),
    "E_SPOOLCTL_UNAVAILABLE": _code("tool-env", 3, "run replay plan", False),
    "E_SPOOLCTL_INCOMPATIBLE": _code("tool-env", 3, "run replay plan", False),
    "E_VM_UNAVAILABLE": _code("tool-env", 3, "run replay plan", False),
    "E_WORKER_REFUSED": _code("tool-env", 3, "run replay worker", True),
    "E_DISK_FULL": _code("transient", 4, "run replay", True),
    "E_COST_LIMIT": _code("transient", 4, "run", True),
    "E_RUN_CONFLICT": _code("conflict", 5, "run init replay suite case scorer import new", False),
    "E_INTERRUPTED": _code("interrupted", 130, "run replay", True),
    "E_INTERNAL": _code("tool-env", 3, "any", None),
    "E_RUNNER_FAILED": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_RUNNER_TIMEOUT": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_LIMIT": _code("tool-env", None, "run replay", None, "runner_json"),
    "E_SCORER_CASE_FAILED": _code("tool-env", None, "run replay", None, "score_json"),
    "W_UNSANDBOXED_RUNNER": _code("warning", None, "run replay", None),
    "W_GOLD_REVEALED": _code("warning", None, "validate run", None),
    "W_UNSEALED": _code("warning", None, "report status verify", None),
    "W_ARTIFACT_TAMPERED": _code("warning", None, "report status verify", None),
    "W_REPLAY_CASE_ABSENT": _code("warning", None, "replay", None),
    "W_NOTHING_TO_REPLAY": _code("warning", None, "replay", None),
    "W_OUTPUT_TRUNCATED": _code("warning", None, "run", None),
    "W_PATH_UNREADABLE": _code("warning", None, "run", None),
    "W_PLUGIN_DRIFT": _code("warning", None, "run", None),
    "W_PARTIAL_RUN": _code("warning", None, "run report", None),
    "W_RESERVATION_RECLAIMED": _code("warning", None, "run", None),
    "W_RESUME_NOTHING_PENDING": _code("warning", None, "run", None),
    "W_LEAKED_PROCESSES": _code("warning", None, "run", None),
    "W_STRAYS_ENDED": _code("warning", None, "run status report verify explain replay jobs", None),
    "W_LEDGER_TAIL_REPAIRED": _code("warning", None, "run", None),
    "W_LEDGER_UNVOUCHED": _code("warning", None, "run", None),
    "W_TRIAL_REDONE": _code("warning", None, "run", None),
    "W_PLUGIN_BROKEN": _code("warning", None, "any", None),
    "W_SANDBOX_LEFT": _code("warning", None, "run", None),
    "W_LEAK_SEARCH_INCOMPLETE": _code("warning", None, "audit", None),
    "W_SUITE_SHADOWED": _code("warning", None, "validate run plan audit", None),
}

ENVIRONMENT = {
    "CASE_FILE": "the case as JSON: without gold for a runner, complete for a scorer",
    "WORKSPACE": "the trial's private workspace",
    "OUTPUT_FILE": "where the runner may write its answer",
    "TASK_FILE": "the task as text",
    "DIFF_FILE": "the case's diff, or empty",
    "AGENT": "the agent's own files (runner.files)",
    "REPEAT": "number of the pass over the suite, from 1",
    "SEED": "a number for the agent's random choices: the same for every arm, another in every pass",
    "SUITE": "the suite's directory, for scorers only",
    "REPORT_FILE": "where a hidden-test driver writes its report",
}
