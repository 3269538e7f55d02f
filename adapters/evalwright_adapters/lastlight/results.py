"""From scorecards to an experiment: models are its arms, scorecards of the same model its repeats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalwright.errors import UsageError
from evalwright.interfaces import Host, Imported, ImportedCase, ImportedRun, ImportedSummary
from evalwright_adapters.lastlight.leaderboard import Leaderboard, placed
from evalwright_adapters.lastlight.predictions import read_predictions
from evalwright_adapters.lastlight.recorded_suite import recorded_case, recorded_suite
from evalwright_adapters.lastlight.scorecard import Card, Result, read_card
from evalwright_adapters.lastlight.source import Results
from evalwright_adapters.lastlight.summary import summary_of
from evalwright_adapters.lastlight.trials import ReadTrial, read_trial

__all__ = ["ReadRun", "experiment_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """All trials of one model in one scorecard."""

    card: Card
    model: str
    repeat: int
    trials: Sequence[ReadTrial]

    @property
    def arm(self) -> str:
        """Return the model's name as that of an arm."""
        return arm_name(self.model)


def experiment_of(source: Results, leaderboard: Leaderboard | None, host: Host) -> Iterator[Imported]:
    """Describe the experiment of one or more scorecards."""
    cards = sorted((read_card(path) for path in source.scorecards), key=lambda card: card.run_id)
    runs = list(_runs(cards, host))
    if not runs:
        raise UsageError(f"{source.place} holds no result", hint="Import a scorecard with results.", file=str(source.place))
    tiers = sorted({trial.result.tier or "results" for run in runs for trial in run.trials})
    name = f"lastlight-{tiers[0]}" if len(tiers) == 1 else "lastlight"
    yield recorded_suite(name, f"Last Light, results of {', '.join(tiers)}", _scorers(runs))
    yield from _cases(runs)
    experiment = f"{name}-{cards[0].run_id}" if len(cards) == 1 else f"{name}-{source.place.resolve().name}"
    for run in runs:
        yield _run(experiment, run)
        for trial in run.trials:
            yield trial.trial
            yield from trial.refused
    yield ImportedSummary(summary_of([(run.card, run.arm, run.repeat, run.trials) for run in runs]))
    yield from placed(leaderboard, {run.arm: run.trials for run in runs if run.repeat == 1})


def arm_name(model: str) -> str:
    """Return a name as an id: what may not stand in one becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", model).strip("-.") or "model"


def _runs(cards: Sequence[Card], host: Host) -> Iterator[ReadRun]:
    repeats: Counter[str] = Counter()
    for card in cards:
        patches = read_predictions(card.directory) if (card.directory / "predictions.jsonl").is_file() else {}
        for model in dict.fromkeys(result.model for result in card.results):
            mine = [result for result in card.results if result.model == model]
            _check_unique(card, mine)
            repeats[model] += 1
            trials = [read_trial(card, result, patches.get(result.instance_id), host) for result in mine]
            yield ReadRun(card=card, model=model, repeat=repeats[model], trials=trials)


def _check_unique(card: Card, results: Sequence[Result]) -> None:
    twice = [name for name, count in Counter(result.instance_id for result in results).items() if count > 1]
    if twice:
        message = f"{card.directory / 'scorecard.json'} holds two results of {twice[0]} for {results[0].model}"
        raise UsageError(message, hint="Give one scorecard for each repeat, each in its own directory.")


def _scorers(runs: Sequence[ReadRun]) -> list[str]:
    return sorted({score.scorer for run in runs for trial in run.trials for score in trial.trial.scores})


def _cases(runs: Sequence[ReadRun]) -> Iterator[ImportedCase]:
    known: Mapping[str, str] = {trial.result.instance_id: trial.result.tier for run in runs for trial in run.trials}
    for case_id, tier in sorted(known.items()):
        task = f"The instance {case_id} of Last Light. The results do not hold its task.\n"
        yield recorded_case(case_id, task, tags=[tier] if tier else [])


def _run(experiment: str, run: ReadRun) -> ImportedRun:
    return ImportedRun(
        experiment=arm_name(experiment),
        arm=run.arm,
        repeat=run.repeat,
        created=run.card.created,
        evidence="full" if all(trial.whole for trial in run.trials) else "scores-only",
        source=run.card.run_id,
        settings={"harness": "lastlight", "model": run.model},
    )
