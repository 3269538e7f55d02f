"""Assertions about the final state of a fake GitHub, as the service ``github`` records it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from evalwright.errors import TrialError
from evalwright_scorers.patterns import ValidPattern, found

__all__ = ["GITHUB_CHECKS", "PullWanted", "ReviewWanted", "Seen"]

SHOWN_CHARACTERS = 200
Finding = dict[str, Any]
Item = Mapping[str, Any]


class PullWanted(BaseModel, extra="forbid", frozen=True, strict=True):
    """A pull request that the agent opens; what is left out may be anything."""

    base: str | None = None
    head: str | None = None
    title_matches: ValidPattern | None = None
    body_matches: ValidPattern | None = None


class ReviewWanted(BaseModel, extra="forbid", frozen=True, strict=True):
    """A review that the agent submits."""

    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"] | None = None
    body_matches: ValidPattern | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a state that is asked about: the issues and pull requests, and the events of the agent on them."""

    items: Sequence[Item]
    events: Sequence[Item]

    @staticmethod
    def of(state: Mapping[str, Any], repository: str | None, number: int | None) -> Seen:
        """Return what concerns one repository and one number, or all. Raises ``TrialError`` for a state of another service."""
        repositories: Mapping[str, Any] | None = state.get("repositories")
        if repositories is None:
            raise TrialError("http_calls_service", "only the service github has issues and pull requests to ask about")
        items = [
            item
            for name, held in repositories.items()
            if repository is None or name.lower() == repository.lower()
            for item in (*held["issues"].values(), *held["pulls"].values())
            if number in (None, item["number"])
        ]
        events = [
            event
            for event in state.get("events", [])
            if (repository is None or event["repository"].lower() == repository.lower()) and number in (None, event["number"])
        ]
        return Seen(items, events)

    def of_kind(self, event: str) -> list[Item]:
        """Return the events of one kind."""
        return [each for each in self.events if each["event"] == event]

    @property
    def labels(self) -> list[str]:
        """Return the labels that are there at the end."""
        return sorted({label for item in self.items for label in item["labels"]})

    @property
    def comments(self) -> list[str]:
        """Return what the agent has written, as it stands at the end."""
        written = {event["comment"] for event in self.of_kind("commented")}
        return [comment["body"] for item in self.items for comment in item["comments"] if comment["id"] in written]


def _labels_added(seen: Seen, wanted: Sequence[str]) -> Iterator[Finding]:
    added = {event["label"].lower() for event in seen.of_kind("labeled")}
    held = {label.lower() for label in seen.labels}
    for label in wanted:
        if label.lower() not in added & held:
            why = "label was there before" if label.lower() in held else "label was not added"
            yield {"why": why, "value": label, "labels": seen.labels}


def _labels_absent(seen: Seen, unwanted: Sequence[str]) -> Iterator[Finding]:
    held = {label.lower() for label in seen.labels}
    for label in unwanted:
        if label.lower() in held:
            yield {"why": "label should not be there", "value": label, "labels": seen.labels}


def _comment_matches(seen: Seen, pattern: str) -> Iterator[Finding]:
    if not any(found(f"(?i){pattern}", body) for body in seen.comments):
        yield {"why": "no comment matches", "value": pattern, "comments": _short(seen.comments)}


def _comment_contains(seen: Seen, text: str) -> Iterator[Finding]:
    if not any(text in body for body in seen.comments):
        yield {"why": "no comment contains", "value": text, "comments": _short(seen.comments)}


def _comment_absent(seen: Seen, unwanted: bool | str) -> Iterator[Finding]:
    if unwanted is False:
        return
    for body in seen.comments:
        if unwanted is True or found(f"(?i){unwanted}", body):
            yield {"why": "comment should not be there", "value": body[:SHOWN_CHARACTERS]}


def _issue_closed(seen: Seen, wanted: bool) -> Iterator[Finding]:
    states = {str(item["number"]): item["state"] for item in seen.items}
    closed = {event["number"] for event in seen.of_kind("closed")}
    ended = [item["number"] for item in seen.items if item["state"] == "closed" and item["number"] in closed]
    if bool(ended) != wanted:
        yield {"why": "issue was not closed" if wanted else "issue was closed", "states": states}


def _pr_merged(seen: Seen, wanted: bool) -> Iterator[Finding]:
    merged = [event["number"] for event in seen.of_kind("merged")]
    if bool(merged) != wanted:
        yield {"why": "pull request was not merged" if wanted else "pull request was merged", "merged": merged}


def _auto_merge_enabled(seen: Seen, wanted: bool) -> Iterator[Finding]:
    on = [item["number"] for item in seen.items if item.get("auto_merge")]
    if bool(on) != wanted:
        yield {"why": "auto-merge was not enabled" if wanted else "auto-merge was enabled", "auto_merge": on}


def _pr_opened(seen: Seen, wanted: bool | PullWanted) -> Iterator[Finding]:
    numbers = {event["number"] for event in seen.of_kind("pull_opened")}
    opened = [item for item in seen.items if item["number"] in numbers]
    shown = [f"{item['head']} -> {item['base']}: {item['title']}"[:SHOWN_CHARACTERS] for item in opened]
    if isinstance(wanted, bool):
        if bool(opened) != wanted:
            yield {"why": "no pull request was opened" if wanted else "a pull request was opened", "opened": shown}
    elif not any(_pull_fits(item, wanted) for item in opened):
        yield {"why": "no such pull request was opened", "value": wanted.model_dump(exclude_none=True), "opened": shown}


def _review(seen: Seen, wanted: ReviewWanted) -> Iterator[Finding]:
    submitted = seen.of_kind("reviewed")
    for event in submitted:
        verdict = wanted.event in (None, event["verdict"])
        if verdict and (wanted.body_matches is None or found(f"(?i){wanted.body_matches}", event["body"])):
            return
    shown = [f"{event['verdict']}: {event['body']}"[:SHOWN_CHARACTERS] for event in submitted]
    yield {"why": "no such review was submitted", "value": wanted.model_dump(exclude_none=True), "reviews": shown}


def _pull_fits(item: Item, wanted: PullWanted) -> bool:
    return (
        wanted.base in (None, item["base"])
        and wanted.head in (None, item["head"])
        and (wanted.title_matches is None or found(f"(?i){wanted.title_matches}", item["title"]))
        and (wanted.body_matches is None or found(f"(?i){wanted.body_matches}", item["body"] or ""))
    )


def _short(texts: Sequence[str]) -> list[str]:
    return [text[:SHOWN_CHARACTERS] for text in texts]


GITHUB_CHECKS: Mapping[str, Callable[[Seen, Any], Iterator[Finding]]] = MappingProxyType(
    {
        "labels_added": _labels_added,
        "labels_absent": _labels_absent,
        "comment_matches": _comment_matches,
        "comment_contains": _comment_contains,
        "comment_absent": _comment_absent,
        "issue_closed": _issue_closed,
        "pr_opened": _pr_opened,
        "pr_merged": _pr_merged,
        "auto_merge_enabled": _auto_merge_enabled,
        "review": _review,
    }
)
"""What finds objections to the state, by the key of the assertion."""
