"""The leak test: plant canaries, let a spy search inside the sandbox, and tell what it found."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from evalwright.audit.canaries import new_codes, token
from evalwright.audit.leak_agents import PATIENCE_SECONDS
from evalwright.audit.planting import ROLES, Planted
from evalwright.canonical import is_object
from evalwright.coordinate import RunRequest, Stop, select_cases
from evalwright.errors import Interrupted, SandboxError, UsageError
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright.rundir import Layout, disk_errors, read_object
from evalwright.workspace import clear_abandoned, owned_name, remove_tree

__all__ = ["DEFAULT_SECONDS", "leak_test"]

DEFAULT_SECONDS = 60.0
END_SECONDS = 20.0
CLOCK_SLACK_SECONDS = 2.0
Record = dict[str, Any]


def leak_test(request: RunRequest, *, seconds: float, stop: Stop) -> Record:
    """Return ``{sandbox, isolation, promised, spy, places, hits[{place, path, how}], searched{}, left_out[], complete}``.

    A real run of three trials is made in a private project beside the user's own, in a process whose environment and
    command line hold canaries too; the spy searches for at most ``seconds``. Leaves nothing behind. Raises
    ``SandboxError`` when the spy could not search, ``Interrupted``, or ``UsageError`` where nothing can be written.
    """
    suite = request.checked.suite
    case = select_cases(suite, request.selection)[0]
    with _private_place(request.layout.evals) as root:
        planted = Planted(root, new_codes())
        with disk_errors(root):
            places = planted.plant(suite, case, request.layout, seconds=seconds, since=time.time() - CLOCK_SLACK_SECONDS)
        done = _run(planted, request, seconds, stop)
        if stop.requested:
            raise Interrupted("Stopped. Nothing of the leak test is kept.", hint="start it again")
        found = _result(planted, done)
        sandbox = read_object(planted.run.run_json)["execution"]["sandbox"]
    capabilities = request.checked.registry.load("sandbox", sandbox).cls.capabilities
    return {"sandbox": sandbox, "promised": "gold-isolated" in capabilities, "places": places, **found}


@contextlib.contextmanager
def _private_place(evals: Path) -> Generator[Path]:
    """Give a directory where the user's own gold lies, so that whoever can read that can read this; gone after the block."""
    home = next(place for place in (evals, *evals.absolute().parents) if place.is_dir()).resolve()
    family = Layout(home, home).leak_tests
    root = family / f"{owned_name()}-{secrets.token_hex(4)}"
    try:
        clear_abandoned(family)
        root.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"the leak test writes a private project beside your suites: {error}", hint=f"make {home} writable"
        ) from error
    try:
        yield root
    finally:
        remove_tree(root, inside=family)
        with contextlib.suppress(OSError):
            family.rmdir()


def _run(planted: Planted, request: RunRequest, seconds: float, stop: Stop) -> Completed:
    """Run the planted suite as a user would, in a process of its own."""
    canary = token(planted.codes, "command-line")
    argv = [sys.executable, "-X", canary, "-m", "evalwright", "run", str(planted.suite), "--run-id", planted.run.path.name]
    argv += ["--jobs", str(len(ROLES)), "--timeout", str(seconds + PATIENCE_SECONDS), "--json"]
    if request.settings.origin("sandbox") == "command line":
        argv += ["--sandbox", str(request.settings.sandbox)]
    environment = {
        **os.environ,
        "EVALWRIGHT_EVALS": str(planted.layout.evals),
        "EVALWRIGHT_RUNS": str(planted.layout.runs),
        "EVALWRIGHT_QUEUE": "local",
        "LEAK_TEST_API_TOKEN": token(planted.codes, "environment"),
    }
    command = Command(
        argv=argv, cwd=os.getcwd(), env=environment, grace=END_SECONDS, canceled=lambda: stop.requested, timeout=None
    )
    with Supervisor() as supervisor:
        return supervisor.run(command)


def _result(planted: Planted, done: Completed) -> Record:
    """Return what the spy's trial holds. Raises ``SandboxError`` with the reason when it holds nothing."""
    trial = planted.run.case(planted.case_id("spy"))
    if not (trial / "runner.json").is_file():
        raise SandboxError(f"the leak test could not be run: {_reason(done)}", hint="try: evalwright doctor")
    record = read_object(trial / "runner.json")
    if record["error"]:
        message = str(record["error"]["message"])
        raise SandboxError(f"the leak test failed: {message}", hint="correct the sandbox, or give it more time with --seconds")
    answer = json.loads((trial / "output.txt").read_bytes())
    return {"isolation": record["isolation"], **answer}


def _reason(done: Completed) -> str:
    """Return the first error that the run told, else the end of what it printed."""
    with contextlib.suppress(ValueError, LookupError):
        envelope = json.loads(done.stdout.text.splitlines()[-1])
        if is_object(envelope) and envelope["errors"]:
            return str(envelope["errors"][0]["message"])
    return done.spawn_error or done.stderr.text.strip()[-500:] or f"exit status {done.exit_code}"
