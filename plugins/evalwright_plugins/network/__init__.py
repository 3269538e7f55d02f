"""A network of listed hosts for a place that has none: a proxy on the host.

For sandboxes. :class:`NetworkConfig` holds the suite's keys, :class:`EgressProxy` forwards to listed hosts and refuses the
rest.
"""

from evalwright_plugins.network.config import Injection, NetworkConfig, injection_problems
from evalwright_plugins.network.environment import proxy_environment
from evalwright_plugins.network.proxy import EgressProxy, ProxyLimits

__all__ = [
    "EgressProxy",
    "Injection",
    "NetworkConfig",
    "ProxyLimits",
    "injection_problems",
    "proxy_environment",
]
