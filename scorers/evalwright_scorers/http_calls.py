"""The scorer ``http-calls``: what an agent did to the services of its trial, judged by their calls and final state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, RootModel

from evalwright.errors import TrialError
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial, ServiceRecord
from evalwright_scorers.expectation import expected
from evalwright_scorers.github_state import GITHUB_CHECKS, PullWanted, ReviewWanted, Seen
from evalwright_scorers.patterns import ValidPattern
from evalwright_scorers.recorded_calls import CallPattern, CountedCall, calls_findings, includes, is_object

__all__ = ["Assertions", "HttpCalls", "HttpCallsConfig"]

PASSIVE = frozenset({"labels_absent", "comment_absent", "no_calls"})
Finding = dict[str, Any]


class Assertions(BaseModel, extra="forbid", frozen=True, strict=True):
    """What must hold of one service.

    ``calls``, ``no_calls``, ``order`` and ``state`` are about any service; the others about the service ``github``, on the
    issue or pull request ``number`` of ``repository``, or on all of them.
    """

    calls: list[CountedCall] = []
    no_calls: list[CallPattern] = []
    order: list[CallPattern] = []
    state: dict[str, Any] | None = None
    repository: str | None = None
    number: int | None = None
    labels_added: Annotated[list[str], Field(min_length=1)] | None = None
    labels_absent: Annotated[list[str], Field(min_length=1)] | None = None
    comment_matches: ValidPattern | None = None
    comment_contains: Annotated[str, Field(min_length=1)] | None = None
    comment_absent: bool | ValidPattern | None = None
    issue_closed: bool | None = None
    pr_opened: bool | PullWanted | None = None
    pr_merged: bool | None = None
    auto_merge_enabled: bool | None = None
    review: ReviewWanted | None = None

    def findings(self, record: ServiceRecord) -> Iterator[Finding]:
        """Yield everything that does not hold, with what was seen instead."""
        yield from calls_findings(record, self.calls, self.no_calls, self.order)
        if self.state is not None and not includes(record.state, self.state):
            yield {"why": "state is another", "value": self.state, "differing": _differing(record.state, self.state)}
        asked = {key: getattr(self, key) for key in GITHUB_CHECKS if getattr(self, key) is not None}
        seen = Seen.of(record.state, self.repository, self.number) if asked else None
        for key, wanted in asked.items():
            if seen is not None:
                yield from ({"assertion": key, **finding} for finding in GITHUB_CHECKS[key](seen, wanted))

    @property
    def needs_action(self) -> bool:
        """Tell whether an agent that does nothing fails; a wanted state may be the one from the start, so it proves little."""
        if any(pattern.bounds[0] > 0 for pattern in self.calls) or self.order:
            return True
        wanted = (getattr(self, key) for key in GITHUB_CHECKS if key not in PASSIVE)
        return any(value is not None and value is not False for value in wanted)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, (dict, Assertions)) else value


OneOrMore = Annotated[list[Assertions], BeforeValidator(_as_list), Field(min_length=1)]


class ByService(RootModel[dict[str, OneOrMore]], strict=True, frozen=True):
    """Assertions by the name of the service in the suite: one table, or a list of them."""


class HttpCallsConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The assertions of every case that has none of its own."""

    http_calls: ByService | None = None


class HttpCalls(Scorer[HttpCallsConfig]):
    """Passes when every assertion holds."""

    api = "scorer/1.0"
    Config = HttpCallsConfig
    Expect = MappingProxyType({"http_calls": ByService})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether anything is asserted."""
        return bool(self.services(expect))

    def services(self, expect: Mapping[str, Any]) -> Collection[str]:
        """Return the names of the services that are asserted on."""
        given = expected(expect, "http_calls", self.config)
        held = given.root if isinstance(given, ByService) else given
        return list(held) if is_object(held) else []

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List what does not hold, service by service. Raises ``TrialError`` for a service that the trial did not have."""
        found: list[Finding] = []
        for name, tables in self._assertions(trial.expect).items():
            record = trial.services.get(name)
            if record is None:
                known = ", ".join(trial.services) or "none"
                raise TrialError("http_calls_service", f'the trial had no service "{name}"; it had: {known}')
            found += [{"service": name, **finding} for table in tables for finding in table.findings(record)]
        return Score.decided(tuple(found))

    def weakness(self, expect: Mapping[str, Any]) -> str | None:
        """Say so when an agent that does nothing satisfies everything."""
        tables = [table for tables in self._assertions(expect).values() for table in tables]
        if not tables or any(table.needs_action for table in tables):
            return None
        return "an agent that calls nothing satisfies every assertion; add one about something that must be done"

    def _assertions(self, expect: Mapping[str, Any]) -> dict[str, list[Assertions]]:
        given = expected(expect, "http_calls", self.config)
        return {} if given is None else given.root if isinstance(given, ByService) else ByService.model_validate(given).root


def _differing(actual: Any, wanted: Mapping[str, Any], at: str = "") -> list[str]:
    """Return the places in which a state does not hold what is wanted."""
    places: list[str] = []
    for key, item in wanted.items():
        held: Any = actual.get(key) if is_object(actual) else None
        if is_object(item) and is_object(held):
            places += _differing(held, item, f"{at}/{key}")
        elif not includes(held, item):
            places.append(f"{at}/{key}")
    return places
