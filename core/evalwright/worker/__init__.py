"""One trial from a spec to a sealed bundle. Knows neither ledger nor coordinator."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from evalwright.interfaces import Beat, Store
from evalwright.model import TrialSpec
from evalwright.worker.failure import write_failure
from evalwright.worker.runtime import Runtime
from evalwright.worker.trial import Trial

__all__ = ["execute", "shut_down", "write_failure"]


def execute(spec: bytes, *, store: Store | None, bundle: Path | None, beat: Beat) -> bytes:
    """Carry out one trial and return its result as JSON: status, scores, digests, warnings, usage.

    ``store`` is where inputs come from; ``None`` means the directory that the spec names. With ``bundle`` the evidence is
    written there and sealed last; without one it goes into the store as a tree that the result names. ``beat`` is asked
    several times a second whether to go on. Only a defect of the harness itself raises.
    """
    return Trial(TrialSpec.from_bytes(spec), _runtime(), store, beat).run(bundle)


def shut_down() -> None:
    """Close what trials in this process share: plugins, the fork server, scratch directories."""
    if _runtime.cache_info().currsize:
        _runtime().close()
        _runtime.cache_clear()


@lru_cache(maxsize=1)
def _runtime() -> Runtime:
    return Runtime()
