"""Drive workflows on a repository: start, decide, look, verify."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

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
    "import": "records",
    "doctor": "upkeep",
    "preflight": "upkeep",
    "gc": "upkeep",
}
"""The module that carries out each action, by a function of that name."""


class WorkVerb(PluginVerb):
    """``work ACTION [RUN]``; without a run the only one that has not ended is meant."""

    args = ("|".join(ACTIONS), "TARGET?", "VALUE?", "MORE?")
    flags = (
        VerbFlag(name="--config", help="start, preflight: the run's configuration", metavar="FILE"),
        VerbFlag(name="--repo", help="a directory of the repository, instead of the present one", metavar="PATH"),
        VerbFlag(name="--run-id", help="start: the run's id, instead of the work's next one", metavar="ID"),
        VerbFlag(name="--by", help="who decides, instead of the user of this process", metavar="NAME"),
        VerbFlag(name="--reason", help="approve, reject, stop, findings: why", metavar="TEXT"),
        VerbFlag(name="--no-wait", kind="flag", help="approve, adopt: only record it, do not drive the run on"),
        VerbFlag(name="--watch", kind="flag", help="status: show it anew until the run ends or waits"),
        VerbFlag(name="--follow", kind="flag", help="events: show new ones until the run ends or waits"),
        VerbFlag(name="--work", help="inbox, metrics: runs of this work only", metavar="WORK"),
        VerbFlag(name="--yes", kind="flag", help="gc: remove, instead of saying what would be removed"),
    )
    exit_codes = (0, 1, 3, 4, 5, 10, 20, 30, 130)
    meanings: ClassVar[Mapping[int, str]] = {
        10: "a run waits for a human",
        20: "a run has failed",
        30: "a run waits because its environment failed",
    }
    mutates = True

    def answer(self, options: Any, warn: Callable[[str, str], None]) -> VerbAnswer:
        """Carry out one action."""
        module = importlib.import_module(f"{PACKAGE}.{ACTIONS[options.action]}")
        name = "import_run" if options.action == "import" else options.action
        action: Callable[[Any, Callable[[str, str], None]], VerbAnswer] = getattr(module, name)
        return action(options, warn)
