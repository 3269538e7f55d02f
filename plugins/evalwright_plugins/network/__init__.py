"""A network of listed hosts for a place that has none: a proxy on the host, and loopback inside that leads to it.

For sandboxes. :class:`NetworkConfig` holds the suite's keys, :class:`EgressProxy` forwards to listed hosts and refuses the
rest, :class:`Loopback` gives commands a network of their own whose ports are served by the host.
"""

from evalwright_plugins.network.config import Injection, NetworkConfig, injection_problems
from evalwright_plugins.network.environment import proxy_environment
from evalwright_plugins.network.loopback import Loopback, Serve
from evalwright_plugins.network.proxy import EgressProxy, ProxyLimits
from evalwright_plugins.network.session import SessionNetwork

__all__ = [
    "EgressProxy",
    "Injection",
    "Loopback",
    "NetworkConfig",
    "ProxyLimits",
    "Serve",
    "SessionNetwork",
    "injection_problems",
    "proxy_environment",
]
