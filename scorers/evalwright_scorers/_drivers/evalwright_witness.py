"""A pytest plugin that reports, under a seal, what each test did.

It reads its orders from stdin before any code under test runs: the key of the seal, where to report, and which files the
agent changed. Tests in files of the agent's own, or made during the run, do not count, and a module that is skipped as a
whole is listed. A report that anybody else wrote has no seal; a session that ends early has no report. What the code under
test changes in the framework is reported too. Each test is followed by its control: a test of the same name, in the same
place, that must fail. Code in this process that looks for the key can find it: to keep a candidate away from its own
verdict, run it in another process. Python 3.9 or later, pytest 7 or later.
"""

from __future__ import annotations

import builtins
import hashlib
import hmac
import inspect
import json
import os
import sys
import unittest
from collections.abc import Callable, Generator, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, cast

import pytest
from _pytest.runner import runtestprotocol

NAME = "evalwright_witness"
FRAMEWORK = ("_pytest", "pluggy", "pytest", "unittest", NAME)
OF_ANYBODY = frozenset({"_", "__import__", "exit", "input", "open", "print", "quit"})
BEST_FIRST = ("passed", "xfailed", "xpassed", "skipped", "tampered", "error", "failed")
EXPECTED_FAILURE = "__unittest_expecting_failure__"
"""What ``unittest.expectedFailure`` sets on a test or a class of tests."""
MAX_DETAIL_CHARACTERS = 200
Place = tuple[Any, str, Any]


class Framework:
    """What pytest, pluggy, unittest, this plugin and the builtins consisted of when it was made."""

    def __init__(self) -> None:
        """Note every module, binding, method and member."""
        loaded: dict[str, Any] = dict(sys.modules)
        modules = {name: module for name, module in loaded.items() if _is_framework(name, module)}
        places = [place for name, module in modules.items() for place in _places(name, module)]
        self._bindings: list[tuple[Any, str, Any]] = [(sys.modules, name, module) for name, module in modules.items()]
        self._bindings += [(vars(builtins), key, value) for key, value in vars(builtins).items() if key not in OF_ANYBODY]
        self._bindings += [(vars(owner), key, value) for owner, key, value in places]
        functions = {id(function): function for _, _, value in places if (function := _function(value)) is not None}
        self._codes = [(function, function.__code__) for function in functions.values()]
        self._members = {owner: frozenset(vars(owner)) for owner, _, _ in places if isinstance(owner, type)}

    def changes(self) -> Iterator[str]:
        """Yield the name of everything that is not what it was."""
        yield from (key for mapping, key, value in self._bindings if mapping.get(key) is not value)
        yield from (function.__qualname__ for function, code in self._codes if function.__code__ is not code)
        for owner, members in self._members.items():
            if len(vars(owner)) != len(members):
                new = vars(owner).keys() - members
                yield from (f"{owner.__qualname__}.{key}" for key in new if _function(vars(owner)[key]) is not None)


