"""HTTP/1.1 on connections that the host serves: what the services share with the proxy."""

from evalwright_plugins.network._connections import ConnectionServer
from evalwright_plugins.network._http import Fields, Malformed, Request, body, read_request

__all__ = ["ConnectionServer", "Fields", "Malformed", "Request", "body", "read_request"]
