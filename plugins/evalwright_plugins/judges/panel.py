"""The judge that asks several others and takes what most of them say."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest
from evalwright.model import Usage
from evalwright_plugins.judges._json import is_object

__all__ = ["PanelConfig", "PanelJudge"]

Outcome = JudgeReply | JudgeError


class PanelConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """Names of the suite's judges; ``quorum`` of them must answer, by default more than half."""

    members: Annotated[list[str], Field(min_length=2, max_length=20)]
    quorum: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if len(set(self.members)) != len(self.members):
            raise ValueError("members names a judge twice")
        if self.quorum is not None and self.quorum > len(self.members):
            raise ValueError(f"quorum {self.quorum} is more than the {len(self.members)} members")
        return self


class PanelJudge(Judge[PanelConfig]):
    """Asks all members at once. What more than half of those who answered say is the verdict; of verdicts that are only a
    score, the median is. The reply's details hold every vote and whether all agreed.
    """

    api = "judge/1.0"
    Config = PanelConfig

    def __init__(self, config: PanelConfig, host: Host) -> None:
        super().__init__(config, host)
        self._members: list[Judge[Any]] = [host.create(reference) for reference in self.uses()]

    def uses(self) -> Sequence[str]:
        """Name the members."""
        return [f"judges.{name}" for name in self.config.members]

    def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
        """Return what every member sends."""
        return {"panel": [dict(member.sent(request)) for member in self._members], "quorum": self._quorum}

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Return the majority's verdict.

        Raises ``JudgeUnavailable`` when too few answered because they could not be reached, ``JudgeRefused`` when too many
        declined, ``JudgeUnreadable`` when too few gave a verdict or no verdict has a majority.
        """
        with ThreadPoolExecutor(len(self._members)) as pool:
            asked = [pool.submit(_asked, member, request, deadline) for member in self._members]
            outcomes = [future.result() for future in asked]
        replies = [outcome for outcome in outcomes if isinstance(outcome, JudgeReply)]
        if len(replies) < self._quorum:
            error = self._short(outcomes, len(replies))
            error.cost = _cost(outcomes)
            raise error
        said = [_said(reply, request) for reply in replies]
        try:
            text, verdict = self._decided(replies, said, request)
        except JudgeUnreadable as error:
            error.cost = _cost(outcomes)
            raise
        return JudgeReply(
            text=text,
            verdict=verdict,
            model=", ".join(sorted({reply.model for reply in replies if reply.model})) or None,
            finish="stop",
            usage=_usage(replies),
            cost=_cost(outcomes),
            details={"votes": self._votes(outcomes, request), "agreed": len(set(map(_key, said))) == 1},
        )

    @property
    def _quorum(self) -> int:
        return self.config.quorum or len(self._members) // 2 + 1

    def _decided(self, replies: list[JudgeReply], said: list[Any], request: JudgeRequest) -> tuple[str, Any]:
        scores = [_only_score(value) for value in said]
        if all(score is not None for score in scores):
            median = statistics.median(score for score in scores if score is not None)
            verdict = {**replies[0].verdict, "score": median}
            return json.dumps(verdict), verdict
        winner, votes = Counter(map(_key, said)).most_common(1)[0]
        if votes * 2 <= len(replies):
            raise JudgeUnreadable(
                f"no verdict has a majority among {len(replies)}", hint="ask an odd number of judges", kind="judge_no_majority"
            )
        chosen = next(reply for reply, value in zip(replies, said, strict=True) if _key(value) == winner)
        return chosen.text, chosen.verdict

    def _votes(self, outcomes: list[Outcome], request: JudgeRequest) -> list[dict[str, Any]]:
        return [
            {"judge": name, "said": _said(outcome, request), "model": outcome.model}
            if isinstance(outcome, JudgeReply)
            else {"judge": name, "error": outcome.kind}
            for name, outcome in zip(self.config.members, outcomes, strict=True)
        ]

    def _short(self, outcomes: list[Outcome], answered: int) -> JudgeError:
        errors = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        why = "; ".join(dict.fromkeys(error.message for error in errors))
        message = f"{answered} of {len(outcomes)} judges gave a verdict, {self._quorum} are needed: {why}"
        hint = "see judge check, or lower quorum"
        lost = [error for error in errors if isinstance(error, JudgeUnavailable)]
        if answered + len(lost) >= self._quorum:
            return JudgeUnavailable(message, hint=hint, kind="judge_no_quorum", final=True)
        kind = JudgeRefused if any(isinstance(error, JudgeRefused) for error in errors) else JudgeUnreadable
        return kind(message, hint=hint, kind="judge_no_quorum")


def _asked(member: Judge[Any], request: JudgeRequest, deadline: Deadline) -> Outcome:
    try:
        return member.ask(request, deadline)
    except JudgeError as error:
        return error


def _said(reply: JudgeReply, request: JudgeRequest) -> Any:
    """Return what decides of a reply: of its verdict, or its whole text where nobody says how to read it."""
    if request.form is None or reply.verdict is None:
        return reply.text.strip()
    return request.form.essence(reply.verdict)


def _only_score(value: Any) -> float | None:
    """Return the score of a verdict that is nothing else."""
    return float(value["score"]) if is_object(value) and set(value) == {"score"} else None


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _cost(outcomes: list[Outcome]) -> float | None:
    """Return what all members cost in US dollars, those that gave no verdict too; a cached reply costs nothing."""
    costs = [outcome.cost for outcome in outcomes if isinstance(outcome, JudgeError) or not outcome.cached]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _usage(replies: list[JudgeReply]) -> Usage:
    known = [reply.usage or Usage() for reply in replies if not reply.cached]
    return replace(Usage(), **{field.name: _total([getattr(usage, field.name) for usage in known]) for field in fields(Usage)})


def _total(values: list[Any]) -> Any:
    return None if None in values else sum(values)
