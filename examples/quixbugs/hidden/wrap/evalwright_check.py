"""Check one candidate against hidden tests and report in TAP; the candidate itself runs in a child process.

Run as ``python3 -I -S evalwright_check.py`` in the directory of the candidate; ``-I`` keeps modules of that directory
from shadowing the standard library. Only this process knows the expected values: it reads its plan, removes the hidden
files, and then sends arguments to the child, whose answers are data, never code. Python 3.8 or later, standard library.
"""

from __future__ import annotations

import json
import marshal
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
PLAN, CHILD = "evalwright_check.json", "evalwright_child.py"
ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
START_SECONDS = LAST_SECONDS = 10.0

BUILDERS: dict[str, Callable[[list[Any]], Any]] = {
    "dict": dict,
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "bytes": bytes,
    "iterator": iter,
    "other": lambda _: object(),
}


class CandidateFailed(Exception):
    """The candidate raised, ended, or answered with something unreadable."""


class Candidate:
    """A function of the candidate's file, called in a child process."""

    def __init__(self, plan: dict[str, Any], child_source: str) -> None:
        """Remember what to start; nothing runs yet."""
        self._command = [sys.executable, "-I", "-S", "-c", child_source, str(HERE), plan["file"], plan["function"]]
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the candidate returns, rebuilt from plain data."""
        try:
            marshal.dump((args, kwargs), self._requests)
            self._requests.flush()
        except OSError:
            raise CandidateFailed("the candidate's process ended") from None
        return _read_answer(self._answers.readline(ANSWER_LIMIT_BYTES))

    def start(self) -> None:
        """Start the child unless it runs, and wait until it can load the candidate."""
        if self._process is not None:
            return
        request_end, self._requests = _pipe_to_child()
        answer_end, self._answers = _pipe_from_child()
        self._process = subprocess.Popen(
            [*self._command, str(request_end), str(answer_end)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment_without_secrets(),
            pass_fds=(request_end, answer_end),
            start_new_session=True,
        )
        os.close(request_end)
        os.close(answer_end)
        _read_answer(self._answers.readline(ANSWER_LIMIT_BYTES))

    def stop(self) -> None:
        """Kill the child with its process group."""
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        self._answers.close()
        with suppress(OSError):  # a request that the child never read
            self._requests.close()


def _pipe_to_child() -> tuple[int, Any]:
    read_end, write_end = os.pipe()
    return read_end, os.fdopen(write_end, "wb")


def _pipe_from_child() -> tuple[int, Any]:
    read_end, write_end = os.pipe()
    return write_end, os.fdopen(read_end, "rb")


def _environment_without_secrets() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("EVALWRIGHT_", "EVALCTL_"))}


def _read_answer(line: bytes) -> Any:
    if not line.endswith(b"\n"):
        raise CandidateFailed("the candidate's process ended, or its answer is too long")
    answer = json.loads(line)
    if "error" in answer:
        raise CandidateFailed(answer["error"])
    return decode(answer["value"])


def decode(value: Any) -> Any:
    """Rebuild plain data from its JSON form; what is not plain data becomes an object that equals nothing."""
    if not is_a(value, list):
        return value
    kind, items = value
    return BUILDERS[kind]([decode(item) for item in items])


def same(actual: Any, expected: Any) -> bool:
    """Compare with JSON data: tuples and iterators count as lists, floats may differ by one part in a million."""
    if is_a(actual, tuple) or hasattr(actual, "__next__"):
        actual = list(actual)
    if is_a(actual, list) and is_a(expected, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if is_a(actual, int, float) and is_a(expected, int, float):
        return math.isclose(actual, expected, rel_tol=1e-6) if is_a(actual + expected, float) else actual == expected
    return bool(actual == expected)


def is_a(value: object, *kinds: type) -> bool:
    """Tell whether the value has one of the types."""
    return isinstance(value, kinds)


@contextmanager
def time_limit(seconds: float) -> Generator[None, None, None]:
    """Raise ``TimeoutError`` in the body once ``seconds`` have passed."""

    def expire(*_: Any) -> NoReturn:
        raise TimeoutError

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def passes(candidate: Candidate, test: Callable[[], bool], seconds: float) -> tuple[bool, float]:
    """Tell whether the test holds in time, and how many seconds it took.

    To start the child is no time of the test. A candidate that fails is stopped, so that the next test starts afresh.
    """
    begun = time.monotonic()
    if seconds <= 0:
        return False, 0.0
    try:
        with time_limit(START_SECONDS):
            candidate.start()
        begun = time.monotonic()
        with time_limit(seconds):
            holds = test()
    except Exception as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)  # noqa: T201  (this is a program)
        candidate.stop()
        holds = False
    return holds, time.monotonic() - begun


def run_examples(plan: dict[str, Any], candidate: Candidate) -> list[tuple[str, bool]]:
    """Call the candidate once per example; all examples together share ``budget_seconds``."""
    left = plan["budget_seconds"]
    results: list[tuple[str, bool]] = []
    for example in plan["examples"]:

        def test(example: dict[str, Any] = example) -> bool:
            return same(candidate(*example["arguments"]), example["expected"])

        holds, seconds = passes(candidate, test, min(plan["seconds"], left))
        left -= seconds
        results.append((example["name"], holds))
    return results


def run_check(plan: dict[str, Any], candidate: Candidate) -> list[tuple[str, bool]]:
    """Run the ``check`` function of the plan's test code with the candidate's proxy for the function under test."""
    names: dict[str, Any] = {"__name__": "check"}

    def test() -> bool:
        exec(plan["prompt"], names)  # the unchanged prompt: it defines helpers that some tests call
        names[plan["function"]] = candidate
        exec(plan["test"], names)
        names["check"](candidate)
        return True

    return [("check", passes(candidate, test, plan["seconds"])[0])]


def take_hidden_files() -> tuple[dict[str, Any], str]:
    """Return the plan and the child's source, and remove all hidden files before any candidate runs."""
    plan, child_source = json.loads((HERE / PLAN).read_bytes()), (HERE / CHILD).read_text("utf-8")
    for path in (HERE / PLAN, HERE / CHILD, Path(__file__).resolve()):
        path.unlink()
    return plan, child_source


def guard_process() -> None:
    """Keep other processes of this user out of this one's memory, and have all orphans of the candidate come to it."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        libc = ctypes.CDLL(None)
        libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
        libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_descendants() -> bool:
    """Kill what the candidate left running, however it detached; tell whether nothing lives any more."""
    end = time.monotonic() + LAST_SECONDS
    while time.monotonic() < end:
        for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(word), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
    return False


def write_report(results: list[tuple[str, bool]]) -> None:
    """Write TAP to the report file, or to standard output when no report file is asked for."""
    lines = ["TAP version 14", f"1..{len(results)}"]
    lines += [f"{'ok' if ok else 'not ok'} {number} - {name}" for number, (name, ok) in enumerate(results, start=1)]
    text = "\n".join([*lines, ""])
    report = os.environ.get("EVALWRIGHT_REPORT_FILE")
    if report:
        Path(report).write_text(text, "utf-8")
    else:
        sys.stdout.write(text)


def main() -> int:
    """Return 0 when every test passes, else 1; 2, without a report, when the candidate cannot be got rid of."""
    guard_process()
    plan, child_source = take_hidden_files()
    candidate = Candidate(plan, child_source)
    run = run_examples if "examples" in plan else run_check
    try:
        results = run(plan, candidate)
    finally:
        candidate.stop()
    if not end_descendants():
        return 2
    write_report(results)
    return 0 if all(ok for _, ok in results) else 1


if __name__ == "__main__":
    sys.exit(main())
