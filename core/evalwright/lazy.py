"""Names of a package that are imported when somebody first asks for them (PEP 562), so that nobody pays for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``homes`` says which names a module gives: ``{".module": "One other"}``.

    The package imports the same names under ``TYPE_CHECKING`` too, for whatever reads it without running it. No name may be
    that of a module in the package, since importing that module would hide it.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(home_of[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
