"""Commands in a network of their own: what they reach, what they do not, what they hold, and what is left of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from tests.plugins.loopback_servers import SECONDS, Wire, answering, serving

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright.testing import soon
from evalwright_plugins.network import EgressProxy, Loopback, Serve, proxy_environment

NOBODY = 65534
PORT = 3128
SERVICE = 5432
BUBBLEWRAP = [
    *("bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"),
    *(
        "--as-pid-1",
        "--tmpfs",
        "/",
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
    ),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/"),
    *("--remount-ro", "/", "--cap-drop", "ALL", "--"),
]
REACH = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); print(s.recv(99).decode())"


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a directory that everybody can enter; pytest's own are closed to other users."""
    made = Path(tempfile.mkdtemp(prefix="evalwright-net-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def namespaces(require: Callable[[str], None]) -> None:
    """Skip where nobody may make a user and a network namespace, or fail when everything must be there."""
    require("unshare")
    done = subprocess.run(["unshare", "--user", "--net", "true"], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        give_up(f"namespaces cannot be made here: {done.stderr.strip()}")


@pytest.fixture(params=["as-we-are", "as-nobody"])
def user(request: pytest.FixtureRequest) -> User:
    """Return who runs the commands: this user, and where that is root somebody without privileges too."""
    if request.param == "as-we-are":
        return User()
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for python in (sys.executable, shutil.which("python3", path=f"{os.defpath}:/usr/local/bin")):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            probe = [python or "", "-I", "-S", "-c", "import ctypes"]
            subprocess.run(probe, user=NOBODY, group=NOBODY, extra_groups=[], check=True, capture_output=True, cwd="/")
            return User(NOBODY, str(python))
    return give_up("no Python that a user without privileges can run")


@dataclass(frozen=True)
class User:
    """Who runs commands, ``None`` for this process's user, and a Python that they can run."""

    uid: int | None = None
    python: str = sys.executable


def give_up(message: str) -> NoReturn:
    """Skip the test, or fail it when everything must be there."""
    if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
        pytest.fail(message)
    pytest.skip(message)


@contextlib.contextmanager
def loopback(directory: Path, ports: Mapping[int, Serve | str], uid: int | None = None) -> Generator[Loopback]:
    made = Loopback(directory, ports, uid=uid)
    try:
        yield made
    finally:
        made.close(Deadline.after(SECONDS))


def words(network: Loopback, user: User, command: Sequence[str]) -> list[str]:
    return [*network.prefix(), *command]


def run(network: Loopback, user: User, *command: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], **(env or {})}
    return subprocess.run(
        words(network, user, command), cwd="/", env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def saying(text: bytes) -> Callable[[Wire], None]:
    return lambda wire: wire.send(text)


def test_command_reaches_listed_hosts_and_endpoints_and_nothing_else(place: Path, user: User) -> None:
    with serving(answering()) as listed, serving(saying(b"service")) as service, serving(saying(b"outside")) as outside:
        proxy = EgressProxy([listed.host])
        with loopback(place / "net", {PORT: proxy.serve, SERVICE: service.host}, user.uid) as network:
            fetch = f"import urllib.request as r; print(r.urlopen('http://{listed.host}/').read().decode())"
            python = user.python
            environment = proxy_environment(PORT, [listed.host])
            reached = run(network, user, python, "-c", fetch, env=environment)
            refused = run(network, user, python, "-c", fetch.replace("127.0.0.1", "localhost"), env=environment)
            endpoint = run(network, user, python, "-c", REACH, "127.0.0.1", str(SERVICE))
            direct = run(network, user, python, "-c", REACH, "127.0.0.1", str(outside.port))
        proxy.close(Deadline.after(SECONDS))
        assert outside.accepted == []

    assert (reached.stdout, reached.stderr) == ("ok\n", "")
    assert "refused" in refused.stderr
    assert endpoint.stdout == "service\n"
    assert "Connection refused" in direct.stderr


def test_bubblewrap_runs_inside_and_sees_loopback_alone(place: Path, user: User, require: Callable[[str], None]) -> None:
    require("bwrap")
    require("curl")
    with serving(answering()) as listed:
        proxy = EgressProxy([listed.host])
        script = f"""
            curl -sS http://{listed.host}/; echo
            curl -sS http://elsewhere.example.org/
            tail -n +3 /proc/net/dev | cut -d: -f1
            cat /proc/net/route | wc -l
            echo /proc/self/fd/*
            grep CapEff /proc/self/status
        """
        with loopback(place / "net", {PORT: proxy.serve}, user.uid) as network:
            done = run(network, user, *BUBBLEWRAP, "sh", "-c", script, env=proxy_environment(PORT, [listed.host]))
        proxy.close(Deadline.after(SECONDS))

    lines = done.stdout.splitlines()
    assert lines[0] == "ok", done.stderr
    assert "elsewhere.example.org:80 is not in the allow-list" in lines[1]
    assert lines[3].strip() == "lo"
    assert int(lines[4]) <= 1
    assert set(lines[5].split()) <= {f"/proc/self/fd/{number}" for number in range(4)}
    assert lines[6].split() == ["CapEff:", "0" * 16]
    assert [(entry["host"], entry["allowed"]) for entry in proxy.record()] == [
        ("127.0.0.1", True),
        ("elsewhere.example.org", False),
    ]


def test_command_holds_no_descriptor_and_keeps_its_user(place: Path, user: User) -> None:
    with loopback(place / "net", {PORT: "127.0.0.1:1"}, user.uid) as network:
        look = "import os; print(os.getuid(), os.geteuid(), sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
        done = run(network, user, user.python, "-c", look)

    uid = os.getuid() if user.uid is None else user.uid
    assert done.stdout == f"{uid} {uid} [0, 1, 2]\n", done.stderr


@pytest.mark.parametrize("given", [{}, {"LC_CTYPE": "C.UTF-8"}])
def test_command_has_the_environment_and_the_signals_that_it_would_have_without(place: Path, given: dict[str, str]) -> None:
    look = ["sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ; grep SigIgn /proc/$$/status"]
    environment = {"PATH": os.defpath, "A": "b=c\nd", **given}
    with loopback(place / "net", {PORT: "127.0.0.1:1"}) as network:
        inside, outside = (
            subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
            for command in (words(network, User(), look), look)
        )

    assert outside.stdout.startswith("PATH=")
    assert inside.stdout == outside.stdout, inside.stderr


def test_bytes_pass_to_a_unix_socket_of_the_host_in_full(place: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "service"))
    listener.listen()

    def handler(wire: Wire) -> None:
        wire.send(wire.rest().upper())

    send = (
        "import socket; s = socket.create_connection(('127.0.0.1', 5432)); s.sendall(b'x' * 500000); s.shutdown(1)\n"
        "print(sum(len(p) for p in iter(lambda: s.recv(65536), b'')))"
    )
    with serving(handler, listener=listener), loopback(place / "net", {SERVICE: f"unix:{place}/service"}) as network:
        assert run(network, User(), sys.executable, "-c", send).stdout == "500000\n"


def test_ports_of_a_command_are_closed_when_it_ends(place: Path) -> None:
    taken: list[socket.socket] = []

    def serve(listener: socket.socket) -> Callable[[], None]:
        taken.append(listener)
        return listener.close

    with serving(saying(b"service")) as service, loopback(place / "net", {PORT: serve, SERVICE: service.host}) as network:
        assert [run(network, User(), "true").returncode for _ in range(3)] == [0, 0, 0]
        assert soon(lambda: [listener.fileno() for listener in taken] == [-1, -1, -1])
        open_now = len(os.listdir("/proc/self/fd"))
        assert [run(network, User(), "true").returncode for _ in range(3)] == [0, 0, 0]
        assert soon(lambda: len(os.listdir("/proc/self/fd")) <= open_now)


def test_commands_at_the_same_time_have_networks_of_their_own(place: Path) -> None:
    script = f"readlink /proc/self/ns/net; read x; exec {sys.executable} -c '{REACH}' 127.0.0.1 {SERVICE}"
    with serving(saying(b"service")) as service, loopback(place / "net", {SERVICE: service.host}) as network:
        command = words(network, User(), ["sh", "-c", script])
        running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
        networks = {process.stdout.readline().decode().strip() for process in running if process.stdout}
        assert [process.communicate(b"\n", timeout=SECONDS)[0] for process in running] == [b"service\n"] * 4

    assert len(networks) == 4
    assert os.readlink("/proc/self/ns/net") not in networks


def test_nothing_is_left_after_the_end(place: Path) -> None:
    before = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    with serving(saying(b"service")) as service:
        network = Loopback(place / "net", {SERVICE: service.host})
        started = subprocess.Popen(
            words(network, User(), ["sh", "-c", "echo up; read x"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert started.stdout
        assert started.stdout.readline() == b"up\n"
        network.close(Deadline.after(SECONDS))
        started.communicate(b"\n", timeout=SECONDS)

    assert list((place / "net").iterdir()) == []
    assert (set(threading.enumerate()), set(os.listdir("/proc/self/fd"))) == before


def test_directory_is_private_to_the_user_of_the_commands(place: Path, user: User) -> None:
    with loopback(place / "net", {PORT: "127.0.0.1:1"}, user.uid):
        status = (place / "net").stat()
        assert (status.st_uid, status.st_mode & 0o777) == (os.getuid() if user.uid is None else user.uid, 0o700)


def test_another_user_is_refused_and_gets_no_ports(place: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    with loopback(place / "net", {PORT: "127.0.0.1:1"}, NOBODY) as network:
        own = [str(os.getuid()) if word == str(NOBODY) else word for word in network.prefix()]
        done = subprocess.run([*own, "echo", "ran"], capture_output=True, text=True, timeout=SECONDS, check=False)

    assert done.returncode == 125
    assert done.stdout == ""
    assert done.stderr.startswith("evalwright network: ")
    assert done.stderr.count("\n") == 1


def test_sockets_that_were_not_asked_for_are_refused(place: Path) -> None:
    served: list[socket.socket] = []

    def serve(listener: socket.socket) -> Callable[[], None]:
        served.append(listener)
        return listener.close

    pair = socket.socketpair()
    with (
        loopback(place / "net", {PORT: serve}),
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket() as unbound,
        pair[0],
        pair[1],
    ):
        for offer in ([other], [unbound], [pair[0]], [other, other], []):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.settimeout(SECONDS)
                peer.connect(str(place / "net" / "control"))
                socket.send_fds(peer, [b"listeners"], [offered.fileno() for offered in offer])
                assert peer.recv(1) == b""

    assert served == []


def test_peer_that_sends_nothing_is_given_up(place: Path) -> None:
    network = Loopback(place / "net", {PORT: "127.0.0.1:1"}, seconds=0.1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.settimeout(SECONDS)
        silent.connect(str(place / "net" / "control"))
        assert silent.recv(1) == b""
    assert any(run(network, User(), "echo", "ran").stdout == "ran\n" for _ in range(10))
    network.close(Deadline.after(SECONDS))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "usage"),
        (["control", "0", "80"], "usage"),
        (["control", "0", "80", "echo", "x"], "usage"),
        (["control", "me", "80", "--", "echo"], "usage"),
        (["control", "0", "0", "--", "echo"], "not ports"),
        (["control", "0", "80,", "--", "echo"], "not ports"),
        (["control", "0", "70000", "--", "echo"], "not ports"),
        (["/nowhere/control", str(os.geteuid()), "80", "--", "echo"], "cannot connect to /nowhere/control: No such file"),
    ],
)
def test_wrong_call_is_one_line_and_exit_125(arguments: list[str], why: str) -> None:
    script = Path(sys.modules[Loopback.__module__].__file__ or "").with_name("_enter.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script), *arguments], capture_output=True, text=True, timeout=SECONDS
    )

    assert done.returncode == 125
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_command_that_cannot_be_executed_is_one_line_and_exit_125(place: Path) -> None:
    with loopback(place / "net", {PORT: "127.0.0.1:1"}) as network:
        done = run(network, User(), "no-such-program-5f0a")

    assert (done.returncode, done.stderr) == (
        125,
        "evalwright network: cannot execute no-such-program-5f0a: No such file or directory\n",
    )


def test_long_path_of_the_directory_does_no_harm(place: Path) -> None:
    directory = place / ("d" * 100) / ("e" * 100)
    with loopback(directory, {PORT: "127.0.0.1:1"}) as network:
        assert run(network, User(), "echo", "ran").stdout == "ran\n"


@pytest.mark.parametrize("target", ["127.0.0.1", "unix:relative", "not a host:1", "http://127.0.0.1:1"])
def test_endpoint_that_is_none_is_refused(place: Path, target: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Loopback(place / "net", {PORT: target})
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("ports", [[], [0], [65536]])
def test_ports_that_are_none_are_refused(place: Path, ports: list[int]) -> None:
    with pytest.raises(ValueError, match="between 1 and 65535"):
        Loopback(place / "net", dict.fromkeys(ports, "127.0.0.1:1"))


def test_directory_in_which_a_control_socket_lies_is_refused(place: Path) -> None:
    with (
        loopback(place / "net", {PORT: "127.0.0.1:1"}),
        pytest.raises(SandboxError, match="Address already in use"),
    ):
        Loopback(place / "net", {PORT: "127.0.0.1:1"})


def test_link_in_place_of_the_directory_is_refused(place: Path) -> None:
    (place / "real").mkdir()
    (place / "net").symlink_to(place / "real")
    with pytest.raises(SandboxError, match="cannot make a control socket"):
        Loopback(place / "net", {PORT: "127.0.0.1:1"})
    assert list((place / "real").iterdir()) == []
