"""The contract of runners."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar

from evalwright.interfaces import Beat, Deadline, Host, Runner
from evalwright.model import AgentTable, RunnerResult, TrialSpec, TrialView, Usage
from evalwright.redaction import Redactor
from evalwright.testing._contract import Contract, since
from evalwright.testing._fake_sandboxes import FakeSandbox
from evalwright.testing._host import FakeHost
from evalwright.testing._waiting import in_threads, within
from evalwright.worker.agent import AgentContext
from evalwright.worker.evidence import answer_of
from evalwright.worker.services import TrialServices
from evalwright.workspace import TrialPlace

__all__ = ["RunnerContract"]

TASKS = (
    "Say it.",
    "two\nlines, the last without an end",
    "  leading and trailing white space \t\n\n",
    "$HOME ${PATH} `id` $(id) \\n %s {task} {{x}} 'a' \"b\" -n --help; exit 9 #",
    "\u00e9\u202e\U0001f680\ufeff",
)
MAX_BYTES = 1 << 20
SECONDS = 30.0


class RunnerContract(Contract[Runner[Any]]):
    """What every runner promises: the agent gets the task verbatim, and its failure is a result.

    Override :meth:`make`; where you can, also :meth:`make_failing` and :meth:`make_hanging`.
    """

    kind = "runner"
    exit_code: ClassVar[int] = 3

    def make(self, host: Host) -> Runner[Any]:
        """Return a runner whose agent answers with its task, unchanged."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def make_failing(self, host: Host) -> Runner[Any] | None:
        """Return a runner whose agent ends with ``exit_code``; ``None`` leaves the check out."""
        return None

    def make_hanging(self, host: Host) -> Runner[Any] | None:
        """Return a runner whose agent never ends by itself; ``None`` leaves the checks out."""
        return None

    @contextlib.contextmanager
    def context(
        self, place: Path, task: str, *, timeout: float = SECONDS, beat: Beat = lambda: "continue"
    ) -> Generator[AgentContext]:
        """Give the context that the core gives, over an honest sandbox; its session is ended after the block."""
        place.mkdir(parents=True, exist_ok=True)
        trial = TrialPlace(place / secrets.token_hex(4))
        trial.make()
        (trial.exchange / "task.txt").write_text(task, encoding="utf-8", newline="")
        (trial.exchange / "case.json").write_text(json.dumps({"id": "case", "task": task}), encoding="utf-8")
        sandbox = FakeSandbox()
        none = TrialServices({}, warn=_ignore, fail=_ignore)
        context = AgentContext(_spec(task, timeout), trial, sandbox, Redactor(), beat, files=None, keep=_drop, services=none)
        try:
            yield context
        finally:
            context.end()
            context.destroy()
            sandbox.close(Deadline.after(SECONDS))

    @since("1.0")
    def test_task_reaches_the_agent_verbatim(self, tmp_path: Path) -> None:
        """Quotes, dollars, white space and Unicode arrive as they were written."""
        with self.made() as runner:
            for task in TASKS:
                with self.context(tmp_path, task) as context:
                    answer = _answer(runner.run(_view(task), context), context)
                assert answer == task, f"the task {task!r} became {answer!r}"

    @since("1.0")
    def test_result_can_be_recorded(self, tmp_path: Path) -> None:
        """It is a ``RunnerResult``; usage is known or ``None``, details are JSON."""
        with self.made() as runner, self.context(tmp_path, "Say it.") as context:
            result: Any = runner.run(_view("Say it."), context)
        assert isinstance(result, RunnerResult), f"run() gave {result!r}"
        assert result.usage is None or isinstance(result.usage, Usage)
        try:
            json.dumps(dict(result.details), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"details are not JSON: {result.details!r}") from error

    @since("1.0")
    def test_exit_status_other_than_zero_is_a_result(self, tmp_path: Path) -> None:
        """An agent's failure raises nothing; its status is kept."""
        with self._made_if(self.make_failing) as runner, self.context(tmp_path, "Fail.") as context:
            if runner is None:
                return
            try:
                result = runner.run(_view("Fail."), context)
            except Exception as error:
                raise AssertionError(f"an agent's failure raised {error!r}; return a RunnerResult") from error
        assert result.completed.exit_code == self.exit_code

    @since("1.0")
    def test_deadline_is_kept(self, tmp_path: Path) -> None:
        """An agent that never ends is cut about when the trial's time is up, and the result says so."""
        with self._made_if(self.make_hanging) as runner, self.context(tmp_path, "Hang.", timeout=1.0) as context:
            if runner is None:
                return
            result = within(SECONDS, lambda: runner.run(_view("Hang."), context), "a runner with a deadline of 1 s")
        assert result.completed.timed_out
        assert result.completed.exit_code is None

    @since("1.0")
    def test_cancellation_is_noticed(self, tmp_path: Path) -> None:
        """A runner whose run was stopped returns soon."""
        stop = threading.Event()
        beat: Beat = lambda: "cancel" if stop.is_set() else "continue"  # noqa: E731  # a typed one-liner
        with self._made_if(self.make_hanging) as runner, self.context(tmp_path, "Hang.", timeout=600.0, beat=beat) as context:
            if runner is None:
                return
            stop.set()
            result = within(SECONDS, lambda: runner.run(_view("Hang."), context), "a canceled runner")
        assert result.completed.canceled
        assert result.completed.exit_code is None

    @since("1.0")
    def test_eight_trials_at_once(self, tmp_path: Path) -> None:
        """One runner serves eight trials at the same time; each answer belongs to its task."""
        with self.made() as runner:

            def trial(number: int) -> str:
                task = f"task {number}"
                with self.context(tmp_path, task) as context:
                    return _answer(runner.run(_view(task), context), context)

            assert in_threads(trial) == [f"task {number}" for number in range(8)]

    @contextlib.contextmanager
    def _made_if(self, make: Callable[[Host], Runner[Any] | None]) -> Generator[Runner[Any] | None]:
        with FakeHost() as host:
            runner = make(host)
            try:
                yield runner
            finally:
                if runner is not None:
                    runner.close(Deadline.after(SECONDS))


def _spec(task: str, timeout: float) -> TrialSpec:
    digest = "sha256:" + "0" * 64
    return TrialSpec(
        run_id="run",
        suite="demo",
        suite_digest=digest,
        native=True,
        case_id="case",
        case_digest=digest,
        case={"id": "case", "task": task},
        fixture_digest=digest,
        gold_digest=digest,
        tables={"agent": AgentTable(timeout=timeout).as_json()},
        timeout=timeout,
    )


def _drop(name: str, data: bytes) -> None:  # the core's words
    """Take an artifact that nobody will look at."""


def _ignore(*_: Any, **__: Any) -> None:
    """Take a complaint that nobody will hear."""


def _view(task: str) -> TrialView:
    return TrialView(id="case", task=task, record={"id": "case", "task": task})


def _answer(result: RunnerResult, context: AgentContext) -> str:
    return answer_of(result, context.opened, Redactor(), MAX_BYTES).text
