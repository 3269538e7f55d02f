"""Whether workspaces can be made in the way that was asked for, found out before anything starts."""

from __future__ import annotations

from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.plan import Plan
from evalwright.errors import SandboxError, UsageError
from evalwright.store import DirectoryStore
from evalwright.workspace import Cloner, Fixture, Scratch

__all__ = ["check_clones"]


def check_clones(plan: Plan, inputs: Inputs, store: DirectoryStore) -> None:
    """Raise ``UsageError`` that says what is possible where a clone strategy is not; workers on other hosts are not asked."""
    queues = [loaded.cls for loaded in plan.plugins if loaded.kind == "queue"]
    if plan.clone in ("auto", "copy") or any("cross-host" in queue.capabilities for queue in queues):
        return
    scratch = Scratch(plan.workspaces.resolve() if plan.workspaces else None)
    cloner = Cloner(plan.clone)
    try:
        for digest in sorted(set(inputs.fixtures.values())):
            fixture = Fixture(digest, store.tree(digest), store.verified)
            cloner.check(fixture, scratch.place(fixture.size_bytes))
    except SandboxError as error:
        raise UsageError(error.message, hint=error.hint, key="clone") from error
    finally:
        scratch.close()
