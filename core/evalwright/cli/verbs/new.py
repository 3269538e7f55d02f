"""``new``: write the skeleton of a plugin package."""

from __future__ import annotations

import difflib
import keyword
import os
import re
import tempfile
from pathlib import Path

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.skeletons import KINDS, skeleton
from evalwright.errors import RunConflict, UsageError
from evalwright.workspace import remove_tree

__all__ = ["answer"]

NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", re.ASCII)
MAX_NAME = 80


def answer(session: Session) -> Reply:
    """Write the package and say how to try it."""
    options = session.options
    kind, name = _checked_kind(options.kind), _checked_name(options.name)
    target = Path(options.out or name)
    files = skeleton(kind, name)
    _write(files, target)
    data = {"kind": kind, "name": name, "directory": str(target), "files": sorted(files)}
    text = f"Created {target}/ with the {kind} {name}.\nTry it:  cd {target} && pip install -e '.[test]' && pytest\n"
    return Reply(data=data, text=text).then(f"pip install -e '{target}[test]'", "install it, so that Evalwright finds it")


def _checked_kind(kind: str) -> str:
    if kind in KINDS:
        return kind
    near = difflib.get_close_matches(kind, KINDS, 1)
    raise UsageError(
        f"there is no kind of plugin called {kind!r}",
        hint=f"did you mean {near[0]}?" if near else f"one of: {', '.join(KINDS)}",
        did_you_mean=near[0] if near else None,
        valid_values=list(KINDS),
    )


def _checked_name(name: str) -> str:
    package = name.replace("-", "_")
    if NAME.fullmatch(name) and len(name) <= MAX_NAME and not keyword.iskeyword(package) and package != "evalwright":
        return name
    raise UsageError(
        f"plugin name {name!r}: use small letters, digits and dashes; start with a letter",
        hint="for example: acme-wordcount",
        key="name",
    )


def _write(files: dict[str, str], target: Path) -> None:
    """Write the files aside and rename the whole. Raises ``RunConflict`` when something lies at the target already."""
    conflict = RunConflict(f"{target} exists already", hint="choose another directory with --out")
    if target.exists() or target.is_symlink():
        raise conflict
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    try:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="")
        aside.chmod(0o755)
        try:
            os.rename(aside, target)
        except OSError as error:
            raise conflict from error
    finally:
        if aside.exists():
            remove_tree(aside, inside=target.parent)
