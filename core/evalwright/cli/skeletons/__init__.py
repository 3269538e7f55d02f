"""The skeletons of plugin packages that ``new`` writes: one template of a module and one of its contract test per kind.

``$name`` is the plugin's name, ``$package`` the import package, ``$cls`` the class, ``$distribution`` the project's name.
"""

from __future__ import annotations

from importlib.resources import files
from string import Template

from evalwright.registry import GROUPS

__all__ = ["KINDS", "skeleton"]

KINDS = ("scorer", "sandbox", "runner", "judge", "queue", "importer", "exporter", "service", "transcript")


def skeleton(kind: str, name: str) -> dict[str, str]:
    """Return the files of a package that offers one plugin: content by path."""
    package = name.replace("-", "_")
    words = {
        "name": name,
        "kind": kind,
        "group": GROUPS[kind],
        "package": package,
        "distribution": name,
        "cls": "".join(word.capitalize() for word in package.split("_") if word) + kind.capitalize(),
    }
    places = {
        "pyproject.toml": "pyproject",
        "README.md": "readme",
        f"src/{package}/__init__.py": kind,
        f"src/{package}/py.typed": None,
        "tests/test_contract.py": f"{kind}_test",
    }
    return {path: _filled(template, words) for path, template in places.items()}


def _filled(template: str | None, words: dict[str, str]) -> str:
    if template is None:
        return ""
    return Template(files(__package__ or "").joinpath(f"{template}.txt").read_text("utf-8")).substitute(words)
