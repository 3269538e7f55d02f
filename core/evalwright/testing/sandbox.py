"""The contract of sandboxes."""

from __future__ import annotations

from evalwright.testing._sandbox_commands import CommandChecks
from evalwright.testing._sandbox_endings import EndingChecks
from evalwright.testing._sandbox_files import FileChecks
from evalwright.testing._sandbox_isolation import IsolationChecks

__all__ = ["SandboxContract"]


class SandboxContract(CommandChecks, EndingChecks, FileChecks, IsolationChecks):
    """What every sandbox promises. Override ``make``; see also ``options``, ``processes`` and ``python``.

    Checks of a capability run only when it is declared.
    """
