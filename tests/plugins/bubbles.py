"""Sessions of ``bubblewrap`` for tests, opened as the core opens them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from evalwright.interfaces import Deadline, SandboxRequest, Session, give_tree
from evalwright_plugins.sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox

__all__ = ["ENV", "Open", "opening"]

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
Open = Callable[..., Session]


@contextlib.contextmanager
def opening(ground: Path | None = None) -> Generator[Open]:
    """Give what opens a session for a configuration and a request, below a directory that every user can traverse."""
    with contextlib.ExitStack() as ends:
        if ground is None:
            ground = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="evalwright-bwrap-")))
            ground.chmod(0o711)
        place = ground
        count = 0

        def make(config: Mapping[str, Any] | None = None, **fields: Any) -> Session:
            nonlocal count
            root = place / str(count)
            count += 1
            root.mkdir(mode=0o711)
            sandbox = BubblewrapSandbox(BubblewrapConfig(**config or {}), None)  # type: ignore[arg-type]  # it asks its host nothing
            ends.callback(lambda: sandbox.close(Deadline.after(20)))
            for name in ("w", "x"):
                (root / name).mkdir(mode=0o700)
                give_tree(root / name, sandbox.user)
            session = sandbox.open(SandboxRequest(owner="r/c/1", workspace=root / "w", exchange=root / "x", **fields))
            ends.callback(lambda: session.destroy(Deadline.after(20)))
            ends.callback(lambda: session.kill(Deadline.after(20)))
            return session

        yield make
