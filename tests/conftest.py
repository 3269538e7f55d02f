"""What most tests start from: a project directory, suites made in one call, and the command line as a user calls it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.zygote import Zygote

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.image import Image

INTERPRETED = ("PYTHON", "LC_", "LANG", "PATH", "HOME")


@dataclass(frozen=True)
class Answer:
    """One finished call of the command line."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def envelope(self) -> dict[str, Any]:
        """Return the JSON envelope."""
        document: dict[str, Any] = json.loads(self.stdout.rstrip("\n").split("\n")[-1])
        return document

    @property
    def data(self) -> Any:
        """Return the envelope's data."""
        return self.envelope["data"]

    @property
    def error_codes(self) -> list[str]:
        """Return the codes of all errors."""
        return [record["code"] for record in self.envelope["errors"]]

    @property
    def warning_codes(self) -> list[str]:
        """Return the codes of all warnings."""
        return [record["code"] for record in self.envelope["warnings"]]


@dataclass(frozen=True)
class Project:
    """A directory in which suites are made and the command line is called."""

    path: Path
    zygote: Zygote | None = None

    def call(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, timeout: float = 120) -> Answer:
        """Call ``evalwright`` in a process of its own, through pipes.

        Python itself is started only where the environment says something to it.
        """
        whole = clean_environment() | dict(env or {})
        if self.zygote is None or any(name.startswith(INTERPRETED) for name in env or {}):
            return self._call_python(words, stdin, whole, timeout)
        return _call_zygote(self.zygote, words, self.path, stdin, whole, timeout)

    def _call_python(self, words: Sequence[str], stdin: bytes, env: Mapping[str, str], timeout: float) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "evalwright", *words],
            cwd=self.path,
            env=env,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start ``evalwright`` and return the process; the test ends it."""
        return subprocess.Popen(
            [sys.executable, "-m", "evalwright", *words],
            cwd=self.path,
            env=clean_environment() | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def suite(
        self,
        name: str = "demo",
        *,
        runner: Mapping[str, Any] | None = None,
        cases: Sequence[Mapping[str, Any]] | str | bytes = (),
        scorers: Sequence[Mapping[str, Any]] = (),
        files: Mapping[str, str | bytes] | None = None,
        native: bool = True,
        **document: Any,
    ) -> Path:
        """Write a suite with one fixture ``fixtures/w`` (``a.txt``) and return its directory.

        ``cases`` get ``task`` and ``workspace`` where they lack them; text or bytes are written as they are.
        """
        directory = self.path / "evals" / "suites" / name
        (directory / "fixtures" / "w").mkdir(parents=True)
        (directory / "fixtures" / "w" / "a.txt").write_text("a\n")
        for path, content in (files or {}).items():
            place = directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        whole = {"name": name, "runner": {"argv": ["true"]} if runner is None else runner, "scorers": list(scorers)}
        whole |= {"schema_version": 2} if native else {}
        (directory / "suite.json").write_text(json.dumps(whole | document))
        if isinstance(cases, (str, bytes)):
            lines = cases if isinstance(cases, bytes) else cases.encode()
        else:
            lines = "".join(json.dumps({"task": "t", "workspace": "fixtures/w"} | dict(c)) + "\n" for c in cases).encode()
        (directory / "cases.jsonl").write_bytes(lines)
        return directory

    def run_dir(self, run_id: str) -> Path:
        """Return a run's directory."""
        return self.path / "evals" / "runs" / run_id

    def artifact(self, run_id: str, case_id: str, name: str) -> Path:
        """Return the path of a trial's artifact."""
        return self.run_dir(run_id) / "cases" / case_id / name

    def record(self, run_id: str, case_id: str, name: str) -> Any:
        """Return a JSON artifact of a trial."""
        return json.loads(self.artifact(run_id, case_id, name).read_bytes())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that writes golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write what users parse into tests/golden")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return what compares a text with the file of that name in ``tests/golden``, or writes it with ``--update-golden``."""
    place = Path(__file__).parent / "golden"

    def check(name: str, text: str) -> None:
        if request.config.getoption("--update-golden"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(text, encoding="utf-8", newline="")
        assert text == (place / name).read_bytes().decode("utf-8")

    return check


def shortened(values: Iterable[Any], short: Collection[Any]) -> list[Any]:
    """Return the values of a parameter, those that are not in ``short`` only for ``make acceptance``."""
    return [value if value in short else pytest.param(value, marks=pytest.mark.acceptance) for value in values]


def shell(line: str, **more: Any) -> dict[str, Any]:
    """Return a runner table that runs a shell line."""
    return {"shell": True, "command": line, "env_allowlist": ["PATH"], "timeout_seconds": 20} | more


def clean_environment() -> dict[str, str]:
    """Return this process's environment without settings of the tool under test."""
    dropped = ("EVALWRIGHT_", "EVALCTL_", "SOURCE_DATE_EPOCH", "NO_COLOR", "PYTHONWARNINGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


def _call_zygote(
    zygote: Zygote, words: Sequence[str], cwd: Path, stdin: bytes, env: Mapping[str, str], timeout: float
) -> Answer:
    pipes = [os.pipe(), os.pipe()]
    collected: list[bytes] = [b"", b""]

    def collect(number: int) -> None:
        with open(pipes[number][0], "rb") as file:
            collected[number] = file.read()

    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        (_, stdout), (_, stderr) = pipes
        control = zygote.call(words, cwd=cwd, env=env, stdin=given.fileno(), stdout=stdout, stderr=stderr)
    os.close(stdout)
    os.close(stderr)
    threads = [threading.Thread(target=collect, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    with control:
        code = _exit_code(control, words, timeout)
    for thread in threads:
        thread.join()
    return Answer(code, collected[0].decode(), collected[1].decode(errors="replace"))


def _exit_code(control: socket.socket, words: Sequence[str], timeout: float) -> int:
    """Wait for the end of a call; one that takes too long is killed."""
    control.settimeout(timeout)
    pid: int = json.loads(control.recv(64))
    try:
        code: int = json.loads(control.recv(64))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired(["evalwright", *words], timeout) from None
    return code


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Return this test process's zygote."""
    process = Zygote()
    yield process
    process.close()


@pytest.fixture
def project(tmp_path: Path, zygote: Zygote) -> Project:
    """Return an empty project directory."""
    return Project(tmp_path, zygote)


@pytest.fixture
def shell_runner() -> Callable[..., dict[str, Any]]:
    """Return the maker of shell runners."""
    return shell


@pytest.fixture
def require() -> Callable[[str], None]:
    """Return what skips a test whose component is missing, or fails it when everything must be there.

    A component is a program on ``PATH`` or, with the prefix ``python:``, an importable module.
    """

    def check(component: str) -> None:
        kind, _, name = component.rpartition(":")
        found = importlib.util.find_spec(name) if kind == "python" else shutil.which(name)
        if found is None:
            message = f"{component} is not installed"
            if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
                pytest.fail(message)
            pytest.skip(message)

    return check


@pytest.fixture(scope="session")
def vm_image() -> Image:
    """Return the image that the tests of virtual machines boot, built if it is not in the cache yet.

    Where it cannot be built the test is skipped, or fails when everything must be there.
    """
    from evalwright.errors import SandboxError
    from evalwright.processes import Supervisor
    from evalwright_plugins.sandboxes.vm.cache import Cache
    from evalwright_plugins.sandboxes.vm.image import build_image
    from evalwright_plugins.sandboxes.vm.tools import BUILD_PROGRAMS, RUN_PROGRAMS, missing_packages

    try:
        missing = missing_packages({**BUILD_PROGRAMS, **RUN_PROGRAMS})
        if missing:
            raise SandboxError(f"not installed: {' '.join(missing)}")
        with Supervisor() as supervisor:
            return build_image(Cache(), "busybox", (), supervisor)
    except SandboxError as error:
        if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
            raise
        pytest.skip(f"no virtual machines here: {error.message}")
