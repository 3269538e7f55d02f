"""The agent's side of a trial: its session, opened on first use, and the context that a runner works with."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.errors import SandboxError, TrialError
from evalwright.interfaces import (
    Beat,
    Command,
    Deadline,
    ForwardingSession,
    Mount,
    OutputSink,
    Sandbox,
    SandboxRequest,
    Session,
)
from evalwright.model import Completed, TrialSpec
from evalwright.processes import ProcessJournal
from evalwright.redaction import Redactor
from evalwright.rundir import check_id, disk_errors
from evalwright.spans import NO_SPANS, Spans
from evalwright.worker.bounded import within
from evalwright.worker.environment import base_environment, case_variables
from evalwright.worker.meter import TRANSCRIPT_FILE, Meter
from evalwright.worker.services import TrialServices
from evalwright.worker.usage_file import USAGE_FILE
from evalwright.workspace import TrialPlace

__all__ = ["AgentContext", "WatchedSession", "bounded", "journal_of"]

MAX_EVENTS = 10_000
AGENT_FILES = PurePosixPath("/agent")


class WatchedSession(ForwardingSession):
    """Passes everything on to a sandbox's session and keeps count: redacted capture, cancellation, leaked processes."""

    def __init__(
        self,
        inner: Session,
        sinks: Callable[[], OutputSink],
        canceled: Callable[[], bool],
        started: Callable[[Sequence[int]], None] | None,
        meter: Meter | None = None,
        spans: Spans = NO_SPANS,
    ) -> None:
        super().__init__(inner)
        self._spans = spans
        self._sinks = sinks
        self._canceled = canceled
        self._started = started
        self._meter = meter or Meter()
        self._lock = threading.Lock()
        self.leaked_processes = 0

    def execute(self, command: Command) -> Completed:
        """Run a command; its streams are redacted and bounded unless it says how to capture them."""
        with self._meter.tap(command.on_output) as on_output, self._spans.span("command"):
            started = self._spans.until("spawn", command.on_start or self._started)
            completed = self._inner.execute(
                replace(
                    command,
                    capture=command.capture or self._sinks,
                    on_output=on_output,
                    canceled=command.canceled or self._canceled,
                    on_start=started,
                )
            )
        with self._lock:
            self.leaked_processes += completed.leaked_processes
        if completed.survivors:
            raise SandboxError(f"{completed.survivors} processes outlived every kill", hint="see the kernel's log")
        return completed

    def end(self, deadline: Deadline) -> None:
        """End every process, then bring changes back."""
        self.kill(deadline)
        self.collect(deadline)


