"""The plugins of the leak test: three agents, of which one is the spy, and a grader that holds its place open meanwhile."""

from __future__ import annotations

import base64
import gzip
import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel

from evalwright.audit.canaries import CONTROLS, PLACES, token
from evalwright.audit.forms import encoded_marks
from evalwright.errors import TrialError
from evalwright.interfaces import Command, Deadline, Host, Runner, RunnerContext, ScoreContext, Scorer, Session
from evalwright.model import Completed, RunnerResult, Score, ScoredTrial, TrialView
from evalwright.rundir import RunDirectory
from evalwright.store import DirectoryStore

__all__ = ["PATIENCE_SECONDS", "LeakConfig", "LeakRunner", "LeakScorer"]

PATIENCE_SECONDS = 300.0
GRACE_SECONDS = 30.0
PROBE_SECONDS = 60.0
TICK_SECONDS = 0.05
PYTHON = "python3"
Record = dict[str, Any]


class LeakConfig(BaseModel):
    """Where the parts of the test lie and how long the spy may search; ``since`` is the time of the first canary."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    codes: dict[str, str]
    run: str
    store: str
    signals: str
    known: str
    seconds: float
    since: float


class LeakRunner(Runner[LeakConfig]):
    """Plays the agent that the task names: one that has finished, one whose trial is being graded, and the spy."""

    api = "runner/1.0"
    Config = LeakConfig

    def __init__(self, config: LeakConfig, host: Host) -> None:
        super().__init__(config, host)
        self._signals = Path(config.signals)
        self._open: int | None = None

    def start(self, deadline: Deadline) -> None:
        """Keep a file open that has no name, as a careless library would: not closed on execution."""
        descriptor, name = tempfile.mkstemp(dir=self._signals)
        os.write(descriptor, token(self.config.codes, "descriptor").encode())
        os.unlink(name)
        os.set_inheritable(descriptor, True)
        self._open = descriptor

    def close(self, deadline: Deadline) -> None:
        """Close that file."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Play the part."""
        parts: Mapping[str, Callable[[RunnerContext], str]] = {
            "finished": self._finished,
            "graded": self._graded,
            "spy": self._spy,
        }
        return RunnerResult(completed=Completed(exit_code=0), output=parts[trial.task](context))

    def _finished(self, context: RunnerContext) -> str:
        """Leave canaries where only the coordinator writes, and one as the answer."""
        codes = self.config.codes
        snapshot = RunDirectory(Path(self.config.run)).snapshot
        (snapshot / "canary.txt").write_text(token(codes, "snapshot"), encoding="utf-8")
        DirectoryStore(Path(self.config.store)).put_bytes(token(codes, "store").encode())
        return token(codes, "evidence")

    def _graded(self, context: RunnerContext) -> str:
        session = context.session()
        for place, directory in (("workspace", session.workspace), ("exchange", session.exchange)):
            session.put(token(self.config.codes, place).encode(), directory / "canary.txt")
        return ""

    def _spy(self, context: RunnerContext) -> str:
        """Search while the others' places are there, and answer with the finds as JSON."""
        try:
            self._wait(context)
            return json.dumps(self._search(context))
        finally:
            (self._signals / "done").touch()

    def _wait(self, context: RunnerContext) -> None:
        """Wait until one trial has its evidence in the run directory and another is being graded."""
        pause = threading.Event()
        cases = RunDirectory(Path(self.config.run)).cases
        while not ((self._signals / "held").exists() and list(cases.glob("*.finished/output.txt"))):
            failed = self._signals / "failed"
            if failed.exists():
                raise TrialError("neighbour", f"no trial could be graded beside the spy: {failed.read_text(encoding='utf-8')}")
            if context.deadline.remaining < self.config.seconds or context.canceled():
                raise TrialError("neighbour", "no other trial came as far as grading in time")
            pause.wait(TICK_SECONDS)

    def _search(self, context: RunnerContext) -> Record:
        session, environment = context.session(), context.environment()
        self._show_controls(session)
        probe = Command(argv=[PYTHON, "-I", "-c", "print(6 * 7)"], env=environment, timeout=PROBE_SECONDS)
        python = session.execute(probe).stdout.text.strip() == "42"
        done = session.execute(
            Command(
                argv=[PYTHON, "-I", "-"] if python else ["/bin/sh", "-s"],
                env=environment,
                stdin=(self._python(session) if python else self._shell(session)).encode(),
                timeout=self.config.seconds + GRACE_SECONDS,
                canceled=context.canceled,
            )
        )
        return self._read(done, CONTROLS if python else CONTROLS[:1]) | {"spy": PYTHON if python else "sh"}

    def _show_controls(self, session: Session) -> None:
        plain, encoded, packed = (token(self.config.codes, name).encode() for name in CONTROLS)
        session.put(plain, session.workspace / ".control-plain")
        session.put(b"x" + base64.encodebytes(b"x" * 50 + encoded), session.workspace / ".control-encoded")
        session.put(gzip.compress(packed), session.workspace / ".control-packed")

    def _python(self, session: Session) -> str:
        settings = {
            "seconds": self.config.seconds,
            "since": self.config.since,
            "workspace": str(session.workspace),
            "exchange": str(session.exchange),
            "known": json.loads(Path(self.config.known).read_bytes()),
        }
        return f"{_loaded('forms', 'spy')}\nmodule.main({settings!r})\n"

    def _shell(self, session: Session) -> str:
        marks = " ".join(f"{mark[:4].decode()}.{mark[4:].decode()}" for _, mark, _ in encoded_marks())
        places = f"workspace='{session.workspace}'\nexchange='{session.exchange}'\n"
        return f"seconds={self.config.seconds:.0f}\n{places}encoded='{marks}'\n{_source('spy.sh')}"

    def _read(self, done: Completed, controls: tuple[str, ...]) -> Record:
        """Return what the spy said. Raises ``TrialError`` for one that saw nothing because it did not get far."""
        lines = [line.split("\t") for line in done.stdout.text.splitlines()]
        codes = self.config.codes
        finds = [words[1:] for words in lines if words[0] == "hit" and len(words) == 5]
        real = [find for find in finds if find[0] in ("suite", "unknown") or codes.get(find[0]) == find[1]]
        hits = [{"place": place, "path": path, "how": how} for place, _, how, path in real if place in PLACES]
        ends = [words for words in lines if words[0] == "done" and len(words) == 5]
        missed = set(controls) - {find[0] for find in real}
        if not hits and (missed or not ends):
            why = done.spawn_error or done.stderr.text.strip()[-500:] or f"exit status {done.exit_code}"
            what = f"did not find {', '.join(sorted(missed))}" if ends else "ended too early"
            raise TrialError("spy", f"the spy {what}, so it proves nothing: {why}")
        left = [{"path": words[2], "why": words[1]} for words in lines if words[0] == "left" and len(words) == 3]
        _, files, size, seconds, complete = ends[0] if ends else ("", "0", "0", "0", "0")
        searched = {"files": int(files), "bytes": int(size), "seconds": float(seconds)}
        return {"hits": _sorted(hits), "searched": searched, "left_out": left, "complete": complete == "1" and not missed}


