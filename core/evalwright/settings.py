"""The user's settings, each value with where it came from; pydantic-settings lives only here.

It costs more than most verbs do, so variables whose text can mean only one thing are read without it.

Precedence: command line > environment (``EVALWRIGHT_`` before ``EVALCTL_``) > suite > ``evalwright.toml`` > default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from evalwright.errors import UsageError

__all__ = ["CONFIG_FILE", "FIELDS", "MAX_JOBS", "Settings", "load_settings"]

CONFIG_FILE = "evalwright.toml"
PREFIXES = ("EVALWRIGHT_", "EVALCTL_")
MAX_JOBS = 1024


class Settings(NamedTuple):
    """Everything a user can set outside a suite. ``timeout`` is in seconds; ``None`` leaves it to the suite.

    ``jobs`` is the number of trials in flight; ``slots`` that of a queue with workers of its own, else ``jobs``.
    ``profile`` measures where the time of every trial goes.
    ``prices`` is a TOML file of prices per model, beside those that are shipped.
    """

    jobs: int = min(os.cpu_count() or 1, 4)
    timeout: float | None = None
    evals: Path = Path("evals")
    runs: Path | None = None
    workspaces: Path | None = None
    sandbox: str | None = None
    queue: str | None = None
    slots: int | None = None
    keep_workspace: str = "none"
    clone: str = "auto"
    paranoid: bool = False
    profile: bool = False
    acknowledge_unsandboxed_runner: bool = False
    reservation_ttl: int = 3600
    prices: Path | None = None
    origins: Mapping[str, str] = MappingProxyType({})

    @property
    def runs_directory(self) -> Path:
        """Return where runs lie."""
        return self.runs or self.evals / "runs"

    @property
    def width(self) -> int:
        """Return how many trials are in flight at once: ``slots`` for a queue with workers of its own, else ``jobs``."""
        return self.slots or self.jobs if self.queue not in (None, "local") else self.jobs

    def origin(self, name: str) -> str:
        """Return where a value came from: ``command line``, a variable's name, a file's name or ``default``."""
        return self.origins.get(name, "default")

    def outranks_suite(self, name: str) -> bool:
        """Tell whether a value comes from the command line or the environment, which count more than the suite."""
        return self.origin(name) not in ("default", CONFIG_FILE)

    def overridden(self, **flags: Any) -> Settings:
        """Return these settings with the flags that were given on the command line."""
        given = {name: value for name, value in flags.items() if value is not None and value is not False}
        origins = dict(self.origins) | dict.fromkeys(given, "command line")
        return self._replace(**given, origins=origins)


FIELDS = tuple(name for name in Settings._fields if name != "origins")
RANGES: Mapping[str, Mapping[str, Any]] = {
    "jobs": {"ge": 1, "le": MAX_JOBS},
    "slots": {"ge": 1, "le": MAX_JOBS},
    "timeout": {"gt": 0, "allow_inf_nan": False},
    "reservation_ttl": {"ge": 1},
}
KINDS: Mapping[str, Any] = {
    "jobs": int,
    "timeout": float,
    "evals": Path,
    "runs": Path,
    "workspaces": Path,
    "sandbox": str,
    "queue": str,
    "slots": int,
    "keep_workspace": Literal["none", "failed", "all"],
    "clone": Literal["auto", "overlay", "reflink", "copy"],
    "paranoid": bool,
    "profile": bool,
    "acknowledge_unsandboxed_runner": bool,
    "reservation_ttl": int,
    "prices": Path,
}
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
WHOLE_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


def load_settings(environment: Mapping[str, str], directory: Path = Path()) -> Settings:
    """Return the settings of this environment and of ``evalwright.toml`` in ``directory``.

    Raises ``UsageError`` naming the source and the key for an unknown key or a value of the wrong type.
    """
    variables = _variables(environment)
    file = directory / CONFIG_FILE
    if not file.is_file():
        plain = {name: _plain(name, text) for name, (_, text) in variables.items()}
        if None not in plain.values():
            return Settings(**plain, origins={name: variable for name, (variable, _) in variables.items()})
    values, origins = _read_sources(variables, file)
    return Settings(**values, origins=origins)


def _plain(name: str, text: str) -> Any:
    """Return the value of a text that can mean only one; ``None`` leaves it to the library, which says what is wrong too."""
    kind = KINDS[name]
    if kind in (str, Path):
        return kind(text)
    if kind is bool:
        return BOOLEANS.get(text)
    if kind in (int, float):
        number = int(text) if WHOLE_NUMBER.fullmatch(text) else 0
        return kind(number) if 0 < number <= RANGES[name].get("le", number) else None
    return text if text in get_args(kind) else None


def _read_sources(variables: Mapping[str, tuple[str, str]], file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    from pydantic import Field, ValidationError, create_model
    from pydantic_settings import BaseSettings, TomlConfigSettingsSource

    shape: Any = {name: (kind | None, Field(None, **RANGES.get(name, {}))) for name, kind in KINDS.items()}
    model: type[BaseSettings] = create_model("SettingsSources", __base__=BaseSettings, **shape)
    try:
        in_file = TomlConfigSettingsSource(model, toml_file=file)()
        given = {name: value for name, (_, value) in variables.items()}
        checked = model.model_validate(in_file | given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise _bad(first["msg"], name, variables, file) from error
    except ValueError as error:
        raise UsageError(f"{file}: {error}", hint="write valid TOML", file=str(file)) from error
    values = {name: value for name, value in checked.model_dump().items() if value is not None}
    origins = {name: variables[name][0] if name in variables else file.name for name in values}
    return values, origins


def _bad(why: str, name: str, variables: Mapping[str, tuple[str, str]], file: Path) -> UsageError:
    """Return the error that names the variable, or the file and the key, and the nearest setting for an unknown one."""
    place = variables[name][0] if name in variables else f"{file}: {name}"
    if name in FIELDS:
        return UsageError(f"{place}: {why}", hint="correct it or leave it out", key=name)
    import difflib

    near = difflib.get_close_matches(name, FIELDS, 1)
    hint = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(FIELDS)}"
    return UsageError(f"{place}: unknown setting", hint=hint, key=name, did_you_mean=near[0] if near else None)


def _variables(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return ``{setting: (variable, value)}``; the project's own prefix wins over evalctl's."""
    found: dict[str, tuple[str, str]] = {}
    for name in FIELDS:
        for prefix in PREFIXES:
            variable = prefix + name.upper()
            if variable in environment and name not in found:
                found[name] = (variable, environment[variable])
    return found
