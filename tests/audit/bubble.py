"""A small sandbox over ``bwrap`` for tests of the leak test: clean, or with the leaks that its table names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evalwright.interfaces import Command, Deadline, Host, LocalSession, Sandbox, SandboxRequest, Session
from evalwright.model import Completed, Output
from evalwright.processes import Supervisor

BASE = [
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--die-with-parent",
    "--tmpfs",
    "/",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
]
APPLETS = "sh find grep sort sed tr date dirname env gzip awk ls sleep test printf true"
PYTHON = ("bin", "lib64", "local/bin", "local/lib", "lib/python3*", "lib/*-linux-gnu")


def planted(*names: str) -> Iterator[Path]:
    """Yield what of the leak test's private project is there: it has told its run where that lies."""
    evals = os.environ.get("EVALWRIGHT_EVALS")
    for name in names:
        yield from sorted(Path(evals or "/nowhere").glob(name))


def neighbours(request: SandboxRequest, name: str) -> Iterator[Path]:
    """Yield the directories of that name of other trials."""
    own = request.workspace.parent
    return (place for place in own.parent.glob(f"*/{name}") if place.parent != own)


def links(targets: Mapping[str, str]) -> list[str]:
    """Return the words that make symbolic links."""
    return [word for path, target in targets.items() for word in ("--symlink", target, path)]


def programs(usr: str) -> list[str]:
    """Return the words that mount programs: all of ``/usr``, what Python needs of it, or busybox alone."""
    merged = links({f"/{name}": f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")})
    if usr == "whole":
        return ["--ro-bind", "/usr", "/usr", *merged]
    if usr == "python":
        places = [str(place) for name in PYTHON for place in Path("/usr").glob(name)]
        return [*(word for place in places for word in ("--ro-bind", place, place)), *merged]
    return [
        "--ro-bind",
        str(shutil.which("busybox")),
        "/bin/busybox",
        *links({f"/bin/{n}": "busybox" for n in APPLETS.split()}),
    ]


MOUNTS: Mapping[str, Callable[[SandboxRequest], Iterator[Path]]] = {
    "cases": lambda _: planted("suites/*/cases.jsonl"),
    "hidden": lambda _: planted("suites/*/leak-test/hidden"),
    "gold": lambda _: planted("suites/*/leak-test/gold"),
    "git": lambda _: planted("suites/*/fixtures/w/.git"),
    "snapshot": lambda _: planted("runs/*/suite-snapshot/canary.txt"),
    "store": lambda _: planted("store"),
    "evidence": lambda _: planted("runs/*/cases/*/output.txt"),
    "bundle": lambda _: planted("runs/*/cases/*/input.json"),
    "workspaces": lambda request: neighbours(request, "w"),
    "exchanges": lambda request: neighbours(request, "x"),
    "suite": lambda _: iter([Path("evals/suites/demo")]),
}
"""Leaks by a mount: what of the host is shown besides workspace and exchange."""


class BubbleConfig(BaseModel):
    """``leaks`` names mounts, ``environment``, ``descriptors``, ``processes``, ``caller`` (its rights).

    ``mute`` runs the spy without its script, ``blind`` shows it another workspace.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    leaks: list[str] = []
    usr: Literal["whole", "python", "busybox"] = "python"
    mute: bool = False
    blind: bool = False


class Bubble(Sandbox[BubbleConfig]):
    """Mounts programs, workspace and exchange, and nothing else."""

    api = "sandbox/1.0"
    Config = BubbleConfig
    capabilities = frozenset({"fs-isolated", "gold-isolated", "pid-isolated"})

    def __init__(self, config: BubbleConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session."""
        return BubbleSession(request, self._supervisor, self.config)

    def close(self, deadline: Deadline) -> None:
        """End every command that still runs."""
        self._supervisor.close()


class BubbleSession(LocalSession):
    """Every command in namespaces of its own."""

    isolation = "namespaces"

    def __init__(self, request: SandboxRequest, supervisor: Supervisor, config: BubbleConfig) -> None:
        super().__init__(request)
        self.workspace, self.exchange = PurePosixPath("/workspace"), PurePosixPath("/exchange")
        self._supervisor = supervisor
        self._config = config

    def execute(self, command: Command) -> Completed:
        """Run a command."""
        config = self._config
        argv = ["bwrap", *self._arguments(), "--chdir", command.cwd or "/workspace", "--", *command.argv]
        environment = {**(os.environ if "environment" in config.leaks else {}), **self.request.env, **command.env}
        stdin = b"" if config.mute and command.stdin else command.stdin
        command = replace(command, argv=argv, env=environment, cwd="/", stdin=stdin)
        if "descriptors" in config.leaks and command.stdin:
            return careless(command)
        process = self._supervisor.start(command)
        with self.running(process):
            return process.wait()

    def _arguments(self) -> list[str]:
        config, request = self._config, self.request
        workspace = request.workspace.parent / "t" if config.blind else request.workspace
        words = [*BASE, *programs(config.usr)]
        words += ["--ro-bind", "/proc", "/proc"] if "processes" in config.leaks else ["--unshare-pid", "--proc", "/proc"]
        words += ["--bind", str(workspace), "/workspace", "--bind", str(request.exchange), "/exchange"]
        words += ["--cap-add", "ALL"] if "caller" in config.leaks else ["--cap-drop", "ALL"]
        if request.role == "agent":
            shown = [place for leak in config.leaks if leak in MOUNTS for place in MOUNTS[leak](request)]
            for number, place in enumerate(shown):
                words += ["--ro-bind", str(place.resolve()), f"/leaked/{number}"]
        return words


def careless(command: Command) -> Completed:
    """Run a command as a sandbox does that closes nothing."""
    done = subprocess.run(
        command.argv, env=dict(command.env), input=command.stdin, capture_output=True, close_fds=False, timeout=60, check=False
    )
    return Completed(exit_code=done.returncode, stdout=Output(head=done.stdout), stderr=Output(head=done.stderr))
