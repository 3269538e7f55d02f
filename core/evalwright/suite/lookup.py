"""Find a suite by name or path."""

from __future__ import annotations

import difflib
from pathlib import Path

from evalwright.errors import SuiteNotFound
from evalwright.suite.read import suite_file

__all__ = ["DEFAULT_SUITE", "find_suite"]

DEFAULT_SUITE = "code-review"
MAX_PATH = 1024


def find_suite(name: str | None, suites: Path) -> tuple[Path, str | None]:
    """Return the suite's directory, and a notice when the name could mean two.

    A name without ``/`` is looked up in ``suites`` first; ``./name`` is always a path. Raises ``SuiteNotFound``.
    """
    wanted = name or DEFAULT_SUITE
    if len(wanted) > MAX_PATH or "\0" in wanted:
        raise SuiteNotFound(f"no suite can be called {wanted[:40]!r}...", hint="give its name or its directory")
    direct = Path(wanted)
    if direct.is_file() and direct.name in {"suite.json", "suite.toml"}:
        return direct.parent, None
    named = suites / wanted
    by_name = "/" not in wanted and suite_file(named).is_file()
    if by_name:
        twin = direct.is_dir() and direct.resolve() != named.resolve()
        return (
            named,
            f"using the suite {named}; the directory ./{wanted} exists too, write ./{wanted} to use it" if twin else None,
        )
    if suite_file(direct).is_file():
        return direct, None
    raise _not_found(wanted, direct, suites)


def _not_found(wanted: str, direct: Path, suites: Path) -> SuiteNotFound:
    if direct.is_dir():
        return SuiteNotFound(f"{direct} holds no suite.json", hint=f"create {direct / 'suite.json'}")
    known = sorted(path.name for path in suites.iterdir() if suite_file(path).is_file()) if suites.is_dir() else []
    near = difflib.get_close_matches(wanted, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}" if known else "start with: evalwright init"
    return SuiteNotFound(f"suite not found: {wanted}", hint=hint, did_you_mean=near[0] if near else None, valid_values=known)
