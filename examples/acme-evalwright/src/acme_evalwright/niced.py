"""The sandbox acme-niced: commands at a low priority."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from evalwright.errors import SandboxError
from evalwright.interfaces import Command, Deadline, Host, LocalSession, Problem, Sandbox, SandboxRequest, Session
from evalwright.model import Completed
from evalwright.processes import Supervisor

__all__ = ["NicedConfig", "NicedSandbox"]

NICE = "nice"


class NicedConfig(BaseModel):
    """How nice commands are, from 0 to 19."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    niceness: int = Field(default=10, ge=0, le=19)


class NicedSandbox(Sandbox[NicedConfig]):
    """Runs commands on this host, under ``nice``. It isolates nothing, and says so."""

    api = "sandbox/1.0"
    Config = NicedConfig
    capabilities = frozenset({"resource-limits", "x-niced"})

    def __init__(self, config: NicedConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say before the first trial when there is no ``nice``."""
        if where == "worker" and shutil.which(NICE) is None:
            return [Problem(message="acme-niced needs the program nice", hint="install coreutils")]
        return ()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session in the request's own directories."""
        return _NicedSession(request, self._supervisor, self.config.niceness)

    def close(self, deadline: Deadline) -> None:
        """End every command that still runs."""
        self._supervisor.close()


class _NicedSession(LocalSession):
    isolation = "process-tree"

    def __init__(self, request: SandboxRequest, supervisor: Supervisor, niceness: int) -> None:
        super().__init__(request)
        if request.network not in (None, "host"):
            raise SandboxError(f'acme-niced cannot give network "{request.network}"', hint="choose another sandbox")
        self._supervisor = supervisor
        self._niceness = niceness

    def execute(self, command: Command) -> Completed:
        placed = self._placed(command)
        program = shutil.which(placed.argv[0], path=placed.env.get("PATH"))
        if program is None:
            return Completed(spawn_error=f"{placed.argv[0]}: there is no such program")
        argv = [shutil.which(NICE) or NICE, "-n", str(self._niceness), program, *placed.argv[1:]]
        process = self._supervisor.start(replace(placed, argv=argv))
        with self.running(process):
            return process.wait()

    def _placed(self, command: Command) -> Command:
        """Return the command with the host's working directory and its whole environment."""
        cwd = self.host_path(PurePosixPath(command.cwd or self.workspace))
        roots = (self.request.workspace.resolve(), self.request.exchange.resolve())
        if not any(cwd.resolve().is_relative_to(root) for root in roots):
            raise SandboxError(f"{command.cwd} leads out of the workspace", hint="use a directory inside it")
        return replace(
            command,
            cwd=str(cwd),
            env={**self.request.env, **command.env},
            limits={**self.request.limits, **command.limits},
        )
