"""What tells a command inside that there is a proxy."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright_plugins.network._hosts import HostRule

__all__ = ["proxy_environment"]

NAMES = ("http_proxy", "https_proxy", "all_proxy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def proxy_environment(port: int, allow: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that send a command's requests to the proxy at ``port`` of loopback inside.

    Loopback itself is spoken to directly, since what listens there is inside; a loopback host that ``allow`` lists is one
    of the host's and goes through the proxy. Each name is given in small and capital letters, as programs differ.
    """
    listed = {HostRule.parse(entry).host for entry in allow}
    direct = ",".join(name for name in LOOPBACK if name not in listed)
    values = {**dict.fromkeys(NAMES, f"http://127.0.0.1:{port}"), "no_proxy": direct}
    return {**values, **{name.upper(): value for name, value in values.items()}, "NODE_USE_ENV_PROXY": "1"}
