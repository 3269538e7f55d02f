"""Drive workflows on a repository: start, decide, look, verify."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from evalwright.errors import UsageError
from evalwright.interfaces import PluginVerb, VerbAnswer, VerbFlag

__all__ = ["ACTIONS", "WorkVerb"]

PACKAGE = "evalwright_plugins.workflow.commands"
ACTIONS: Mapping[str, str] = {
    "start": "driving",
    "resume": "driving",
    "approve": "deciding",
    "reject": "deciding",
    "adopt": "deciding",
    "stop": "deciding",
    "findings": "findings",
    "status": "looking",
    "inbox": "looking",
    "events": "looking",
    "metrics": "looking",
    "replay": "records",
    "verify": "records",
    "import": "importing",
    "doctor": "upkeep",
    "preflight": "preflight",
    "gc": "upkeep",
}
"""The module that carries out each action, by a function of that name."""

DECIDES = (1, ("by", "reason", "no_wait", "request"))
TAKES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "start": (1, ("config", "run_id", "by")),
    "resume": (1, ("by",)),
    "approve": DECIDES,
    "reject": DECIDES,
    "adopt": (2, DECIDES[1]),
    "stop": (1, ("by", "reason", "no_wait")),
    "findings": (3, ("by", "reason")),
    "status": (1, ("watch",)),
    "inbox": (0, ("work",)),
    "events": (1, ("follow",)),
    "metrics": (1, ("work",)),
    "replay": (1, ()),
    "verify": (1, ()),
    "import": (1, ("run_id",)),
    "doctor": (0, ()),
    "preflight": (0, ("config",)),
    "gc": (0, ("yes",)),
}
"""How many words each action takes, and which flags beside ``--repo``: what it would pass over is refused."""


class WorkVerb(PluginVerb):
    """``work ACTION [RUN]``; without a run the only one that has not ended is meant."""

    args = ("|".join(ACTIONS), "TARGET?", "VALUE?", "MORE?")
    actions: ClassVar[Mapping[str, str]] = {
        "start --config FILE": "make a run and drive it until it ends or waits",
        "resume [RUN]": "drive a run on",
        "approve [RUN]": "say yes to what it waits for, and drive it on",
        "reject [RUN]": "say no, which ends it as failed",
        "adopt RUN COMMIT": "put a commit in the candidate's place, and drive it on",
        "stop [RUN]": "end it as cancelled, with the step that is under way",
        "findings list [RUN]": "what reviewers have found",
        "findings adjudicate RUN FINGERPRINT=DECISION": "dismissed, accepted or reopened",
        "status [RUN]": "how a run stands, or all of them; --watch looks on",
        "inbox": "every open request, with the commands that answer it",
        "events [RUN]": "what happened, one line an event; --follow looks on",
        "metrics [RUN]": "attempts, findings, waits, time, tokens, cost; of all runs in total",
        "replay RUN|FILE": "the state that a ledger adds up to",
        "verify RUN|FILE": "whether a ledger and the evidence that it names are as they were written",
        "import DIR": "copy the directory of a foreign run here, to be read only",
        "doctor": "what works here, and what is left of dead processes",
        "preflight --config FILE": "everything that start checks, and more, without starting",
        "gc": "what can be removed of ended runs; --yes removes it",
    }
    flags = (
        VerbFlag(name="--config", help="start, preflight: the run's configuration", metavar="FILE"),
        VerbFlag(name="--repo", help="a directory of the repository, instead of the present one", metavar="PATH"),
        VerbFlag(name="--run-id", help="start, import: the run's id, instead of the work's next one or its own", metavar="ID"),
        VerbFlag(name="--by", help="who decides, instead of the user of this process", metavar="NAME"),
        VerbFlag(name="--reason", help="approve, reject, stop, findings: why", metavar="TEXT"),
        VerbFlag(name="--request", help="approve, reject, adopt: the request that it answers, and no later one", metavar="SEQ"),
        VerbFlag(name="--no-wait", kind="flag", help="approve, adopt: only record it, do not drive the run on"),
        VerbFlag(name="--watch", kind="flag", help="status: show it anew until the run ends or waits"),
        VerbFlag(name="--follow", kind="flag", help="events: show new ones until the run ends or waits"),
        VerbFlag(name="--work", help="inbox, metrics: runs of this work only", metavar="WORK"),
        VerbFlag(name="--yes", kind="flag", help="gc: remove, instead of saying what would be removed"),
    )
    exit_codes = (0, 1, 3, 4, 5, 10, 20, 30, 130)
    meanings: ClassVar[Mapping[int, str]] = {
        10: "a run waits for a human, or is under way",
        20: "a run has failed, or was cancelled or superseded",
        30: "a run waits because its environment failed",
    }
    mutates = True

    def answer(self, options: Any, warn: Callable[[str, str], None]) -> VerbAnswer:
        """Carry out one action."""
        _refuse_unused(options)
        module = importlib.import_module(f"{PACKAGE}.{ACTIONS[options.action]}")
        name = "import_run" if options.action == "import" else options.action
        action: Callable[[Any, Callable[[str, str], None]], VerbAnswer] = getattr(module, name)
        return action(options, warn)


def _refuse_unused(options: Any) -> None:
    """Raise ``UsageError`` for a word or a flag that the action would pass over."""
    words, flags = TAKES[options.action]
    given = [word for word in (options.target, options.value, options.more) if word is not None]
    unused = [repr(word) for word in given[words:]]
    names = [flag.name for flag in WorkVerb.flags if flag.name != "--repo"]
    unused += [name for name in names if (key := name[2:].replace("-", "_")) not in flags and getattr(options, key)]
    if unused:
        raise UsageError(f"work {options.action} takes no {unused[0]}", hint="see: evalwright work --help")
