"""A plugin's table, validated by its own ``Config``: every problem with its key, unknown keys with the nearest known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from evalwright.canonical import is_array, is_object
from evalwright.errors import PluginInvalid
from evalwright.interfaces import Plugin

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["configuration_problems", "configured", "model_problems", "unknown_key"]

Record = dict[str, Any]
MISSING = object()


def configured(cls: type[Plugin[Any]], table: Mapping[str, Any], place: str) -> Any:
    """Return the plugin's configuration, ``None`` for a plugin without one. Raises ``PluginInvalid`` with every problem."""
    problems = configuration_problems(cls, table, place)
    if problems:
        first = problems[0]
        raise PluginInvalid(first["message"], hint=first["hint"], problems=problems)
    return None if cls.Config is None else cls.Config.model_validate(dict(table))


def configuration_problems(cls: type[Plugin[Any]], table: Mapping[str, Any], place: str) -> list[Record]:
    """Return everything that is wrong with a plugin's table, as envelope records whose ``key`` starts with ``place``."""
    if cls.Config is None:
        return [unknown_key(place, key, []) for key in table]
    return model_problems(cls.Config, table, place)


def model_problems(model: type[BaseModel], value: Any, place: str) -> list[Record]:
    """Return everything that a pydantic model objects to in ``value``; keys that it does not know are objected to always."""
    from pydantic import ValidationError

    known = _known_keys(model)
    extra = [key for key in value if key not in known] if known is not None and is_object(value) else []
    problems = [unknown_key(place, key, sorted(known or ())) for key in extra]
    try:
        model.model_validate(value)
    except ValidationError as error:
        for where, item in _placed(value, error.errors(include_url=False)):
            if item["type"] != "extra_forbidden" or known is None:
                problems.append(_record(item, ".".join([place, *where]).strip(".")))
            elif len(where) > 1:
                *path, key = where
                names = _nested_keys(model, path)
                problem = unknown_key(".".join([place, *path]).strip("."), key, names)
                problems.append(problem if names else problem | {"hint": f"leave {key} out"})
    return problems


def _placed(value: Any, items: Iterable[Any]) -> list[tuple[list[str], Any]]:
    """Return each error with the keys that lead to it in ``value``; of a value that may have several forms, those of the form
    that it seems to have, else one error for all.
    """
    found = [(*_keys(value, item), item) for item in items]
    deeper = [root for where, root, _ in found if root is not None and len(where) > len(root)]
    placed: list[tuple[list[str], Any]] = []
    merged: dict[tuple[str, ...], Any] = {}
    for where, root, item in found:
        if where == root and where in deeper:
            continue
        if where == root and tuple(where) in merged:
            merged[tuple(where)]["msg"] += f", or {_said(item)}"
            continue
        if where == root:
            item = merged[tuple(where)] = {**item, "msg": _said(item)}
        placed.append((where, item))
    return placed


def _keys(value: Any, item: Any) -> tuple[list[str], list[str] | None]:
    """Return the keys of an error that stand in ``value``, and those up to where pydantic names one form of several."""
    found: list[str] = []
    root = None
    for part in item["loc"]:
        here = value.get(part, MISSING) if is_object(value) else MISSING
        if is_array(value) and isinstance(part, int) and part < len(value):
            here = value[part]
        if here is MISSING and not (item["type"] == "missing" and part == item["loc"][-1]):
            root = list(found) if part != "[key]" else root
            continue
        found.append(str(part))
        value = here
    return found, root


def unknown_key(place: str, key: str, known: Sequence[str]) -> Record:
    """Return the problem of a key that nobody knows."""
    import difflib

    near = difflib.get_close_matches(key, known, 1)
    record: Record = {
        "message": f"{place}.{key}: unknown key" if place else f"unknown key {key!r}",
        "hint": f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known) or 'none'}",
        "key": f"{place}.{key}" if place else key,
    }
    return record | ({"did_you_mean": near[0]} if near else {})


def _known_keys(model: type[BaseModel]) -> set[str] | None:
    """Return the names a model takes, or ``None`` for a root model, which takes a value of its own shape."""
    if getattr(model, "__pydantic_root_model__", False):
        return None
    names: set[str] = set()
    for name, field in model.model_fields.items():
        names.add(field.alias or name)
    return names


def _nested_keys(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the names that a model inside a model takes, none where the path leads through something else."""
    current: Any = model
    for name in path:
        fields = {key: field for one in _forms(current) for key, field in getattr(one, "model_fields", {}).items()}
        current = fields[name].annotation if name in fields else None
    return sorted({key for one in _forms(current) for key in getattr(one, "model_fields", {})})


def _forms(annotation: Any) -> Sequence[Any]:
    """Return the types of a union, any other type by itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _said(item: Any) -> str:
    if item["type"] in ("model_type", "dict_type"):
        return "must be an object"
    if item["type"] in ("list_type", "tuple_type"):
        return "must be a list"
    return str(item["msg"]).removeprefix("Value error, ")


def _record(item: Any, key: str) -> Record:
    message = _said(item)
    given = item.get("input")
    shown = f" (got {given!r})" if isinstance(given, (str, int, float, bool)) or given is None else ""
    if item["type"] == "missing":
        shown = ""
    expected = item.get("ctx", {}).get("expected")
    return {"message": f"{key}: {message}{shown}", "hint": f"correct {key}", "key": key} | (
        {"valid_values": [word.strip("' ") for word in str(expected).replace(" or ", ",").split(",")]} if expected else {}
    )
