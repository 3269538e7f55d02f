"""Stand-ins for the core: they validate expectations, and run commands for real in a temporary directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pytest

from evalwright.interfaces import (
    BoundedOutput,
    Command,
    Deadline,
    JudgeReply,
    JudgeRequest,
    OutputSink,
    ScoreContext,
    Scorer,
    Session,
)
from evalwright.model import Completed, Output, Score, ScoredTrial

Judge = Callable[..., Score]
Table = Mapping[str, Any]


def make(scorer: type[Scorer[Any]], config: Mapping[str, Any]) -> Scorer[Any]:
    """Construct a scorer from the table of a suite."""
    assert scorer.Config is not None
    host: Any = None
    return scorer(scorer.Config.model_validate(dict(config)), host)


def trial(scorer: type[Scorer[Any]], expect: Mapping[str, Any], **fields: Any) -> ScoredTrial:
    """Return a trial whose expectations were validated as the core validates them."""
    for key, value in expect.items():
        scorer.Expect[key].model_validate(value)
    values: dict[str, Any] = {"case_id": "c", "task": "t", "output": "", "expect": expect} | fields
    return ScoredTrial(**values)


class FakeSession(Session):
    """Runs commands on this machine; ``hidden`` removes test-runner configuration unless told to leave it."""

    def __init__(self, root: Path) -> None:
        self.workspace = PurePosixPath(root / "w")
        self.exchange = PurePosixPath(root / "exchange")
        self.commands: list[Command] = []

    def execute(self, command: Command) -> Completed:
        """Run the command to its end or its time."""
        self.commands.append(command)
        sinks = (command.capture or BoundedOutput)(), (command.capture or BoundedOutput)()
        try:
            done = subprocess.run(
                list(command.argv),
                cwd=command.cwd or self.workspace,
                env=dict(command.env),
                input=command.stdin or b"",
                capture_output=True,
                timeout=command.timeout,
            )
        except subprocess.TimeoutExpired as error:
            return Completed(timed_out=True, stdout=_taken(sinks[0], error.stdout or b""))
        except OSError as error:
            return Completed(spawn_error=str(error))
        return Completed(exit_code=done.returncode, stdout=_taken(sinks[0], done.stdout), stderr=_taken(sinks[1], done.stderr))

    def put(self, source: Path | bytes, to: PurePosixPath) -> None:
        """Write bytes."""
        assert isinstance(source, bytes)
        Path(to).parent.mkdir(parents=True, exist_ok=True)
        Path(to).write_bytes(source)

    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        """Read a regular file without following a link."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"not a regular file: {path}")
            return file.read(max_bytes)

    def alive(self) -> bool:
        """Say yes."""
        return True

    def kill(self, deadline: Deadline) -> None:
        """Do nothing: no command outlives its call."""

    def collect(self, deadline: Deadline) -> None:
        """Do nothing."""

    def destroy(self, deadline: Deadline) -> None:
        """Do nothing: the test's directory goes with the test."""


def _taken(sink: OutputSink, data: bytes) -> Output:
    sink.feed(data)
    return sink.finish()


class Bench(ScoreContext):
    """A score context over ``final`` and ``hidden``, two directories that a test fills."""

    def __init__(self, root: Path) -> None:
        self.deadline = Deadline.after(60)
        self.root = root
        self.final = root / "final"
        self.hidden = root / "hidden"
        self.final.mkdir()
        self.hidden.mkdir()
        self.keeps_configuration = False
        self.kept: dict[str, bytes] = {}
        self.sessions: list[FakeSession] = []

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Refuse: no scorer here asks a judge."""
        raise NotImplementedError

    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> AbstractContextManager[Session]:
        """Open a session on a clone."""
        assert workspace == "final"
        return self._opened(hidden)

    @contextmanager
    def _opened(self, hidden: bool) -> Generator[Session]:
        root = self.root / f"session-{len(self.sessions)}"
        shutil.copytree(self.final, root / "w")
        (root / "exchange" / "empty").mkdir(parents=True)
        if hidden:
            for name in () if self.keeps_configuration else ("conftest.py", "pytest.ini"):
                (root / "w" / name).unlink(missing_ok=True)
            shutil.copytree(self.hidden, root / "w", dirs_exist_ok=True)
        session = FakeSession(root)
        self.sessions.append(session)
        yield session

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return a plain environment with the trial's paths."""
        paths = {"WORKSPACE": session.workspace, "OUTPUT_FILE": session.exchange / "output.txt"}
        ours = {f"{prefix}_{name}": str(at) for prefix in ("EVALWRIGHT", "EVALCTL") for name, at in paths.items()}
        return {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(self.root)} | ours

    def keep(self, name: str, content: bytes) -> None:
        """Remember what was kept."""
        self.kept[name] = content

    def score(self, scorer: type[Scorer[Any]], config: Mapping[str, Any], expect: Mapping[str, Any] | None = None) -> Score:
        """Score a trial over this bench's workspace."""
        return make(scorer, config).score(trial(scorer, expect or {}), self)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a context whose commands really run."""
    return Bench(tmp_path)


@pytest.fixture
def judge(bench: Bench) -> Judge:
    """Return ``judge(Scorer, expect, config={}, **trial fields)``."""

    def judged(scorer: type[Scorer[Any]], expect: Mapping[str, Any], config: Mapping[str, Any] = {}, **fields: Any) -> Score:
        return make(scorer, config).score(trial(scorer, expect, **fields), bench)

    return judged


@pytest.fixture
def applies() -> Callable[..., bool]:
    """Return ``applies(Scorer, expect, config={})``."""

    def asked(scorer: type[Scorer[Any]], expect: Mapping[str, Any], config: Mapping[str, Any] = {}) -> bool:
        return make(scorer, config).applies(expect)

    return asked
