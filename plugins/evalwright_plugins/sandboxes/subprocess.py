"""The default sandbox: a process tree, an environment and limits of its own; same user, same file system."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evalwright.errors import SandboxError
from evalwright.interfaces import Command, Deadline, Host, LocalSession, Sandbox, SandboxRequest, Session
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes._limits import Limits

__all__ = ["SubprocessConfig", "SubprocessSandbox"]


class SubprocessConfig(BaseModel):
    """``network`` can only be ``host``: this sandbox cannot take it away."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    network: Literal["host"] = "host"
    limits: Limits = Limits()


class SubprocessSandbox(Sandbox[SubprocessConfig]):
    """Runs commands as children of a supervisor that ends everything they start."""

    api = "sandbox/1.0"
    Config = SubprocessConfig
    capabilities = frozenset({"resource-limits"})

    def __init__(self, config: SubprocessConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()
        self._limits = config.limits.in_force()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session in the request's own directories."""
        return _SubprocessSession(request, self._supervisor, self._limits)

    def close(self, deadline: Deadline) -> None:
        """End every command that still runs."""
        self._supervisor.close()


class _SubprocessSession(LocalSession):
    isolation = "process-tree"

    def __init__(self, request: SandboxRequest, supervisor: Supervisor, limits: dict[str, int]) -> None:
        super().__init__(request)
        if request.network not in (None, "host"):
            raise SandboxError(f'the subprocess sandbox cannot give network "{request.network}"', hint="choose another sandbox")
        self._supervisor = supervisor
        self._limits = {**limits, **request.limits}

    def execute(self, command: Command) -> Completed:
        cwd = self.directory(command.cwd)
        limits = {**self._limits, **command.limits}
        environment = {**self.request.env, **command.env}
        process = self._supervisor.start(replace(command, cwd=str(cwd), env=environment, limits=limits))
        with self.running(process):
            return process.wait()
