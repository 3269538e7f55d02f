"""What one session of a sandbox on this host can reach: nothing, the host's own network, or what a proxy lets through."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline, SandboxRequest
from evalwright_plugins.network.config import NetworkConfig
from evalwright_plugins.network.environment import proxy_environment
from evalwright_plugins.network.loopback import Loopback, Serve
from evalwright_plugins.network.proxy import EgressProxy

__all__ = ["SessionNetwork"]

PROXY_PORT = 3128
KINDS = ("none", "host", "allowlist")


class SessionNetwork:
    """The network of a session: that of its request, else of the configuration. Thread-safe; :meth:`close` ends it.

    ``kind`` is ``none``, ``host`` or ``allowlist``; ``environment`` goes to every command. The endpoints of a request are
    reached at their own port of 127.0.0.1. ``directory`` is a new one for the control socket, ``user`` who runs commands.
    Raises ``SandboxError`` for a network that is unknown or not configured.
    """

    def __init__(self, config: NetworkConfig, request: SandboxRequest, directory: Path, *, user: int | None) -> None:
        self.kind = {None: config.network, "off": "none"}.get(request.network, request.network)
        if self.kind not in KINDS:
            raise SandboxError(f'there is no network "{self.kind}"', hint=f"choose one of {', '.join(KINDS)}")
        if self.kind == "allowlist" and not config.allow:
            raise SandboxError("the sandbox's table lists no hosts", hint='name them in "allow" of the sandbox')
        self.environment: Mapping[str, str] = {}
        self._proxy: EgressProxy | None = None
        self._loopback: Loopback | None = None
        if self.kind == "host":
            return
        ports: dict[int, Serve | str] = {int(target.rpartition(":")[2]): target for target in request.endpoints.values()}
        if self.kind == "allowlist":
            self._proxy = EgressProxy(config.allow, config.inject, environment=os.environ)
            self.environment = proxy_environment(PROXY_PORT, config.allow)
            ports[PROXY_PORT] = self._proxy.serve
        if ports:
            self._loopback = Loopback(directory, ports, uid=user)

    @property
    def apart(self) -> bool:
        """Tell whether commands need an empty network namespace that nobody else makes."""
        return self.kind == "none" and self._loopback is None

    def prefix(self) -> list[str]:
        """Return the words that start a command in this network as the session's user; none where it needs no words."""
        return self._loopback.prefix() if self._loopback else []

    def record(self) -> list[dict[str, Any]]:
        """Return who was asked for, as :meth:`EgressProxy.record` does; empty without a proxy."""
        return list(self._proxy.record()) if self._proxy else []

    def close(self, deadline: Deadline) -> None:
        """Close every socket and thread."""
        if self._loopback:
            self._loopback.close(deadline)
        if self._proxy:
            self._proxy.close(deadline)
