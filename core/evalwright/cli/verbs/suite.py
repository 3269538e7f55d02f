"""``suite add``: create a suite."""

from __future__ import annotations

import shlex
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.errors import UsageError
from evalwright.rundir import check_id
from evalwright.suite import add_suite

__all__ = ["answer", "split_words"]


def answer(session: Session) -> Reply:
    """Create the suite, or find that it exists already."""
    options = session.options
    name = check_id(options.name, "suite name")
    layout = open_project(session).layout
    data = add_suite(layout.suites, name, _runner(options), native=options.native)
    verb = "Created" if data["created"] else "Exists already:"
    return Reply(data=data, text=f"{verb} suite {name}\n").then(
        f'evalwright case add {name} --task "..." --workspace fixtures/NAME --json', "add a case"
    )


def split_words(text: str, flag: str) -> list[str]:
    """Split as a shell splits words. Raises ``UsageError`` for an open quote or no word at all."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}", hint="close the quotes") from error
    if not words:
        raise UsageError(f"{flag} holds no word", hint=f'{flag} "python3 agent.py"')
    return words


def _runner(options: Any) -> dict[str, Any]:
    argv, command, shell = options.runner_argv, options.runner_command, options.shell
    if (argv is None) == (command is None):
        raise UsageError("give --runner-argv, or --runner-command with --shell", hint='--runner-argv "python3 agent.py"')
    if argv is not None and shell:
        raise UsageError("--shell goes with --runner-command", hint="drop --shell")
    if command is not None and not shell:
        raise UsageError("--runner-command needs --shell", hint="add --shell, or use --runner-argv")
    runner: dict[str, Any] = {
        "argv": split_words(argv, "--runner-argv") if argv is not None else None,
        "shell": shell,
        "command": command,
        "cwd": None,
        "timeout_seconds": 30,
        "max_output_bytes": 1048576,
        "env_allowlist": ["PATH", "HOME"],
        "redact_env_values": [],
        "redact_patterns": [],
    }
    return runner
