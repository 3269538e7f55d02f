"""Isolated places in which commands run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from evalwright.interfaces.output import OutputSink
from evalwright.interfaces.plugin import Deadline, Plugin
from evalwright.model import Completed

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Command", "Mount", "Sandbox", "SandboxRequest", "Session"]

C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command to run in a session.

    ``argv`` is never read by a shell; ``argv[0]`` without a slash is looked up in the ``PATH`` of ``env``. ``env`` is the
    whole environment. ``cwd`` is a path as the session sees it, inside the workspace or the exchange directory; ``None``
    is the workspace. ``stdin`` is delivered and then closed; ``None`` reads as empty. ``timeout`` in seconds, ``None`` for
    none; ``grace`` is the time between TERM and KILL. ``capture`` makes the sink of each stream. ``canceled`` is asked
    several times a second; once it says yes the command is killed. ``on_start`` is told the process ids of the command and
    of what supervises it, where they are processes of this host.
    """

    argv: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes | None = None
    timeout: float | None = None
    grace: float = 1.0
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    capture: Callable[[], OutputSink] | None = None
    on_output: Callable[[Literal["stdout", "stderr"], bytes], None] | None = None
    canceled: Callable[[], bool] | None = None
    on_start: Callable[[Sequence[int]], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory or file of the host that commands may read at ``target``; a later one lies over an earlier one.

    Commands may change a ``writable`` one, and the host sees it at once; only a sandbox with the capability
    ``writable-mounts`` takes it. What lies there becomes the commands' user's, where the sandbox has one.
    """

    source: Path
    target: PurePosixPath
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    """What a trial asks of a sandbox.

    ``workspace`` and ``exchange`` are private directories of the host, already filled. ``role`` tells the agent's place
    from a grader's. ``options`` is the case's own ``sandbox`` table. ``env`` holds what every command shall have unless it
    says otherwise. ``owner`` names the trial, for what a sandbox says of its places; two projects may have the same.
    """

    owner: str
    workspace: Path
    exchange: Path
    role: Literal["agent", "grader"] = "agent"
    mounts: Sequence[Mount] = ()
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    readonly: bool = False
    network: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deadline: Deadline | None = None


class Session(ABC):
    """One trial's isolated place. The core calls :meth:`kill`, :meth:`collect`, :meth:`destroy` in this order.

    ``workspace`` and ``exchange`` are paths as commands see them; ``exchange`` is private to the trial and lies beside the
    workspace (case, task, diff, output). ``home`` and ``temporary`` are private directories of the session; ``None`` means
    those that the core has made on this host. ``isolation`` says in a word what this place really separates. ``restored``
    says that :meth:`collect` rewrote the workspace, so that the status of its files means nothing: the core reads them all.
    ``in_place`` says that commands work in ``SandboxRequest.workspace`` itself, so that the host sees changes at once.
    ``ending_seconds`` is the time within which kill and collect together, and destroy, must return.
    """

    workspace: PurePosixPath
    exchange: PurePosixPath
    home: PurePosixPath | None = None
    temporary: PurePosixPath | None = None
    isolation: str = "none"
    restored: bool = False
    in_place: bool = False
    ending_seconds: float = 10.0

    @abstractmethod
    def execute(self, command: Command) -> Completed:
        """Run a command to its end; every process that it started is dead when this returns."""

    @abstractmethod
    def put(self, source: Path | bytes, to: PurePosixPath) -> None:
        """Place bytes, or a file or directory of the host, at a path inside."""

    @abstractmethod
    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        """Return up to ``max_bytes`` of a regular file; links are not followed. ``OSError`` for anything else."""

    def size(self, path: PurePosixPath) -> int | None:
        """Return a file's size in bytes, ``None`` where it is not known; links are not followed."""
        return None

    @abstractmethod
    def alive(self) -> bool:
        """Tell whether commands can still run."""

    @abstractmethod
    def kill(self, deadline: Deadline) -> None:
        """End every process of the session."""

    @abstractmethod
    def collect(self, deadline: Deadline) -> None:
        """Bring the workspace's changes back to ``SandboxRequest.workspace``.

        Raises ``TrialError`` for what an agent has left that cannot be brought back; anything else says that the place is lost.
        """

    @abstractmethod
    def destroy(self, deadline: Deadline) -> None:
        """Release everything. A failure is a warning that names what is left."""

    def prompt(self) -> bool:
        """Tell whether kill, collect and destroy are known to keep their deadlines, so that nobody has to watch over them."""
        return False

    def account(self) -> Mapping[str, Any]:
        """Return what the trial's record shall keep of this session, as plain values; asked after :meth:`collect`."""
        return {}

    def inside(self, source: Path) -> PurePosixPath:
        """Return the path under which commands see a mounted file or directory of the host."""
        return PurePosixPath(source)

    def address(self, port: int) -> str:
        """Return ``host:port`` under which the host reaches a port inside; needs the capability ``ports``."""
        raise NotImplementedError("this sandbox does not offer ports")


class Sandbox(Plugin[C]):
    """Makes sessions.

    ``user`` is the user id that commands run as, where it is not the harness's own: known once :meth:`start` has returned.
    The core makes the files of a trial its, and those of the group of the same number, before :meth:`open`. One whose sessions
    are never ``in_place`` says so, and what needs that is refused before the first trial.
    """

    CaseConfig: ClassVar[type[BaseModel] | None] = None
    in_place: ClassVar[bool] = True
    user: int | None = None

    @abstractmethod
    def open(self, request: SandboxRequest) -> Session:
        """Make a place for one trial. Raises ``SandboxError`` when it cannot be made."""

    def find(self, variable: str) -> Sequence[int] | None:
        """List the processes of all sessions whose environment holds ``NAME=value``, by the ids that they have inside.

        ``None`` where they are processes of this host, which ``/proc`` shows.
        """
        return None
