"""Check what the services of a case start from: each seed names a service of the suite and is a file that it can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import PluginError
from evalwright.model import PluginTable
from evalwright.registry import Registry, model_problems
from evalwright.suite.paths import path_objection
from evalwright.suite.read import parse_json

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["SeedChecker", "seed_model"]

Record = dict[str, Any]


class SeedChecker:
    """Checks the seeds of one suite. ``models`` holds, for each service, the model of its seed if it has one."""

    def __init__(self, directory: Path, models: Mapping[str, type[BaseModel] | None]) -> None:
        self._directory = directory
        self._models = models
        self._checked: dict[tuple[str, str], list[str]] = {}

    def problems(self, seeds: Mapping[str, str], *, files: bool) -> Iterator[Record]:
        """Yield ``{message, key, hint}`` of everything that is wrong; without ``files`` the seeds are not opened."""
        for name, path in seeds.items():
            key = f"services.{name}"
            if why := self.objection(name):
                yield {"message": f"{key}: {why[0]}", "key": key, "hint": why[1]}
            elif files:
                if (name, path) not in self._checked:
                    self._checked[name, path] = list(self._objections(name, path))
                yield from ({"message": f"{key}: {why}", "key": key} for why in self._checked[name, path])

    def objection(self, name: str) -> tuple[str, str] | None:
        """Return what is wrong with a service's name, and the cure; ``None`` for one that the suite has."""
        if name in self._models:
            return None
        import difflib

        near = difflib.get_close_matches(name, self._models, 1)
        hint = f"did you mean {near[0]}?" if near else f"known services: {', '.join(self._models) or 'none'}"
        return f'the suite has no service "{name}"', hint

    def _objections(self, name: str, path: str) -> Iterator[str]:
        if why := path_objection(self._directory, path, "file"):
            yield why
            return
        try:
            document = parse_json((self._directory / path).read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            yield f"{path} is no JSON that can be read: {error}"
            return
        model = self._models[name]
        if model is not None:
            yield from (record["message"] for record in model_problems(model, document, path))


def seed_model(registry: Registry, service: PluginTable) -> type[BaseModel] | None:
    """Return the model of a service's seed, ``None`` where it has none or cannot be loaded."""
    try:
        model: type[BaseModel] | None = getattr(registry.load("service", service.use).cls, "Seed", None)
    except PluginError:
        return None
    return model
