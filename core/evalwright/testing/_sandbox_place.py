"""What the checks of a sandbox share: sessions opened and ended as the core does it, and commands that carry a mark."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from evalwright.interfaces import Command, Deadline, Host, Sandbox, SandboxRequest, Session, give_tree
from evalwright.model import Completed
from evalwright.testing._contract import Contract
from evalwright.testing._processes import MARK, marked

__all__ = ["TIMEOUT", "SandboxPlace"]

TIMEOUT = 30.0
END_SECONDS = 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class SandboxPlace(Contract[Sandbox[Any]]):
    """The hooks of the sandbox contract, and what its checks use."""

    kind = "sandbox"
    _made: Path | None = None

    def make(self, host: Host) -> Sandbox[Any]:
        """Return a new sandbox. Commands need ``/bin/sh`` and the usual small programs inside."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def options(self) -> Mapping[str, Any]:
        """Return the case's own ``sandbox`` table, for a sandbox with a ``CaseConfig``."""
        return {}

    def processes(self, mark: str) -> list[int]:
        """Return what still runs of the commands that carry a mark, as the sandbox finds it or ``/proc`` shows it."""
        found = self.plugin.find(f"{MARK}={mark}") if self.plugin else None
        return marked(mark) if found is None else list(found)

    def request(self, place: Path, **fields: Any) -> SandboxRequest:
        """Return a request with new directories, as the core makes them: other users can come as far as to each of them.

        They lie below ``place`` where that is possible.
        """
        root = self._ground(place) / secrets.token_hex(4)
        root.mkdir(mode=0o711)
        for name in ("w", "x"):
            (root / name).mkdir(mode=0o700)
        values: dict[str, Any] = {"owner": f"run/{root.name}/1", "options": self.options()}
        return SandboxRequest(workspace=root / "w", exchange=root / "x", **(values | fields))

    def _ground(self, place: Path) -> Path:
        """Return a directory that every user can traverse; it goes with this object."""
        if all(parent.stat().st_mode & 0o001 for parent in (place, *place.parents)):
            return place
        if self._made is None:
            made = Path(tempfile.mkdtemp(prefix="evalwright-contract-"))
            made.chmod(0o711)
            weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
            self._made = made
        return self._made

    def begun(self, sandbox: Sandbox[Any], request: SandboxRequest) -> Session:
        """Open a session as the core does: the files of the request belong to the user that commands run as."""
        for directory in (request.workspace, request.exchange):
            give_tree(directory, sandbox.user)
        return sandbox.open(request)

    @contextlib.contextmanager
    def opened(self, sandbox: Sandbox[Any], place: Path, **fields: Any) -> Generator[Session]:
        """Give a session; it is killed, collected and destroyed after the block, however that ends."""
        session = self.begun(sandbox, self.request(place, **fields))
        try:
            yield session
        finally:
            end(session)

    @contextlib.contextmanager
    def session(self, place: Path, **fields: Any) -> Generator[Session]:
        """Give a session of a new sandbox."""
        with self.made() as sandbox, self.opened(sandbox, place, **fields) as session:
            yield session

    def sh(self, session: Session, script: str, *, mark: str = "", timeout: float | None = TIMEOUT, **fields: Any) -> Completed:
        """Run a shell script."""
        env = {"PATH": PATH, "LC_ALL": "C", **({MARK: mark} if mark else {})}
        return session.execute(Command(argv=["/bin/sh", "-c", script], env=env, timeout=timeout, **fields))


def end(session: Session) -> None:
    """End a session as the core does it: kill, collect, destroy; a later step is done although an earlier one failed."""
    with contextlib.ExitStack() as steps:
        for step in (session.destroy, session.collect, session.kill):
            steps.callback(step, Deadline.after(END_SECONDS))
