"""A pytest plugin that reports, under a seal, what each test did.

It reads its orders from stdin before any code under test runs: the key of the seal, where to report, and which files the
agent changed. Tests in files of the agent's own do not count, and a module that is skipped as a whole is listed. A report
that anybody else wrote has no seal; a session that ends early has no report. What the code under test changes in the
framework is reported too. Code in this process that looks for the key can find it: to keep a candidate away from its own
verdict, run it in another process. Python 3.9 or later, pytest 7 or later.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
import os
import sys
from collections.abc import Callable, Generator, Iterator
from types import FunctionType, ModuleType
from typing import Any, cast

import pytest

NAME = "evalwright_witness"
FRAMEWORK = ("_pytest", "pluggy", "unittest")
BEST_FIRST = ("passed", "xfailed", "xpassed", "skipped", "tampered", "error", "failed")
MAX_DETAIL_CHARACTERS = 200
Place = tuple[Any, str, Any, Any]


class Witness:
    """Sees every test and writes one sealed report when the session ends."""

    def __init__(self, report: str, changed: dict[str, str | None], seal: Callable[[bytes], str]) -> None:
        """Remember what to watch."""
        self._report = report
        self._changed = changed
        self._own = {path for path, digest in changed.items() if digest is not None and _digest(path) == digest}
        self._seal = seal
        self._tests: dict[str, dict[str, str]] = {}
        self._framework: list[Place] = []
        self._bodies: dict[str, tuple[Any, Any]] = {}
        self._plugins: set[int] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Note what the framework is made of, before the first test module is imported."""
        self._framework = list(_functions_of_framework())
        self._plugins = {id(plugin) for plugin in session.config.pluginmanager.get_plugins()}

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Object to a test whose body is the agent's."""
        function = inspect.unwrap(getattr(item, "function", None) or _nothing)
        code = getattr(function, "__code__", None)
        self._bodies[item.nodeid] = function, code
        origin = os.path.realpath(code.co_filename) if code else ""
        if origin in self._changed and origin != os.path.realpath(str(item.fspath)):
            self._note(item.nodeid, "tampered", "its body comes from " + os.path.basename(origin))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._note(report.nodeid, "error", _last_line(report))
        elif report.skipped:
            self._note(report.nodeid, "skipped", _last_line(report))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Object to a test that left the framework changed."""
        yield
        self._inspect(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of a test; of all its phases the worst counts, and a repetition starts afresh."""
        outcome = str(report.outcome)
        if outcome == "rerun":
            self._tests.pop(report.nodeid, None)
        elif outcome == "failed":
            self._note(report.nodeid, "failed" if report.when == "call" else "error", _last_line(report))
        elif hasattr(report, "wasxfail"):
            self._note_expected(report)
        elif outcome == "skipped" or report.when == "call":
            self._note(report.nodeid, outcome, _last_line(report) if outcome == "skipped" else "")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, None]:
        """Write the report."""
        yield
        for nodeid in list(self._tests):
            self._inspect(nodeid)
        for plugin in session.config.pluginmanager.get_plugins():
            if id(plugin) not in self._plugins and _origin(plugin) in self._changed:
                for nodeid in self._tests:
                    self._note(nodeid, "tampered", "the code under test became a plugin of pytest")
        counted = {name: record for name, record in self._tests.items() if _file_of(name) not in self._own}
        tests = [{"name": name, **record} for name, record in counted.items()]
        document = json.dumps({"tests": tests}).encode()
        with open(self._report, "wb") as file:
            file.write(self._seal(document).encode() + b"\n" + document)

    def _note_expected(self, report: pytest.TestReport) -> None:
        """Note an expected failure; it is the test's to declare, not the code's under test."""
        crash = getattr(report.longrepr, "reprcrash", None)
        where = os.path.basename(str(crash.path)) if crash else ""
        own = {os.path.basename(str(report.fspath)), "conftest.py"}
        if "xfail" not in report.keywords and where not in own:
            self._note(report.nodeid, "skipped", f"{where} called it an expected failure, not the test")
        else:
            self._note(report.nodeid, "xpassed" if report.outcome == "passed" else "xfailed", str(report.wasxfail))

    def _inspect(self, nodeid: str) -> None:
        function, code = self._bodies.get(nodeid, (None, None))
        if getattr(function, "__code__", None) is not code:
            self._note(nodeid, "tampered", "its body was replaced")
        for owner, key, value, code in self._framework:
            if vars(owner).get(key) is not value or _code(value) is not code:
                name = getattr(owner, "__qualname__", owner.__name__)
                self._note(nodeid, "tampered", f"{name}.{key} was replaced")

    def _note(self, nodeid: str, outcome: str, detail: str) -> None:
        known = self._tests.get(nodeid)
        if known is None or BEST_FIRST.index(outcome) > BEST_FIRST.index(known["outcome"]):
            self._tests[nodeid] = {"outcome": outcome, "detail": detail[:MAX_DETAIL_CHARACTERS]}


def pytest_configure(config: pytest.Config) -> None:
    """Take the witness on; a worker process of pytest-xdist has no orders and needs none."""
    config.option.plugins = [name for name in config.option.plugins if name != NAME]
    if _WITNESS:
        config.pluginmanager.register(_WITNESS.pop(), NAME + "_session")


def _functions_of_framework() -> Iterator[Place]:
    """Yield ``(owner, name, value, code)`` of the functions and methods of pytest, pluggy and unittest."""
    loaded: dict[str, Any] = dict(sys.modules)
    for module_name, module in loaded.items():
        if module_name.partition(".")[0] not in FRAMEWORK or not isinstance(module, ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module_name:
                yield from _functions(value)
            elif isinstance(value, FunctionType):
                yield module, key, value, value.__code__


def _functions(owner: type) -> Iterator[Place]:
    for key, value in list(vars(owner).items()):
        code = _code(value)
        if code is not None:
            yield owner, key, value, code


def _code(value: Any) -> Any:
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return getattr(function, "__code__", None)


def _origin(plugin: Any) -> str:
    module = sys.modules.get(type(plugin).__module__) if not hasattr(plugin, "__file__") else plugin
    return os.path.realpath(getattr(module, "__file__", None) or "")


def _last_line(report: Any) -> str:
    """Return where and why, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return " ".join(str(crash.message).split())
    told: Any = report.longrepr
    text = str(cast("tuple[object, ...]", told)[-1] if isinstance(told, tuple) else told)
    lines = [line for line in text.splitlines() if line.strip()]
    return " ".join(lines[-1].split()) if lines else ""


def _file_of(nodeid: str) -> str:
    return os.path.realpath(nodeid.partition("::")[0])


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return "sha256:" + hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _nothing() -> None:
    """Stand for the function of an item that has none."""


def _take_orders() -> Witness | None:
    """Read the orders and take their traces out of the environment."""
    if os.environ.pop("EVALWRIGHT_WITNESS", None) is None:
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]
    kept = [path for path in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if path and path != here]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    with open(0, "rb", closefd=False) as file:
        orders = json.loads(file.read())
    sealer = hmac.new(bytes.fromhex(orders["key"]), digestmod=hashlib.sha256)

    def seal(document: bytes) -> str:
        mac = sealer.copy()
        mac.update(document)
        return mac.hexdigest()

    changed = {os.path.realpath(path): digest for path, digest in orders["changed"].items()}
    return Witness(orders["report"], changed, seal)


_WITNESS: list[Witness] = [witness for witness in [_take_orders()] if witness]
