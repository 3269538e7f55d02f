"""From an instance's expectations to those of a case, and to what cannot be taken over."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.interfaces import Unsupported
from evalwright_adapters.lastlight.config import LastlightConfig
from evalwright_adapters.lastlight.github import assertions_of, expects_github
from evalwright_adapters.lastlight.instances import Instance, Tier
from evalwright_adapters.lastlight.markers import marker_answer, marker_patterns, verdicts

__all__ = ["CALLS", "TEST_SECONDS", "Checks", "checks_of", "without_asides"]

TEST_SECONDS = 60
CALLS = "http_calls"
REPORT = ("--test-reporter=tap", "--test-reporter-destination=$EVALWRIGHT_REPORT_FILE")


@dataclass(slots=True, kw_only=True)
class Checks:
    """The expectations of one case, the right answer where it is text, and what was left out.

    ``tested`` says that tests can judge the case, ``hidden`` that its hidden ones are applied.
    """

    name: str
    tested: bool = False
    expect: dict[str, Any] = field(default_factory=dict[str, Any])
    hidden: bool = False
    answer: str | None = None
    refused: list[Unsupported] = field(default_factory=list[Unsupported])


def checks_of(tier: Tier, instance: Instance, config: LastlightConfig) -> Checks:
    """Return how the case is judged. One that nothing else can judge is judged by the agent's exit status alone."""
    checks = Checks(name=instance.instance_id, tested=_is_tested(tier, instance))
    if checks.tested and not config.as_shipped:
        _add_tests(checks, tier, instance, config)
    if expects_github(instance):
        tables, refused = assertions_of(instance)
        checks.refused += refused
        if tables:
            checks.expect[CALLS] = {"github": tables}
    elif instance.expect_github.model_fields_set or instance.triage_gold:
        checks.refused.append(Unsupported(f"{instance.instance_id}: expect_github", "the instance names no repository"))
    if not config.as_shipped:
        _add_markers(checks, instance, config)
    checks.refused += _foreign_keys(instance)
    if not checks.expect or (checks.tested and "tests" not in checks.expect):
        checks.expect["exit_code"] = 0
    return checks


def without_asides(checks: Sequence[Checks]) -> None:
    """Where calls decide some case of a suite, leave them out of those that tests decide: a scorer is required or it is not."""
    calls = [each for each in checks if CALLS in each.expect]
    if all(each.tested for each in calls):
        return
    for each in calls:
        if each.tested:
            del each.expect[CALLS]
            why = "its tests decide, and in a suite in which calls decide other cases they would decide this one too"
            each.refused.append(Unsupported(f"{each.name}: expect_github", why))


def _is_tested(tier: Tier, instance: Instance) -> bool:
    """Tell whether tests can judge the case: hidden ones, named ones, or those of the repository that must be green."""
    hidden = any(True for _ in tier.below("tests", instance.instance_id))
    named = instance.fail_to_pass or instance.pass_to_pass
    return bool(hidden or named or instance.expect_markers.get("fix_gate") == "green")


def _add_tests(checks: Checks, tier: Tier, instance: Instance, config: LastlightConfig) -> None:
    """Have the tests run: named ones where the instance names some, else all that the repository shows."""
    wanted = {"fail_to_pass": instance.fail_to_pass, "pass_to_pass": instance.pass_to_pass}
    names = {key: value for key, value in wanted.items() if value}
    argv = _test_command(tier, instance, config.node)
    if argv is None:
        why = "its package.json has no test script that starts `node --test`, so no report of its tests can be read"
        checks.refused.append(Unsupported(f"{instance.instance_id}: tests", why))
        return
    checks.expect["tests"] = {"argv": argv, "format": "tap", "timeout_seconds": TEST_SECONDS, **names}
    checks.hidden = any(True for _ in tier.below("tests", instance.instance_id))


def _test_command(tier: Tier, instance: Instance, node: str) -> list[str] | None:
    """Return the repository's own test script, writing TAP to the report file; ``None`` when it is not Node's runner."""
    for root in ("repos-head", "repos"):
        content = tier.files.get(f"{root}/{instance.instance_id}/package.json")
        if content is None:
            continue
        try:
            words = shlex.split(json.loads(content)["scripts"]["test"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return [node, *words[1:], *REPORT] if words[:1] == ["node"] and "--test" in words else None
    return None


def _add_markers(checks: Checks, instance: Instance, config: LastlightConfig) -> None:
    """Check the marker lines where nothing better judges the case, and the user wants them."""
    markers = verdicts(instance.expect_markers)
    name = f"{instance.instance_id}: {', '.join(sorted(markers))}"
    if markers and "tests" in checks.expect:
        checks.refused.append(Unsupported(name, "its tests judge what the agent did, whatever it says of it"))
    elif markers and config.markers:
        checks.expect["text_regex"] = marker_patterns(markers)
        checks.answer = None if CALLS in checks.expect else marker_answer(markers)
    elif markers:
        why = "marker lines are a custom of that harness's own agents; --set markers=true asks for them and checks them"
        checks.refused.append(Unsupported(name, why))
    if "fix_outcome" in instance.expect_markers:
        why = "there is no remote to push to; the tests judge the working directory"
        checks.refused.append(Unsupported(f"{instance.instance_id}: fix_outcome", why))


def _foreign_keys(instance: Instance) -> Iterator[Unsupported]:
    for key in sorted(instance.model_extra or {}):
        yield Unsupported(f"{instance.instance_id}: {key}", "this importer does not know the key")
