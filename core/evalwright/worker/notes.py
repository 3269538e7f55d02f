"""What went wrong in a trial: the failure that decides its status, and the warnings that do not."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.canonical import finite
from evalwright.errors import EvalwrightError, SandboxLost, TrialError
from evalwright.redaction import Redactor

__all__ = ["SHORTAGES", "Notes"]

SHORTAGES = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
MAX_TRACE = 8000


class Notes:
    """The failure and the warnings of one trial. Whatever they say is redacted."""

    def __init__(self, redactor: Redactor) -> None:
        self.failure: dict[str, Any] | None = None
        self.warnings: list[dict[str, str]] = []
        self._redactor = redactor

    def warn(self, code: str, message: str) -> None:
        """Note what changes no status."""
        self.warnings.append({"code": code, "message": self._text(message)})

    def fail(self, code: str, kind: str, message: str, *, fault: str = "harness", transient: bool = False, **more: Any) -> None:
        """Note the first failure; later ones are its consequences. Another attempt may not meet a ``transient`` one."""
        if self.failure is None:
            self.failure = {
                "code": code,
                "kind": kind,
                "message": self._text(message),
                "fault": fault,
                "transient": transient,
                **more,
            }

    def defect(self, error: BaseException, plugin: str) -> None:
        """Turn an exception of a plugin into the failure: what it said, or the defect that it is."""
        if isinstance(error, SandboxLost):
            self.fail(error.code, "sandbox_lost", error.message, transient=True)
        elif isinstance(error, TrialError):
            self.fail("E_RUNNER_FAILED", error.kind, str(error), transient=error.transient)
        elif isinstance(error, OSError) and error.errno in SHORTAGES:
            self.fail("E_RUNNER_FAILED", "shortage", f"the machine is short of something: {error}", transient=True)
        elif isinstance(error, EvalwrightError):
            self.fail(error.code, "harness", error.message)
        else:
            trace = self._text("".join(traceback.format_exception(error))[-MAX_TRACE:])
            message = f"{plugin} failed: {type(error).__name__}: {error}"
            self.fail("E_RUNNER_FAILED", "plugin_defect", message, traceback=trace)

    def transient(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether all that went wrong, in the trial and in its scores, is of a kind that another attempt may not meet."""
        broken = [record.get("transient", False) for record in records if record.get("error")]
        return (self.failure is None or bool(self.failure["transient"])) and all(broken)

    def _text(self, text: str) -> str:
        """Return a text as it can be stored: without secrets, and encodable."""
        return self._redactor.text(str(finite(text)))
