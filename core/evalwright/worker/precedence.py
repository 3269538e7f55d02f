"""Which files of a workspace an import finds before the file that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalwright.model.steering import TEST_DIRECTORIES, module_name

__all__ = ["found_before"]

NODE_ENDINGS = ("", ".js", ".json", ".node")
"""What node tries behind the name that a file requires, in this order; a directory comes last."""
OTHER_ENDINGS = frozenset({".cjs", ".cts", ".jsx", ".mjs", ".mts", ".ts", ".tsx"})
"""What tools on top of node try after these."""


def found_before(file: Path, workspace: Path) -> Iterator[Path]:
    """Yield the files and links in ``workspace`` that Python or node would take when a test asks for ``file``, which exists.

    For ``help.py`` that is a package ``help`` or an extension ``help.abi3.so``; for ``help.js`` a file ``help``; and
    ``tests.py`` for what lies in a directory ``tests`` that is no package.
    """
    module = module_name(file.name)
    for directory in file.relative_to(workspace).parents[:-1]:
        if module is not None and directory.name in TEST_DIRECTORIES and not (workspace / directory / "__init__.py").exists():
            yield from _modules(workspace / directory.parent, directory.name)
    if module is not None:
        yield from _of_python(file, module)
    elif file.suffix in {*NODE_ENDINGS[1:], *OTHER_ENDINGS}:
        yield from _of_node(file, workspace)


def _of_python(file: Path, module: str) -> Iterator[Path]:
    package = file.with_name(module)
    if package.is_dir():
        starts = list(_modules(package, "__init__"))
        yield from ([package] if starts and package.is_symlink() else starts)
    yield from (other for other in _modules(file.parent, module) if other.name != file.name)


def _modules(directory: Path, name: str) -> Iterator[Path]:
    """Yield the files of a directory that Python imports under a name."""
    yield from (place for place in directory.iterdir() if module_name(place.name) == name and not place.is_dir())


def _of_node(file: Path, workspace: Path) -> Iterator[Path]:
    rank = NODE_ENDINGS.index(file.suffix) if file.suffix in NODE_ENDINGS else len(NODE_ENDINGS)
    candidates = [file.with_suffix(ending) for ending in NODE_ENDINGS[:rank]]
    if file.stem == "index" and file.parent != workspace:
        candidates += [file.parent.with_name(file.parent.name + ending) for ending in NODE_ENDINGS[1:]]
        candidates.append(file.with_name("package.json"))
    yield from (other for other in candidates if other.is_symlink() or other.is_file())
