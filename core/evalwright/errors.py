"""Every error that Evalwright raises on purpose.

EvalwrightError
├── UsageError               the call is wrong: a flag, a value, an id                exit 1
│   ├── UnknownCommand
│   ├── UnknownFlag
│   ├── NothingSelected      no case matches
│   └── SourceMissing        nothing to import there
├── SuiteError               the suite's files are wrong; carries all problems        exit 1
│   └── SuiteNotFound
├── RunError
│   ├── RunNotFound                                                                   exit 1
│   ├── RunCorrupt           the record contradicts itself                            exit 1
│   ├── RunBusy              somebody else holds it, or it waits for a resume         exit 4
│   └── RunConflict          the name is taken by something else                      exit 5
├── CapabilityMissing        the suite requires what its plugins cannot give          exit 2
├── PluginError                                                                       exit 3
│   ├── PluginNotFound                                                                exit 1
│   ├── PluginAmbiguous      two distributions claim the name
│   ├── PluginBroken         it cannot be imported
│   ├── PluginInvalid        its configuration or its class is wrong
│   ├── PluginFailed         it says itself that it cannot work here
│   └── PluginApiMismatch    it was written for another interface version
├── SandboxError             the isolated place failed                                exit 3
│   └── SandboxLost          it is gone, with what ran in it
├── ServiceError             a service of a trial did not start or went down          exit 3
├── JudgeError                                                                        exit 3
│   ├── JudgeUnavailable     retryable                                                exit 4
│   ├── JudgeUnreadable      no verdict can be read from the reply
│   └── JudgeRefused
├── StoreError               the content store is damaged or unreachable              exit 3
├── DiskFull                 the state is kept; resume after freeing space            exit 4
├── CostLimit                as much was spent as --max-cost allows; resumable        exit 4
├── WorkerRefused            a worker has other versions than the coordinator         exit 3
├── LeaseLost                another process took the run over                        exit 4
├── LedgerDamaged            the chain does not verify                                exit 1
└── Interrupted              Ctrl-C or SIGTERM; resumable                             exit 130
TrialError                   raised by a plugin: "this trial could not be done"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

__all__ = [
    "CapabilityMissing",
    "CostLimit",
    "DiskFull",
    "EvalwrightError",
    "Interrupted",
    "JudgeError",
    "JudgeRefused",
    "JudgeUnavailable",
    "JudgeUnreadable",
    "LeaseLost",
    "LedgerDamaged",
    "NothingSelected",
    "PluginAmbiguous",
    "PluginApiMismatch",
    "PluginBroken",
    "PluginError",
    "PluginFailed",
    "PluginInvalid",
    "PluginNotFound",
    "RunBusy",
    "RunConflict",
    "RunCorrupt",
    "RunError",
    "RunNotFound",
    "SandboxError",
    "SandboxLost",
    "ServiceError",
    "SourceMissing",
    "StoreError",
    "SuiteError",
    "SuiteNotFound",
    "TrialError",
    "UnknownCommand",
    "UnknownFlag",
    "UsageError",
    "WorkerRefused",
]


class EvalwrightError(Exception):
    """An error with a stable code, an exit status and a cure.

    ``message`` says what happened to what; ``hint`` says what to do; ``details`` (``file``, ``line``, ``key``,
    ``did_you_mean``, ``valid_values``, ``corrected_command``, ...) go into the envelope as they are.
    """

    code: ClassVar[str] = "E_INTERNAL"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: Mapping[str, Any] = details

    def records(self) -> list[dict[str, Any]]:
        """Return the entries of the envelope's ``errors``; the first one carries the exit status."""
        first = {"code": self.code, "message": self.message, "hint": self.hint, "exit_code": self.exit_code}
        return [first | {key: value for key, value in self.details.items() if value is not None}]


class UsageError(EvalwrightError):
    """The call is wrong: a flag, a value, an id."""

    code = "E_CASE_INVALID"
    exit_code = 1


class UnknownCommand(UsageError):
    """No verb has that name."""

    code = "E_UNKNOWN_COMMAND"


class UnknownFlag(UsageError):
    """The verb has no such flag."""

    code = "E_UNKNOWN_FLAG"


class NothingSelected(UsageError):
    """A selection matches no case, so there is nothing to measure."""


class SourceMissing(UsageError):
    """There is nothing to import at that place."""

    code = "E_IMPORT_SOURCE_MISSING"


class SuiteError(EvalwrightError):
    """The suite's files are wrong. ``problems`` lists every one of them as an envelope record."""

    code = "E_SCHEMA_VIOLATION"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[Mapping[str, Any]] = (), **details: Any) -> None:
        super().__init__(message, hint=hint, **details)
        self.problems = tuple(dict(problem) for problem in problems)

    def records(self) -> list[dict[str, Any]]:
        """Return one entry per problem, or the error itself when there is no list."""
        filled = [{"exit_code": self.exit_code, "hint": self.hint} | problem for problem in self.problems]
        return filled or super().records()


class SuiteNotFound(SuiteError):
    """No suite lies there."""

    code = "E_SUITE_NOT_FOUND"