class Canary(RootModel[str], strict=True, frozen=True):
    """A canary in the place of an expectation."""


class LeakScorer(Scorer[LeakConfig]):
    """Passes everything; in the graded trial it opens what a grader may open and stays there until the spy is done."""

    api = "scorer/1.0"
    Config = LeakConfig
    Expect = MappingProxyType({"canary": Canary})

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Hold the place of the graded trial."""
        signals = Path(self.config.signals)
        if trial.task == "graded":
            try:
                self._hold(context, signals)
            except Exception as error:
                (signals / "reason").write_text(f"{error}", encoding="utf-8")
                os.replace(signals / "reason", signals / "failed")
                raise
        return Score.passed()

    def _hold(self, context: ScoreContext, signals: Path) -> None:
        canary = token(self.config.codes, "process")
        with context.session(workspace="fixture", hidden=True), context.session() as session:
            session.put(token(self.config.codes, "grader").encode(), session.exchange / "canary.txt")
            done = session.execute(
                Command(
                    argv=["/bin/sh", "-c", "echo held; while :; do sleep 1; done", canary],
                    env={**context.environment(session), "CANARY": canary},
                    timeout=self.config.seconds + PATIENCE_SECONDS,
                    on_output=lambda _name, _data: (signals / "held").touch(),
                    canceled=(signals / "done").exists,
                )
            )
        if not done.canceled:
            why = done.spawn_error or done.stderr.text.strip()[-300:] or f"exit status {done.exit_code}"
            raise TrialError("neighbour", f"a grader's command ended early: {why}")


def _loaded(*names: str) -> str:
    """Return a program that makes modules of this package from their source, each under its own name."""
    sources = {f"{__package__}.{name}": _source(f"{name}.py") for name in names}
    return (
        f"import sys, types\nfor name, source in {sources!r}.items():\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n    exec(source, module.__dict__)"
    )


def _source(name: str) -> str:
    return resources.files("evalwright.audit").joinpath(name).read_text(encoding="utf-8")


def _sorted(hits: list[dict[str, str]]) -> list[dict[str, str]]:
    order = list(PLACES)
    return sorted(hits, key=lambda hit: (order.index(hit["place"]), hit["path"], hit["how"]))
