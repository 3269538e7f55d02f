"""What one session of a sandbox can reach: nothing, the host's own network, or what a proxy lets through."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline, SandboxRequest
from evalwright_plugins.network.config import NetworkConfig
from evalwright_plugins.network.environment import proxy_environment
from evalwright_plugins.network.proxy import EgressProxy

__all__ = ["SessionNetwork"]

PROXY_PORT = 3128
KINDS = ("none", "host", "allowlist")


class SessionNetwork:
    """The network of a session: that of its request, else of the configuration. Thread-safe; :meth:`close` ends it.

    ``kind`` is ``none``, ``host`` or ``allowlist``; ``environment`` goes to every command; ``proxy`` is to be reached at
    :data:`PROXY_PORT` of loopback inside, if there is one; it leads to the request's endpoints too, for a client that is told
    to use it for all of loopback. Raises ``SandboxError`` for a network that is unknown or not
    configured, or that is none of ``kinds``.
    """

    def __init__(self, config: NetworkConfig, request: SandboxRequest, kinds: Sequence[str] = KINDS) -> None:
        self.kind = {None: config.network, "off": "none"}.get(request.network, request.network)
        if self.kind not in kinds:
            raise SandboxError(f'the sandbox cannot give network "{self.kind}"', hint=f"choose one of {', '.join(kinds)}")
        if self.kind == "allowlist" and not config.allow:
            raise SandboxError("the sandbox's table lists no hosts", hint='name them in "allow" of the sandbox')
        self.environment: Mapping[str, str] = {}
        self.proxy: EgressProxy | None = None
        if self.kind == "allowlist":
            endpoints = [address for address in request.endpoints.values() if not address.startswith("unix:")]
            self.proxy = EgressProxy([*config.allow, *endpoints], config.inject, environment=os.environ)
            self.environment = proxy_environment(PROXY_PORT, config.allow)

    @property
    def listened(self) -> dict[int, Callable[[socket.socket], Callable[[], None]]]:
        """Return the ports inside with what adopts a listener of theirs."""
        return {PROXY_PORT: self.proxy.serve} if self.proxy else {}

    @property
    def connected(self) -> dict[int, Callable[[socket.socket], None]]:
        """Return the ports inside with what adopts each connection to them."""
        return {PROXY_PORT: self.proxy.handle} if self.proxy else {}

    def account(self) -> dict[str, Any]:
        """Return what the trial's record keeps: who was asked for, as :meth:`EgressProxy.record` has it."""
        asked = self.proxy.record() if self.proxy else []
        return {"network": asked} if asked else {}

    def close(self, deadline: Deadline) -> None:
        """Close the proxy."""
        if self.proxy:
            self.proxy.close(deadline)
