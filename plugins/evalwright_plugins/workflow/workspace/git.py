"""Ask git, and let nothing that an agent may have written make it run a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from evalwright.errors import PluginFailed
from evalwright.interfaces import BoundedOutput, Command
from evalwright.model import Completed
from evalwright_plugins.workflow.workspace.files import special_below

__all__ = ["Execute", "Git", "GitError", "check_refs", "paths", "printable"]

Execute = Callable[[Command], Completed]

GIT_SECONDS = 600.0
MAX_BYTES = 256 * 1024 * 1024
SHOWN_CHARACTERS = 500
SETTINGS: Mapping[str, str] = {
    "core.attributesFile": os.devnull,
    "core.checkStat": "default",
    "core.commitGraph": "false",
    "core.excludesFile": os.devnull,
    "core.fileMode": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.ignoreCase": "false",
    "core.ignoreStat": "false",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.symlinks": "true",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
    "submodule.recurse": "false",
}
ENVIRONMENT: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}
READ_NO_FILES = frozenset(
    {
        "cat-file",
        "config",
        "diff-tree",
        "for-each-ref",
        "ls-tree",
        "merge-base",
        "read-tree",
        "rev-list",
        "rev-parse",
        "symbolic-ref",
        "update-ref",
    }
)
"""Commands that never look at a file of the work tree, so that no filter can be asked."""


CONFIGURATION = (("GIT_DIR", "config"), ("GIT_DIR", "config.worktree"), ("GIT_COMMON_DIR", "config"))
"""The files, by the variable that names their directory, in which filters can be."""


class GitError(PluginFailed):
    """Git could not do what it was asked."""


class Git:
    """Runs git in ``cwd`` through ``execute``. Blocks until it has ended, ten minutes at most.

    Hooks, fsmonitor, filters, pagers, editors, prompts, transports, replacement objects and the user's own configuration
    are switched off, whatever the repository's configuration says; of the caller's environment only ``PATH`` is kept.
    ``env`` comes on top: where the repository lies (``GIT_DIR``, ``GIT_WORK_TREE``), another ``PATH``.
    """

    def __init__(self, execute: Execute, cwd: str, env: Mapping[str, str] | None = None) -> None:
        self.cwd = cwd
        self._execute = execute
        self._env = dict(env or {})
        self._filters: Mapping[str, str] = {}
        self._read: list[object] | None = None

    def within(self, cwd: str | None = None, **env: str | None) -> Git:
        """Return the same with another directory, or with other variables; ``None`` removes one."""
        merged = {name: value for name, value in (self._env | env).items() if value is not None}
        made = Git(self._execute, cwd or self.cwd, merged)
        if not env.keys() & {name for name, _ in CONFIGURATION}:
            made._filters, made._read = self._filters, self._read
        return made

    def run(self, *words: str, stdin: bytes | None = None) -> bytes:
        """Return the standard output. Raises :class:`GitError` for any status but zero."""
        done = self._ask(words, stdin)
        if done.exit_code != 0:
            raise _failed(words, done)
        return done.stdout.head

    def text(self, *words: str) -> str:
        """Return the standard output as text without white space around it."""
        return os.fsdecode(self.run(*words)).strip()

    def answers(self, *words: str) -> bool:
        """Return true for status 0 and false for 1. Raises :class:`GitError` for any other."""
        done = self._ask(words, None)
        if done.exit_code not in (0, 1):
            raise _failed(words, done)
        return done.exit_code == 0

    def find(self, *words: str) -> str:
        """Return the standard output as text, empty where git finds nothing (status 1)."""
        done = self._ask(words, None)
        if done.exit_code not in (0, 1):
            raise _failed(words, done)
        return os.fsdecode(done.stdout.head).strip()

    def _ask(self, words: tuple[str, ...], stdin: bytes | None) -> Completed:
        settings = dict(SETTINGS)
        if words[0] not in READ_NO_FILES:
            settings |= self._without_filters()
        return self._start(words, settings, stdin)

    def _without_filters(self) -> Mapping[str, str]:
        """Return settings that switch off every filter of the repository's configuration, asked again when that has changed."""
        places = [os.path.join(self._env[name], file) for name, file in CONFIGURATION if name in self._env]
        signature = [_status(place) for place in places]
        if not places or signature != self._read:
            self._filters, self._read = self._found_filters(), signature
        return self._filters

    def _found_filters(self) -> Mapping[str, str]:
        asked = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
        done = self._start(asked, SETTINGS, None)
        if done.exit_code not in (0, 1):
            raise _failed(asked, done)
        names = {os.fsdecode(key).rpartition(".")[0] for key in done.stdout.head.split(b"\0") if key}
        off = {"clean": "", "smudge": "", "process": "", "required": "false"}
        return {f"{name}.{key}": value for name in sorted(names) for key, value in off.items()}

    def _start(self, words: tuple[str, ...], settings: Mapping[str, str], stdin: bytes | None) -> Completed:
        env = {"PATH": os.environ.get("PATH", os.defpath), **ENVIRONMENT, **self._env, "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        command = Command(
            argv=["git", *words],
            cwd=self.cwd,
            env=env,
            stdin=stdin,
            timeout=GIT_SECONDS,
            capture=lambda: BoundedOutput(MAX_BYTES),
        )
        done = self._execute(command)
        if done.spawn_error or done.timed_out or done.stdout.truncated:
            raise _failed(words, done)
        return done


def _status(path: str) -> object:
    """Return what differs once a file has been written; a file that reads others in tells nothing, so it is never the same."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            return object() if b"include" in file.read().lower() else (status.st_ino, status.st_size, status.st_ctime_ns)
    except FileNotFoundError:
        return None


def paths(listed: bytes) -> list[str]:
    """Return the names of a NUL-separated list; bytes that are not UTF-8 become surrogates, as ``os.fsdecode`` has it."""
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def printable(path: str) -> str:
    """Return a path as people and JSON can have it: control characters and bytes that are not UTF-8 as escapes."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text)


def check_refs(common: Path) -> None:
    """Raise :class:`GitError` where something lies among the refs that git would wait for, such as a pipe."""
    special = special_below(str(common / "refs"))
    if special:
        raise GitError(f"{printable(special)} is neither a file nor a directory", hint="look who made it, and remove it")


def _failed(words: tuple[str, ...], done: Completed) -> GitError:
    asked = printable(" ".join(("git", *words)))[:SHOWN_CHARACTERS]
    if done.spawn_error:
        return GitError(f"{asked} cannot be started: {done.spawn_error}", hint="install git 2.36 or newer")
    if done.timed_out:
        return GitError(f"{asked} did not end within {GIT_SECONDS:g} s", hint="look for what holds the repository or its disk")
    if done.stdout.truncated:
        return GitError(f"{asked} says more than {MAX_BYTES} bytes", hint="the repository has too many files for a workflow")
    said = done.stderr.text.strip()[-SHOWN_CHARACTERS:] or "no message"
    return GitError(f"{asked} ended with {done.exit_code}: {said}", hint="git says what is wrong; correct it and try again")