class AgentContext:
    """What a runner gets: see :class:`evalwright.interfaces.RunnerContext`."""

    def __init__(
        self,
        spec: TrialSpec,
        place: TrialPlace,
        sandbox: Sandbox[Any],
        redactor: Redactor,
        beat: Beat,
        *,
        files: Path | None,
        keep: Callable[[str, bytes], None],
        services: TrialServices,
        meter: Meter | None = None,
        spans: Spans = NO_SPANS,
    ) -> None:
        self.deadline = Deadline.after(spec.timeout)
        self.events: list[dict[str, Any]] = []
        self.artifacts: set[str] = set()
        self.restored = False
        self._spec = spec
        self._place = place
        self._sandbox = sandbox
        self._redactor = redactor
        self._beat = beat
        self._files = files
        self._keep = keep
        self._meter = meter or Meter()
        self._services = services
        self._stopped = _stopped(beat, self._meter)
        self._spans = spans
        self._sessions: list[WatchedSession] = []
        self._lock = threading.Lock()

    def session(self) -> WatchedSession:
        """Return the trial's session, opened now if it is not yet."""
        with self._lock:
            if not self._sessions:
                self._sessions.append(self._open())
            return self._sessions[0]

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the agent's commands."""
        session = self.session()
        extra = {"REPEAT": str(self._spec.repeat), "SEED": str(self._spec.seed)}
        extra |= {"TRANSCRIPT_FILE": f"{session.exchange}/{TRANSCRIPT_FILE}", "USAGE_FILE": f"{session.exchange}/{USAGE_FILE}"}
        extra |= {"AGENT": str(session.inside(self._files))} if self._files else {}
        variables = case_variables(session, has_diff=self._spec.diff_digest is not None, **extra)
        return base_environment(self._spec.tables["agent"], session, self._place) | self._services.environment | variables

    @contextlib.contextmanager
    def child(self, *, readonly: bool = False, network: str | None = None) -> Generator[AgentContext]:
        """Give a context with a session of its own on the same workspace; it ends with the block."""
        context = AgentContext(
            self._spec,
            self._place,
            self._sandbox,
            self._redactor,
            self._beat,
            files=self._files,
            keep=self._keep,
            meter=self._meter,
            services=self._services,
            spans=self._spans,
        )
        context.deadline, context.events, context.artifacts = self.deadline, self.events, self.artifacts
        try:
            context._sessions.append(context._open(readonly=readonly, network=network))
            yield context
        finally:
            context.end()
            self.restored = self.restored or context.restored

    def workspace(self) -> Path | None:
        """Return where the session's workspace lies on this host."""
        return self._place.workspace if self.session().in_place else None

    def canceled(self) -> bool:
        """Tell whether the run was stopped, or the agent has exceeded a limit."""
        return self._stopped()

    def emit(self, type: str, data: Mapping[str, Any]) -> None:
        """Record an event, redacted; after ten thousand the rest is left out."""
        if len(self.events) < MAX_EVENTS:
            json.dumps(data, allow_nan=False)
            self.events.append({"type": type, "data": self._redactor.json(data)})

    def artifact(self, name: str, source: Path | bytes) -> None:
        """Keep a file with the trial's evidence. Raises ``TrialError`` when the name is taken."""
        check_id(name, "artifact name")
        if name in self.artifacts:
            raise TrialError("artifact", f"the artifact {name} was kept already")
        self.artifacts.add(name)
        data = source if isinstance(source, bytes) else source.read_bytes()
        self._keep(f"artifacts/{name}", self._redactor.bytes(data))

    @property
    def opened(self) -> WatchedSession | None:
        """Return the session if one was opened."""
        return self._sessions[0] if self._sessions else None

    def end(self) -> None:
        """Kill every process and bring the workspace's changes back. Raises what the sandbox raises, or ``TimeoutError``."""
        for session in self._sessions:
            self.restored = self.restored or session.restored
            bounded(session, session.end)
            self.restored = self.restored or session.restored

    def destroy(self) -> None:
        """Release the session. Raises what the sandbox raises, or ``TimeoutError``."""
        for session in self._sessions:
            bounded(session, session.destroy)

    def _open(self, *, readonly: bool = False, network: str | None = None) -> WatchedSession:
        spec = self._spec
        mounts = [Mount(source=self._files, target=AGENT_FILES)] if self._files else []
        request = SandboxRequest(
            owner=f"{spec.run_id}/{spec.case_id}/{spec.attempt}",
            workspace=self._place.workspace,
            exchange=self._place.exchange,
            mounts=mounts,
            endpoints=self._services.endpoints,
            readonly=readonly,
            network=network,
            options=spec.case.get("sandbox", {}),
            deadline=self.deadline,
        )
        sinks = self._redactor.sinks(spec.tables["agent"]["max_output_bytes"])
        with self._spans.span("open"):
            inner = self._sandbox.open(request)
        return WatchedSession(inner, sinks, self._stopped, journal_of(spec, self._place), self._meter, self._spans)


def _stopped(beat: Beat, meter: Meter) -> Callable[[], bool]:
    """Return what tells whether an agent shall stop. Its session holds this, and not the context, which holds the session."""
    return lambda: beat() == "cancel" or meter.exceeded()


def bounded(session: Session, action: Callable[[Deadline], object]) -> None:
    """Call into a session that must return in time: in this thread if it is known to, else under a watch."""
    if session.prompt():
        action(Deadline.after(session.ending_seconds))
    else:
        within(session.ending_seconds, action)


def journal_of(spec: TrialSpec, place: TrialPlace) -> Callable[[Sequence[int]], None] | None:
    """Return what notes the processes of a trial's commands, so that they are found if this process dies."""
    if spec.journal is None:
        return None
    path = Path(spec.journal)
    journal = ProcessJournal(path)

    def note(pids: Sequence[int]) -> None:
        with disk_errors(path):
            journal.note(place.root, pids)

    return note