class RunError(EvalwrightError):
    """Something is wrong with a run directory."""


class RunNotFound(RunError):
    """No run or experiment has that id."""

    code = "E_RUN_NOT_FOUND"
    exit_code = 1


class RunCorrupt(RunError):
    """The run's record contradicts itself or cannot be read."""

    code = "E_RUN_CORRUPT"
    exit_code = 1


class RunBusy(RunError):
    """Another process holds the run, or it is unfinished and waits for a resume."""

    code = "E_RUN_BUSY"
    exit_code = 4


class RunConflict(RunError):
    """The name is taken by something with another identity."""

    code = "E_RUN_CONFLICT"
    exit_code = 5


class CapabilityMissing(EvalwrightError):
    """The suite requires a capability that the chosen plugins do not have."""

    code = "E_CAPABILITY_MISSING"
    exit_code = 2


class PluginError(EvalwrightError):
    """Something is wrong with a plugin."""

    code = "E_PLUGIN_FAILED"


class PluginNotFound(PluginError):
    """No installed distribution offers a plugin of that name."""

    code = "E_PLUGIN_NOT_FOUND"
    exit_code = 1


class PluginAmbiguous(PluginError):
    """Two distributions claim the same name."""

    code = "E_PLUGIN_AMBIGUOUS"


class PluginBroken(PluginError):
    """The plugin cannot be imported or constructed."""

    code = "E_PLUGIN_BROKEN"


class PluginInvalid(PluginError):
    """The plugin's class, or the table given to it, is wrong."""

    code = "E_PLUGIN_INVALID"


class PluginFailed(PluginError):
    """The plugin says itself that it cannot work here."""


class PluginApiMismatch(PluginError):
    """The plugin was written for another version of its interface."""

    code = "E_PLUGIN_API_MISMATCH"


class SandboxError(EvalwrightError):
    """The isolated place could not be made or used."""

    code = "E_SANDBOX_FAILED"


class SandboxLost(SandboxError):
    """The isolated place is gone, with what ran in it."""

    code = "E_SANDBOX_LOST"


class ServiceError(EvalwrightError):
    """A service of a trial did not start, or was gone before the trial was over."""

    code = "E_SERVICE_FAILED"


class JudgeError(EvalwrightError):
    """A judge gave no usable verdict. ``kind`` is a short stable word for the record, such as ``judge_timeout``.

    ``cost`` is what the model charged nevertheless, in US dollars; ``None`` where that is unknown.
    """

    code = "E_JUDGE_FAILED"
    usual_kind: ClassVar[str] = "judge_failed"
    cost: float | None = 0.0

    def __init__(self, message: str, *, hint: str = "", kind: str | None = None, **details: Any) -> None:
        super().__init__(message, hint=hint, **details)
        self.kind = kind or self.usual_kind


class JudgeUnavailable(JudgeError):
    """The judge cannot be reached or is overloaded; a later try may work, after ``retry_after`` seconds if that is known.

    ``final`` says that it has been tried often enough.
    """

    code = "E_JUDGE_UNAVAILABLE"
    exit_code = 4
    usual_kind = "judge_unavailable"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        kind: str | None = None,
        retry_after: float | None = None,
        final: bool = False,
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, kind=kind, **details)
        self.retry_after = retry_after
        self.final = final


class JudgeUnreadable(JudgeError):
    """The reply holds no readable verdict."""

    code = "E_JUDGE_UNREADABLE"
    usual_kind = "judge_unreadable"
    cost: float | None = None


class JudgeRefused(JudgeError):
    """The judge declined to answer."""

    code = "E_JUDGE_REFUSED"
    usual_kind = "judge_refused"
    cost: float | None = None


class StoreError(EvalwrightError):
    """The content store is damaged or unreachable."""

    code = "E_STORE_FAILED"


class DiskFull(EvalwrightError):
    """No space is left; what was written is kept and the run can be resumed."""

    code = "E_DISK_FULL"
    exit_code = 4


class CostLimit(EvalwrightError):
    """The experiment has cost what it may; what was done is kept and it can be resumed with a higher limit."""

    code = "E_COST_LIMIT"
    exit_code = 4


class WorkerRefused(EvalwrightError):
    """A worker's plugins are not the coordinator's; the run can be resumed once they are."""

    code = "E_WORKER_REFUSED"


class LeaseLost(EvalwrightError):
    """Another process has taken the run over."""

    code = "E_RUN_IN_FLIGHT"
    exit_code = 4


class LedgerDamaged(EvalwrightError):
    """The event log does not verify; ``details`` name line, sequence and reason."""

    code = "E_RUN_CORRUPT"
    exit_code = 1


class Interrupted(EvalwrightError):
    """The user stopped the run; it can be resumed."""

    code = "E_INTERRUPTED"
    exit_code = 130


class TrialError(Exception):
    """Raise it from a plugin to say that this trial could not be done.

    ``kind`` is a short stable word for the record; ``transient`` marks a failure that another attempt may not meet.
    """

    def __init__(self, kind: str, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.transient = transient
