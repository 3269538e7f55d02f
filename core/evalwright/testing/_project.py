"""A small project on disk: one suite whose tasks are shell scripts, run through the real coordinator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.coordinate import RunOutcome, RunRequest, Selection, Stop, make_plan, run_suite, select_cases
from evalwright.coordinate.inputs import take_inputs, without_gold
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Store
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.store import DirectoryStore, transfer
from evalwright.suite import load_suite

__all__ = ["SCRIPTS", "SmallProject"]

RUNNER: Mapping[str, Any] = {"argv": ["/bin/sh", "$EVALWRIGHT_TASK_FILE"], "timeout_seconds": 20}
SCRIPTS: Mapping[str, tuple[str, str]] = {
    "changes": ("echo new > added; printf done", "done"),
    "fails": ("printf partly; exit 3", "partly"),
    "passes": ("printf right", "right"),
    "unicode": (r"printf '\303\251\360\237\232\200'", "\u00e9\U0001f680"),
    "wrong": ("printf wrong", "right"),
}
"""Script and expected answer of each case: what a run must tell apart."""


class SmallProject:
    """Runs a suite called ``demo`` below ``place``. ``warnings`` lists codes and messages of the last run.

    ``scripts`` gives each case's task, which the default runner runs by ``/bin/sh``, and its expected answer.
    """

    def __init__(
        self,
        place: Path,
        scripts: Mapping[str, tuple[str, str]] = SCRIPTS,
        *,
        runner: Mapping[str, Any] = RUNNER,
        scorers: Sequence[Mapping[str, Any]] = ({"use": "exact"},),
        **document: Any,
    ) -> None:
        self.layout = Layout(place / "evals", place / "evals" / "runs")
        self.suite = self.layout.suites / "demo"
        self.place = place
        self.warnings: list[tuple[str, str]] = []
        (self.suite / "fixtures" / "w").mkdir(parents=True)
        (self.suite / "fixtures" / "w" / "a.txt").write_text("a\n")
        whole = {"schema_version": 2, "name": "demo", "runner": dict(runner), "scorers": [dict(item) for item in scorers]}
        (self.suite / "suite.json").write_text(json.dumps(whole | document))
        cases = [
            {"id": case_id, "task": script, "workspace": "fixtures/w", "expect": {"exact": answer}}
            for case_id, (script, answer) in scripts.items()
        ]
        (self.suite / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))

    def run(self, *, queue: str | None = None, sandbox: str | None = None, run_id: str = "run", jobs: int = 4) -> RunOutcome:
        """Run the suite in this process. ``queue`` and ``sandbox`` are references; raises what the coordinator raises."""
        self.warnings.clear()
        request = RunRequest(
            checked=load_suite(self.suite),
            layout=self.layout,
            settings=self._settings(queue=queue, sandbox=sandbox, jobs=jobs),
            run_id=run_id,
        )
        return run_suite(
            request,
            stop=Stop(),
            observers=lambda complain: Observers((), complain),
            warn=lambda code, message: self.warnings.append((code, message)),
        )

    def jobs(self, *, run_id: str = "direct", remote: Store | None = None) -> list[Job]:
        """Return one job per case, as the engine would submit them.

        Bundles go below ``place``; with a ``remote`` store, which gets all inputs, they come back through it.
        """
        checked = load_suite(self.suite)
        cases = select_cases(checked.suite, Selection())
        plan = make_plan(checked, cases, self._settings())
        store = DirectoryStore(self.layout.store.resolve())
        inputs = take_inputs(checked.suite, cases, store, self.layout)
        places = {"store": str(store.root), "suite_directory": str(self.suite.resolve())}
        if remote is not None:
            places = {"suite_tree": store.put_tree(self.suite, skip=without_gold(checked.suite))}
            for tree in (places["suite_tree"], inputs.gold, *inputs.fixtures.values()):
                transfer(tree, store, remote)
            for digest in inputs.seeds.values():
                with store.open(digest) as file:
                    remote.put(digest, file)
        return [
            Job(
                key=f"{run_id}/{case.id}/1",
                spec=plan.spec(case, 1, run_id=run_id, inputs=inputs, **places).to_bytes(),
                bundle=None if remote else self.place / "bundles" / run_id / case.id,
            )
            for case in cases
        ]

    def _settings(self, **fields: Any) -> Settings:
        return Settings(evals=self.layout.evals, **fields)
