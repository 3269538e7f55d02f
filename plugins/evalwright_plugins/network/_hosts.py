"""Which hosts a trial may reach: entries of an allow-list, and the addresses that a name may stand for."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["AllowList", "HostRule", "entry_for", "literal_address", "split_authority"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = (80, 443)
LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"{LABEL}(?:\.{LABEL})*", re.ASCII)
AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,254}))(?::([0-9]{1,5}))?", re.ASCII)
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
ODD_ADDRESS = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.ASCII)
"""What ends in a number is an address, in one of the spellings of ``inet_aton`` if it is none of four decimal numbers."""
METADATA = frozenset({ipaddress.IPv4Address("168.63.129.16")})


def literal_address(host: str) -> Address | None:
    """Return the address that a host is written as, ``None`` for a name; that of IPv4 where IPv6 only wraps it."""
    try:
        return _unwrapped(ipaddress.ip_address(host))
    except ValueError:
        return None


def _unwrapped(address: Address) -> Address:
    return (address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None) or address


def entry_for(host: str, port: int) -> str:
    """Return the entry of an allow-list that admits a host at a port, and no more than it must."""
    bare = f"[{host}]" if ":" in host else host
    return bare if port in DEFAULT_PORTS else f"{bare}:{port}"


def split_authority(text: str) -> tuple[str, int | None]:
    """Return host and port of ``host``, ``host:port`` or ``[address]:port``; the host in small letters, without a last dot.

    Raises ``ValueError`` that says what is wrong.
    """
    match = AUTHORITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is not a host")
    host = (match[1] or match[2]).lower().removesuffix(".")
    address = literal_address(host)
    if address is None and (match[1] or len(host) > 253 or not NAME.fullmatch(host)):
        raise ValueError(f"{text[:80]!r} is not a host")
    if address is None and ODD_ADDRESS.fullmatch(host):
        raise ValueError(f"{text[:80]!r} is a spelling of an address; write an address as four decimal numbers, as 127.0.0.1")
    port = int(match[3]) if match[3] else None
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{text[:80]!r} has no valid port: ports are 1 to 65535")
    return str(address or host), port


@dataclass(frozen=True, slots=True)
class HostRule:
    """One entry of an allow-list: a host or all its subdomains, at one port or at the default ports 80 and 443."""

    host: str
    port: int | None
    subdomains: bool = False

    @staticmethod
    def parse(text: str) -> HostRule:
        """Read ``host``, ``*.host`` or either with ``:port``. Raises ``ValueError`` that says what to write instead."""
        if "/" in text:
            bare = text.partition("://")[2].partition("/")[0] or text.partition("/")[0]
            raise ValueError(f"{text!r} is a URL or a path; write the host alone: {bare!r}")
        if text == "*":
            raise ValueError("'*' would allow every host; list hosts, or say network: \"host\"")
        subdomains = text.startswith("*.")
        if "*" in text[2 * subdomains :]:
            raise ValueError(f"{text!r}: a wildcard stands for whole labels at the start, as in '*.example.com'")
        host, port = split_authority(text[2 * subdomains :])
        if subdomains and literal_address(host) is not None:
            raise ValueError(f"{text!r}: an address has no subdomains")
        return HostRule(host, port, subdomains)

    def matches(self, host: str, port: int) -> bool:
        """Tell whether a host, as :func:`split_authority` returns it, and a port are meant."""
        named = host.endswith(f".{self.host}") if self.subdomains else host == self.host
        return named and (port in DEFAULT_PORTS if self.port is None else port == self.port)


class AllowList:
    """The hosts that one trial may reach. Immutable. Raises ``ValueError`` for an entry that is none."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._rules = tuple(HostRule.parse(entry) for entry in entries)

    def admits(self, host: str, port: int) -> bool:
        """Tell whether a host is listed for a port."""
        return any(rule.matches(host, port) for rule in self._rules)

    def admits_address(self, address: Address, port: int) -> bool:
        """Tell whether a listed name may stand for an address.

        Whoever owns a listed name chooses what it resolves to. So an address that is not public counts only when it is
        listed itself, or when it is loopback and ``localhost`` is listed.
        """
        real = _embedded(address)
        if real.is_global and not real.is_multicast and not real.is_reserved and real not in METADATA:
            return True
        return self.admits(str(_unwrapped(address)), port) or (real.is_loopback and self.admits("localhost", port))


def _embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address of a transition mechanism leads to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
