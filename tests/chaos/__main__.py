"""The long chaos: ``python -m tests.chaos --minutes 10`` kills runs and experiments under every queue until time is over."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.experiments import at_random_times, chaotic_experiment
from tests.chaos.harness import QUEUES, Chaos, Strike, Target, at_each_event, at_event, at_random, targets

LONGEST_CASCADE = 8


def main() -> int:
    """Make rounds until the time is over; return 1 when there was a violation. Directories of those rounds are kept."""
    options = _options()
    base = Path(tempfile.mkdtemp(prefix="chaos-"))
    chaos = Chaos(base)
    rounds = kills = violations = 0
    give_up = time.monotonic() + options.minutes * 60
    whole = {queue: chaotic_experiment(chaos, f"whole-{queue}", [], queue=queue) for queue in options.queue or _installed()}
    plans = {queue: _plans(chaos, queue, options.seed) for queue in options.queue or _installed()}
    for queue in itertools.cycle(plans):
        if time.monotonic() > give_up:
            break
        name, seed, strikes = next(plans[queue])
        report = chaos.round(queue, strikes, seed=seed)
        rounds, kills, violations = rounds + 1, kills + report.kills, violations + len(report.violations)
        missed = f", {len(report.missed)} missed" if report.missed else ""
        said = (
            f"{report.calls} calls, {report.kills} kills{missed}, {report.seconds:.1f} s, {len(report.violations)} violations"
        )
        print(f"{rounds:4} {queue:<9} {name:<32} {said}", flush=True)
        for violation in report.violations:
            print(f"     {violation}\n     plan: {', '.join(map(str, strikes))}\n     kept: {report.place.root}", flush=True)
        kills_of_calls = at_random_times(options.seed + rounds, whole[queue].seconds)
        told = chaotic_experiment(chaos, f"experiment-{rounds}", kills_of_calls, queue=queue, reference=whole[queue])
        kills, violations = kills + told.kills, violations + len(told.violations)
        print(f"     {queue:<9} experiment, seed {options.seed + rounds}: {told.calls} calls, {told.kills} kills", flush=True)
        for violation in told.violations:
            print(
                f"     {violation}\n     plan: {', '.join(map(str, kills_of_calls))}\n     kept: {told.place.root}", flush=True
            )
    if not violations:
        shutil.rmtree(base)
    print(f"{rounds} rounds, {kills} kills, {violations} violations")
    return 1 if violations else 0


def _plans(chaos: Chaos, queue: str, seed: int) -> Iterator[tuple[str, int, list[Strike]]]:
    """Yield plans for ever: each event boundary in its turn, whoever dies there, between random ones and cascades."""
    _, seconds = chaos.reference(queue)
    boundaries = chaos.events(queue)
    for number in itertools.count():
        lines = number % boundaries + 1
        target = targets(queue)[number % len(targets(queue))]
        yield f"harness at event {lines}", number, at_event(lines)
        yield f"random seed {seed + number}", seed + number, at_random(seed + number, queue, seconds)
        if target is not Target.HARNESS:
            yield f"{target} at event {lines}", number, at_event(lines, target)
        else:
            step = number % 5 + 3
            yield f"cascade at each {step} events", number, at_each_event(step, LONGEST_CASCADE)


def _installed() -> list[str]:
    return [queue for queue in QUEUES if queue != "spoolctl" or importlib.util.find_spec("spoolctl")]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="the first seed of the random plans")
    parser.add_argument("--queue", choices=sorted(QUEUES), action="append", help="only this queue; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
