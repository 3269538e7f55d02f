"""The contract of services."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

from evalwright.interfaces import Deadline, Host, RunningService, Service
from evalwright.testing._contract import Contract, since
from evalwright.testing._waiting import in_threads, soon

__all__ = ["ServiceContract"]

SECONDS = 30.0


class ServiceContract(Contract[Service[Any]]):
    """What every service promises: a state of its own per trial, on a free port of loopback. Override ``make``."""

    kind = "service"

    def make(self, host: Host) -> Service[Any]:
        """Return a new service."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def write_seed(self, place: Path) -> Path | None:
        """Write a seed file and return it; ``None`` opens services without one."""
        return None

    def use(self, running: RunningService) -> None:
        """Make one call that changes the state; by default the checks that need a call are left out."""

    def miss(self, running: RunningService) -> None:
        """Make one call that fits no route; by default the check of unknown routes is left out."""

    @contextlib.contextmanager
    def running(self, service: Service[Any], place: Path) -> Generator[RunningService]:
        """Give a running service; it is closed after the block."""
        own = place / secrets.token_hex(4)
        own.mkdir()
        running = service.open(self.write_seed(own), Deadline.after(SECONDS))
        try:
            yield running
        finally:
            running.close()

    @since("1.0")
    def test_port_of_loopback_listens_until_closed(self, tmp_path: Path) -> None:
        """It listens as soon as ``open`` returns, and no longer after ``close``, which may come twice."""
        with self.made() as service:
            with self.running(service, tmp_path) as running:
                assert _listens(running.port), f"nothing listens on port {running.port} of loopback"
            assert soon(lambda: not _listens(running.port), 0.5), "the service listens after close"
            running.close()

    @since("1.0")
    def test_environment_is_text(self, tmp_path: Path) -> None:
        """``env`` tells the agent where the service is."""
        with self.made() as service, self.running(service, tmp_path) as running:
            pairs: list[tuple[Any, Any]] = list(running.env.items())
            assert any(str(running.port) in str(value) for _, value in pairs), "no variable of env names the port"
            assert all(isinstance(name, str) and isinstance(value, str) for name, value in pairs)

    @since("1.0")
    def test_calls_and_state_are_json(self, tmp_path: Path) -> None:
        """A new service has had no call; what it tells can be recorded."""
        with self.made() as service, self.running(service, tmp_path) as running:
            assert list(running.calls()) == [], "a new service has calls already"
            self.use(running)
            try:
                json.dumps([[dict(call) for call in running.calls()], dict(running.state())], allow_nan=False)
            except (TypeError, ValueError) as error:
                raise AssertionError(f"calls() or state() is not JSON: {error}") from error

    @since("1.0")
    def test_calls_are_remembered_and_apart(self, tmp_path: Path) -> None:
        """A call is listed by the service that got it, and by no other."""
        with self.made() as service, self.running(service, tmp_path) as one, self.running(service, tmp_path) as other:
            before = json.dumps(dict(other.state()), sort_keys=True)
            assert one.port != other.port, "two trials got the same port"
            if type(self).use is ServiceContract.use:
                return
            self.use(one)
            assert len(one.calls()) == 1, f"one call was made, {len(one.calls())} are listed"
            assert not other.calls(), "a call is listed by another trial's service"
            assert json.dumps(dict(other.state()), sort_keys=True) == before, "a call changed another trial's state"

    @since("1.0")
    def test_eight_services_at_once(self, tmp_path: Path) -> None:
        """Each trial gets its own."""
        with self.made() as service:

            def port(_: int) -> tuple[int, bool]:
                with self.running(service, tmp_path) as running:
                    return running.port, _listens(running.port)

            assert all(listens for _, listens in in_threads(port))

    @since("1.0")
    def test_eight_clients_at_once_lose_no_call(self, tmp_path: Path) -> None:
        """An agent calls from several programs at once."""
        if type(self).use is ServiceContract.use:
            return
        with self.made() as service, self.running(service, tmp_path) as running:
            in_threads(lambda _: self.use(running))
            assert len(running.calls()) == 8, f"8 calls were made at once, {len(running.calls())} are listed"

    @since("1.0")
    def test_unknown_route_is_marked(self, tmp_path: Path) -> None:
        """A call that fits no route is listed as unknown, with method and path for the warning."""
        if type(self).miss is ServiceContract.miss:
            return
        with self.made() as service, self.running(service, tmp_path) as running:
            self.miss(running)
            (call,) = running.calls()
            assert call.get("unknown") is True, f"the call is not marked as unknown: {dict(call)!r}"
            assert call.get("method"), "an unknown call has no method"
            assert call.get("path"), "an unknown call has no path"

    @since("1.0")
    def test_close_ends_open_connections(self, tmp_path: Path) -> None:
        """Nobody can speak to the service any more, on a connection from before either."""
        with self.made() as service, self.running(service, tmp_path) as running:
            with socket.create_connection(("127.0.0.1", running.port), SECONDS) as connection:
                assert soon(lambda: _listens(running.port), 0.5)
                running.close()
                connection.settimeout(1)
                try:
                    left = connection.recv(1)
                except ConnectionError:
                    left = b""
                except TimeoutError:
                    left = b"still open"
            assert not left, "a connection outlives close()"


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
    except OSError:
        return False
    return True
