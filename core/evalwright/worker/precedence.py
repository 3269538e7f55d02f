"""Which files of a workspace an import finds before the file that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalwright.model.steering import module_name

__all__ = ["found_before"]

NODE_ENDINGS = ("", ".js", ".json", ".node")
"""What node tries behind the name that a file requires, in this order; a directory comes last."""


def found_before(file: Path) -> Iterator[Path]:
    """Yield the files and links that Python or node would take when a test asks for ``file``, which exists.

    For ``help.py`` that is a package ``help`` or an extension ``help.abi3.so``; for ``help.js`` a file ``help``.
    """
    module = module_name(file.name)
    if module is not None:
        yield from _of_python(file, module)
    elif file.suffix:
        yield from _of_node(file)


def _of_python(file: Path, module: str) -> Iterator[Path]:
    for other in file.parent.iterdir():
        if other.name == module and other.is_dir():
            starts = [place for place in other.iterdir() if module_name(place.name) == "__init__"]
            yield from ([other] if starts and other.is_symlink() else starts)
        elif other.name != file.name and module_name(other.name) == module:
            yield other


def _of_node(file: Path) -> Iterator[Path]:
    rank = NODE_ENDINGS.index(file.suffix) if file.suffix in NODE_ENDINGS else len(NODE_ENDINGS)
    candidates = [file.with_suffix(ending) for ending in NODE_ENDINGS[:rank]]
    if file.stem == "index":
        candidates += [file.parent.with_name(file.parent.name + ending) for ending in NODE_ENDINGS[1:]]
        candidates.append(file.with_name("package.json"))
    yield from (other for other in candidates if other.is_symlink() or other.is_file())
