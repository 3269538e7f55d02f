"""The host around a sandbox as a hostile program would like to find it: secrets, a victim, listeners, places to write."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.interfaces import BoundedOutput, Command, Deadline, Sandbox, SandboxRequest, Session, give_tree
from evalwright.model import Completed

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMITS = {"file_size_bytes": 8 << 20, "memory_bytes": 256 << 20, "processes": 64}
SECONDS = 20.0


@dataclass(frozen=True)
class World:
    """``secret`` stands in every place that no agent may read. ``place`` is the root of them all."""

    place: Path
    secret: str
    victim: subprocess.Popen[bytes]
    stream: socket.socket
    datagrams: socket.socket
    abstract: socket.socket

    @property
    def gold(self) -> Path:
        """Return the suite's gold."""
        return self.place / "evals/suites/demo/cases.jsonl"

    @property
    def outside(self) -> Path:
        """Return a directory of the host in which everybody may write."""
        return self.place / "outside"

    @property
    def variables(self) -> dict[str, str]:
        """Return what the programs are told: an agent may guess all of it."""
        return {
            "SECRET": self.secret[:8] + " " + self.secret[8:],
            "PLACE": str(self.place),
            "VICTIM": str(self.victim.pid),
            "PORT": str(self.stream.getsockname()[1]),
            "UDP_PORT": str(self.datagrams.getsockname()[1]),
            "ABSTRACT": self.abstract.getsockname()[1:].decode(),
            "SHARED": str(self.shared),
        }

    @property
    def shared(self) -> Path:
        """Return a file in the host's shared memory."""
        return Path("/dev/shm") / self.place.name

    def received(self) -> bool:
        """Tell whether a datagram arrived."""
        return bool(select.select([self.datagrams], [], [], 0.2)[0])


@contextlib.contextmanager
def world(place: Path) -> Generator[World]:
    """Make a world below a directory that every user can traverse."""
    secret = secrets.token_hex(16)
    for name in ("evals/suites/demo/cases.jsonl", "evals/runs/r/cases/c/score.json", "home/.netrc", "other/w/answer.txt"):
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secret + "\n")
    (place / "outside").mkdir()
    (place / "outside").chmod(0o777)
    shared = Path("/dev/shm") / place.name
    with contextlib.ExitStack() as ends:
        shared.write_text(secret)
        ends.callback(shared.unlink)
        victim = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()", secret], env={"TOKEN": secret}, stdin=subprocess.PIPE
        )
        ends.callback(victim.wait)
        ends.callback(victim.kill)
        stream = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        datagrams = ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        abstract = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        abstract.bind(f"\0evalwright-{secret[:12]}")
        abstract.listen()
        yield World(place, secret, victim, stream, datagrams, abstract)
        if victim.stdin:
            victim.stdin.close()


@dataclass(frozen=True)
class Attempt:
    """One program that ran in a session of a sandbox, which is still open."""

    world: World
    session: Session
    request: SandboxRequest
    completed: Completed

    @property
    def said(self) -> str:
        """Return what the program printed."""
        return self.completed.stdout.text


@contextlib.contextmanager
def attempt(
    sandbox: Sandbox[object], ground: World, argv: Sequence[str], place: Path, *, cpu_seconds: int
) -> Generator[Attempt]:
    """Run a program as an agent in a new session below ``place``; its processes have been killed when this gives the result."""
    root = place / secrets.token_hex(4)
    root.mkdir(mode=0o711)
    for name in ("w", "x"):
        (root / name).mkdir(mode=0o700)
        give_tree(root / name, sandbox.user)
    request = SandboxRequest(owner=f"run/{root.name}/1", workspace=root / "w", exchange=root / "x")
    session = sandbox.open(request)
    try:
        env = {"PATH": PATH, "LC_ALL": "C", **ground.variables}
        command = Command(
            argv=argv, env=env, timeout=SECONDS, limits=LIMITS | {"cpu_seconds": cpu_seconds}, capture=BoundedOutput
        )
        completed = session.execute(command)
        session.kill(Deadline.after(SECONDS))
        session.collect(Deadline.after(SECONDS))
        yield Attempt(ground, session, request, completed)
    finally:
        session.destroy(Deadline.after(SECONDS))


def died(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the victim is dead, or dies in a moment."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    return True