class Witness:
    """Sees every test and writes one sealed report when the session ends."""

    def __init__(self, report: str, changed: dict[str, str | None], seal: Callable[[bytes], str]) -> None:
        """Remember what to watch."""
        self._report = report
        self._changed = changed
        self._own = {path for path, digest in changed.items() if digest is not None and _digest(path) == digest}
        self._seal = seal
        self._top = os.path.realpath(os.curdir)
        self._present = frozenset(_files_below(self._top))
        self._tests: dict[str, dict[str, str]] = {}
        self._framework: Framework | None = None
        self._bodies: dict[str, tuple[Any, Any]] = {}
        self._expected_to_fail: set[str] = set()
        self._controls: set[int] = set()
        self._plugins: set[int] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Note what the framework is made of, before the first test module is imported."""
        self._framework = Framework()
        self._plugins = {id(plugin) for plugin in session.config.pluginmanager.get_plugins()}

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Object to a test whose body is the agent's."""
        function = inspect.unwrap(getattr(item, "function", None) or _nothing)
        code = getattr(function, "__code__", None)
        self._bodies[item.nodeid] = function, code
        if any(EXPECTED_FAILURE in vars(owner) for owner in _declaring(item)):
            self._expected_to_fail.add(item.nodeid)
        origin = os.path.realpath(code.co_filename) if code else ""
        if origin in self._changed and origin != os.path.realpath(str(item.fspath)):
            self._note(item.nodeid, "tampered", "its body comes from " + os.path.basename(origin))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._note(report.nodeid, "error", _last_line(report))
        elif report.skipped:
            self._note(report.nodeid, "skipped", _last_line(report))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, None]:
        """Let each test be followed by its control, of which neither the terminal nor the exit status hears."""
        session.items[:] = [either for item in session.items for either in (item, _control_of(item))]
        self._controls = {id(control) for control in session.items[1::2]}
        yield

    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_protocol")
    def pytest_runtest_protocol_of_control(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a control as pytest runs a test, and note whether it did fail."""
        if id(item) not in self._controls:
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        passed = any(report.when == "call" and report.outcome == "passed" for report in reports)
        record = self._tests.get(item.nodeid)
        if record is not None and record.get("control") != "passed":
            record["control"] = "passed" if passed or not reports else "failed"
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Object to a test that left the framework changed."""
        yield
        if id(item) not in self._controls:
            self._inspect(item.nodeid, self._changes())

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
        changes = self._changes()
        for nodeid in list(self._tests):
            self._inspect(nodeid, changes)
        for plugin in session.config.pluginmanager.get_plugins():
            if id(plugin) not in self._plugins and _origin(plugin) in self._changed:
                for nodeid in self._tests:
                    self._note(nodeid, "tampered", "the code under test became a plugin of pytest")
        tests = [{"name": name, **record} for name, record in self._tests.items() if self._counts(_file_of(name))]
        document = json.dumps({"tests": tests}).encode()
        with open(self._report, "wb") as file:
            file.write(self._seal(document).encode() + b"\n" + document)

    def _note_expected(self, report: pytest.TestReport) -> None:
        """Note an expected failure; it is the test's to declare, not the code's under test."""
        crash = getattr(report.longrepr, "reprcrash", None)
        where = os.path.basename(str(crash.path)) if crash else ""
        own = {os.path.basename(str(report.fspath)), "conftest.py"}
        declared = "xfail" in report.keywords or report.nodeid in self._expected_to_fail
        if not declared and where not in own:
            self._note(report.nodeid, "skipped", f"{where} called it an expected failure, not the test")
        else:
            self._note(report.nodeid, "xpassed" if report.outcome == "passed" else "xfailed", str(report.wasxfail))

    def _changes(self) -> list[str]:
        return list(self._framework.changes()) if self._framework else []

    def _counts(self, path: str) -> bool:
        """Tell whether a file is neither the agent's own nor one that was made during the run."""
        made = path.startswith(self._top + os.sep) and path not in self._present
        return path not in self._own and not made

    def _inspect(self, nodeid: str, changes: Iterable[str]) -> None:
        function, code = self._bodies.get(nodeid, (None, None))
        if getattr(function, "__code__", None) is not code:
            self._note(nodeid, "tampered", "its body was replaced")
        for name in changes:
            self._note(nodeid, "tampered", f"{name} was replaced")
        for watcher in (sys.getprofile(), sys.gettrace()):
            function = _function(watcher)
            if function is not None and os.path.realpath(function.__code__.co_filename) in self._changed:
                self._note(nodeid, "tampered", "the code under test follows what the framework does")

    def _note(self, nodeid: str, outcome: str, detail: str) -> None:
        known = self._tests.get(nodeid)
        if known is None or BEST_FIRST.index(outcome) > BEST_FIRST.index(known["outcome"]):
            self._tests[nodeid] = {**(known or {}), "outcome": outcome, "detail": detail[:MAX_DETAIL_CHARACTERS]}


def pytest_configure(config: pytest.Config) -> None:
    """Take the witness on. The tests run in this process, which it watches, and not in workers of pytest-xdist."""
    if _WITNESS:
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
        config.pluginmanager.register(_WITNESS.pop(), NAME + "_session")


def _is_framework(name: str, module: Any) -> bool:
    return name.partition(".")[0] in FRAMEWORK and isinstance(module, ModuleType)


def _places(name: str, module: ModuleType) -> Iterator[Place]:
    """Yield ``(owner, name, value)`` of a module's functions and classes, and of the methods of its own classes."""
    for key, value in list(vars(module).items()):
        if isinstance(value, (FunctionType, type)):
            yield module, key, value
        if isinstance(value, type) and value.__module__ == name:
            yield from ((value, key, member) for key, member in list(vars(value).items()) if _function(member) is not None)


def _function(value: Any) -> Any:
    """Return the function behind a method, a property or a class method, ``None`` where there is none."""
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return function if isinstance(function, FunctionType) else None


def _declaring(item: pytest.Item) -> Iterator[Any]:
    """Yield what a test module may have marked for a test: its function, its class and their bases in the same module."""
    function, owner = getattr(item, "function", None), getattr(item, "cls", None)
    yield from (function for _ in [0] if isinstance(function, FunctionType))
    yield from (kind for kind in getattr(owner, "__mro__", ()) if kind.__module__ == owner.__module__)


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


def _files_below(top: str) -> Iterator[str]:
    for directory, _, names in os.walk(top):
        yield from (os.path.join(directory, name) for name in names if name.endswith(".py"))


def _control_of(item: pytest.Item) -> pytest.Item:
    """Return a test of the same name and place as another, without fixtures, that fails by every means of failing."""
    control: Any = pytest.Function.from_parent(cast("Any", item.parent), name=item.name, callobj=_fails)
    control.fixturenames = []
    control.repr_failure = str  # a traceback that nobody reads takes longer than the test
    return cast("pytest.Item", control)


def _fails() -> None:
    """Fail as an assertion does. It passes where an assertion of a framework no longer objects."""
    try:
        unittest.TestCase().assertEqual(1, 2)  # noqa: PT009 - the assertion itself is on trial
    except AssertionError as error:
        failure = error
    else:
        return
    try:
        with pytest.raises(LookupError):
            pass
    except pytest.fail.Exception:
        raise failure from None


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
