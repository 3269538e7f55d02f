"""The judges of a suite: which keys of a table are whose, and agents that would judge themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalwright.canonical import is_array, is_object
from evalwright.model import PluginTable
from evalwright.suite.shape import JudgeShape

if TYPE_CHECKING:
    from evalwright.interfaces import Judge

__all__ = ["judge_tables", "self_judging", "split_table"]

MODEL_WORD = "MODEL"


def split_table(table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keys of a judge's table that every judge shares, and the plugin's own."""
    shared = {key: value for key, value in table.items() if key in JudgeShape.model_fields}
    return shared, {key: value for key, value in table.items() if key not in shared and key != "use"}


def judge_tables(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, PluginTable]:
    """Return judges with their plugins' own keys, from tables that were checked."""
    return {name: PluginTable(use=str(table.get("use")), config=split_table(table)[1]) for name, table in tables.items()}


def self_judging(runner: Mapping[str, Any] | str, judges: Mapping[str, Judge[Any]], of: str = "") -> Iterator[dict[str, str]]:
    """Yield a warning for every judge whose model is the agent's own, as far as the runner's table names that.

    ``of`` says in the message whose agent that is.

    A model is named by ``model`` of the table, by a variable of ``env`` with the word MODEL in its name, or in ``argv`` after
    ``--model``. The part after the last ``/`` decides, so that ``m1`` and ``acme/m1`` are the same.
    """
    models = {_alias(model): model for model in _models(runner)}
    for name, judge in judges.items():
        own = models.get(_alias(judge.model or ""))
        if judge.model and own:
            message = f"the judge {name} asks {judge.model}, and the agent{of} is {own}: a model favours its own answers"
            yield {"code": "W_SELF_JUDGE", "message": message}


def _models(runner: Mapping[str, Any] | str) -> Iterator[str]:
    if isinstance(runner, str):
        return
    values: list[Any] = [runner.get("model")]
    env, words = runner.get("env"), runner.get("argv")
    if is_object(env):
        values += [value for key, value in env.items() if MODEL_WORD in key.upper().split("_")]
    if is_array(words):
        values += [after for word, after in itertools.pairwise(words) if word == "--model"]
        values += [word.removeprefix("--model=") for word in words if isinstance(word, str) and word.startswith("--model=")]
    yield from (value for value in values if isinstance(value, str) and value)


def _alias(model: str) -> str:
    return model.rpartition("/")[2].casefold()
