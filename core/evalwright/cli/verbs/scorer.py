"""``scorer add``: add a scorer to a suite."""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.cli.verbs.suite import split_words
from evalwright.errors import UsageError
from evalwright.suite import add_scorer, find_suite

__all__ = ["answer"]

COMMAND_FLAGS = ("argv", "command", "timeout", "shell")


def answer(session: Session) -> Reply:
    """Add the scorer, or find that it exists already."""
    options = session.options
    directory, _ = find_suite(options.suite, open_project(session).layout.suites)
    data = add_scorer(directory, _entry(options))
    verb = "Added" if data["created"] else "Exists already:"
    return Reply(data=data, text=f"{verb} scorer {data['id'] or data['scorer']}\n").then(
        f"evalwright validate {data['suite']} --json", "check the suite"
    )


def _entry(options: Any) -> dict[str, Any]:
    if not options.name:
        raise UsageError("scorer add needs --name", hint="--name exact")
    if options.required and options.advisory:
        raise UsageError("--required and --advisory exclude each other", hint="choose one")
    entry: dict[str, Any] = {"name": options.name, "required": not options.advisory}
    if options.id is not None:
        entry["id"] = options.id
    if options.name == "command":
        return entry | _command(options)
    given = [name for name in COMMAND_FLAGS if getattr(options, name)]
    if given:
        raise UsageError(f"--{given[0]} is for command scorers", hint="use --name command for an external scorer")
    return entry


def _command(options: Any) -> dict[str, Any]:
    if options.id is None:
        raise UsageError("a command scorer needs --id", hint="--id my-judge")
    if (options.argv is None) == (options.command is None):
        raise UsageError("give --argv, or --command with --shell", hint='--argv "python3 judge.py"')
    if options.argv is not None and options.shell:
        raise UsageError("--shell goes with --command", hint="drop --shell")
    if options.command is not None and not options.shell:
        raise UsageError("--command needs --shell", hint="add --shell, or use --argv")
    words = {"argv": split_words(options.argv, "--argv")} if options.argv is not None else {"command": options.command}
    timeout = {} if options.timeout is None else {"timeout_seconds": options.timeout}
    return {"shell": options.shell, **words, **timeout}
