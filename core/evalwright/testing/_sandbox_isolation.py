"""Checks of a sandbox that run only for the capabilities it declares."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from evalwright.interfaces import Host, Sandbox, Session
from evalwright.testing._contract import since
from evalwright.testing._sandbox_place import SandboxPlace
from evalwright.testing._waiting import soon

__all__ = ["IsolationChecks"]

SECRET = "evalwright-contract-secret"
FETCH = (
    "import sys, urllib.request\n"
    "try: print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode(), end='')\n"
    "except OSError as error: print(error)\n"
)
CONNECT = (
    "import socket, sys\n"
    "try:\n"
    "    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close(); print('connected')\n"
    "except OSError as error:\n"
    "    print('refused')\n"
)


class IsolationChecks(SandboxPlace):
    """``fs-isolated``, ``gold-isolated``, ``pid-isolated``, ``network-off``, ``network-allowlist``, ``resource-limits``,
    ``ports``.
    """

    python = "python3"
    """The Python interpreter inside, for the checks of ``network-off`` and ``ports``."""

    @since("1.0")
    def test_fs_isolated_sessions_see_neither_each_other_nor_the_host(self, tmp_path: Path) -> None:
        """No command reads another session's workspace or a file of the host that nobody mounted."""
        (tmp_path / "of-the-host").write_text(SECRET)
        with self.made() as sandbox:
            if "fs-isolated" not in sandbox.capabilities:
                return
            other = self.request(tmp_path)
            (other.workspace / "own").write_text(SECRET)
            (other.exchange / "own").write_text(SECRET)
            with self.opened(sandbox, tmp_path) as session:
                places = [other.workspace / "own", other.exchange / "own", tmp_path / "of-the-host"]
                assert not self._readable(session, places), "a session read files that are not its own"
                self.sh(session, f"echo changed > '{tmp_path}/of-the-host'")
        assert (tmp_path / "of-the-host").read_text() == SECRET, "a session changed a file of the host"

    @since("1.0")
    def test_gold_isolated_agents_cannot_read_the_suite(self, tmp_path: Path) -> None:
        """With ``gold-isolated`` the directories where gold lies cannot be read from an agent's session."""
        gold = tmp_path / "evals" / "suites" / "demo"
        gold.mkdir(parents=True)
        (gold / "cases.jsonl").write_text(SECRET)
        with self.made() as sandbox:
            if "gold-isolated" not in sandbox.capabilities:
                return
            with self.opened(sandbox, tmp_path, role="agent") as session:
                assert not self._readable(session, [gold / "cases.jsonl"]), "an agent read the suite's cases"

    @since("1.0")
    def test_pid_isolated_commands_cannot_reach_the_host_s_processes(self, tmp_path: Path) -> None:
        """Under ``pid-isolated`` the harness's own process is neither listed nor signalled."""
        with self.made() as sandbox:
            if "pid-isolated" not in sandbox.capabilities:
                return
            with self.opened(sandbox, tmp_path) as session:
                theirs = self.sh(session, f"tr '\\0' ' ' < /proc/{os.getpid()}/cmdline").stdout.head
        ours = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ")
        assert theirs != ours, "a command sees the harness's process"

    @since("1.0")
    def test_network_off_reaches_no_listener_of_the_host(self, tmp_path: Path) -> None:
        """A session opened with ``network="off"`` reaches neither loopback nor another address of the host."""
        with self.made() as sandbox, socket.create_server(("0.0.0.0", 0)) as listener:
            if "network-off" not in sandbox.capabilities:
                return
            listener.settimeout(0.2)
            port = listener.getsockname()[1]
            with self.opened(sandbox, tmp_path, network="off") as session:
                for address in sorted({"127.0.0.1", _address_of_this_host()}):
                    completed = self.sh(session, f"exec {self.python} - {address} {port}", stdin=CONNECT.encode())
                    said = completed.stdout.text.strip()
                    assert said in {"connected", "refused"}, f"{self.python} does not run inside: {completed.stderr.text}"
                    assert said == "refused", f"a session without a network reached {address}"

    def make_allowing(self, host: Host, allowed: str) -> Sandbox[Any]:
        """Return a sandbox whose commands reach ``allowed`` (``host:port`` of this host) and nothing else.

        Override it for a sandbox that is configured otherwise than by ``network: "allowlist"`` and ``allow``.
        """
        made = type(self.make(host))
        assert made.Config is not None, "a sandbox with network-allowlist has a Config"
        return made(made.Config.model_validate({"network": "allowlist", "allow": [allowed]}), host)

    @since("1.0")
    def test_network_allowlist_reaches_what_it_lists_and_nothing_else(self, tmp_path: Path) -> None:
        """With ``network-allowlist`` HTTP requests reach a listed server of the host, and no other."""
        with self.made() as declared:
            if "network-allowlist" not in declared.capabilities:
                return
        with (
            _serving() as listed,
            _serving() as other,
            self.made(lambda host: self.make_allowing(host, listed)) as sandbox,
            self.opened(sandbox, tmp_path) as session,
        ):
            answers = {
                address: self.sh(session, f"exec {self.python} - http://{address}/", stdin=FETCH.encode()).stdout.text
                for address in (listed, other)
            }
        assert answers[listed] == SECRET, "a listed server cannot be reached"
        assert answers[other] != SECRET, "a server that is not listed was reached"

    @since("1.0")
    def test_resource_limits_bind(self, tmp_path: Path) -> None:
        """A file cannot outgrow ``file_size_bytes``; ``cpu_seconds`` ends a busy loop and is named."""
        with self.made() as sandbox:
            if "resource-limits" not in sandbox.capabilities:
                return
            with self.opened(sandbox, tmp_path) as session:
                self.sh(session, "head -c 100000 /dev/zero > big", limits={"file_size_bytes": 4096})
                size = len(session.get(session.workspace / "big", max_bytes=200_000))
                busy = self.sh(session, "while :; do :; done", limits={"cpu_seconds": 1}, timeout=8.0)
        assert size <= 4096, f"a file of {size} bytes was written under a limit of 4096"
        assert not busy.timed_out, "cpu_seconds did not end a busy loop"
        assert busy.limit == "cpu_limit", f"the limit that ended the command is named {busy.limit!r}, not 'cpu_limit'"

    @since("1.0")
    def test_ports_are_reachable_at_their_address(self, tmp_path: Path) -> None:
        """``address`` gives ``host:port`` at which the host reaches a server inside."""
        with self.made() as sandbox:
            if "ports" not in sandbox.capabilities:
                return
            with self.opened(sandbox, tmp_path) as session, socket.create_server(("127.0.0.1", 0)) as taken:
                port = taken.getsockname()[1]
                taken.close()
                reached: list[bool] = []

                def reach(_name: str, _data: bytes) -> None:
                    if not reached:
                        reached.append(soon(lambda: _reachable(session.address(port))))

                server = f"exec {self.python} -u -m http.server {port} --bind 0.0.0.0"
                self.sh(
                    session,
                    server,
                    timeout=20.0,
                    on_output=reach,
                    canceled=lambda: bool(reached),
                )
        assert reached, "the server inside did not start"
        assert reached[0], "the server inside cannot be reached at address()"

    def _readable(self, session: Session, places: list[Path]) -> list[Path]:
        return [path for path in places if SECRET in self.sh(session, f"cat '{path}'").stdout.text]


class _Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(SECRET)))
        self.end_headers()
        self.wfile.write(SECRET.encode())

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextlib.contextmanager
def _serving() -> Generator[str]:
    """Serve the secret on a port of loopback and give its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _address_of_this_host() -> str:
    """Return an address that is not loopback, or loopback where there is none; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _reachable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return False
    return True
