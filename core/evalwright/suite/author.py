"""Write suites, cases and scorers: idempotent, atomic, checked before they are written, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_json, is_object, stable_json
from evalwright.errors import RunConflict, SuiteError, UsageError
from evalwright.registry import Registry
from evalwright.suite.load import load_suite
from evalwright.suite.read import parse_json, suite_file
from evalwright.workspace import remove_tree

__all__ = ["add_case", "add_cases", "add_scorer", "add_suite"]

Record = dict[str, Any]


def add_suite(suites: Path, name: str, runner: Mapping[str, Any], *, native: bool = False) -> Record:
    """Create an empty suite and return ``{suite, suite_dir, created, files}``.

    The same suite again is ``created: false``; another under that name raises ``RunConflict``.
    """
    document: Record = {
        "name": name,
        "cases": "cases.jsonl",
        "acknowledged_unsandboxed_runner": True,
        "runner": dict(runner),
        "scorers": [],
    }
    if native:
        document["schema_version"] = 2
    directory = suites / name
    files = [str(directory / "suite.json"), str(directory / "cases.jsonl")]
    suites.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        if directory.exists():
            if not _holds(directory / "suite.json", render(document)):
                raise RunConflict(f"another suite is called {name}", hint="choose another name, or edit the existing suite")
            return {"suite": name, "suite_dir": str(directory), "created": False, "files": files}
        _create(directory, render(document))
    return {
        "suite": name,
        "suite_dir": str(directory),
        "created": True,
        "files": [*files, str(directory / "fixtures")],
    }


def add_case(directory: Path, case: Mapping[str, Any]) -> Record:
    """Add one case and return ``{suite, id, created, case}``.

    The same case again is ``created: false``; another with that id raises ``RunConflict``, a bad one ``SuiteError``.
    """
    record = _identified(case)
    with _locked(directory):
        name, path, existing = _cases_of(directory)
        known = existing.get(record["id"])
        if known is not None and stable_json(known) != stable_json(record):
            raise RunConflict(f"another case has the id {record['id']}", hint="choose another --id, or edit the cases file")
        if known is None:
            _append(directory, path, [record])
    return {"suite": name, "id": record["id"], "created": known is None, "case": record}


def add_cases(directory: Path, lines: Iterable[tuple[int, str | None]]) -> Record:
    """Add many cases, one JSON object a line: good ones are added, the same ones skipped, bad ones rejected with reasons.

    Returns ``{suite, added[{id}], skipped[{id}], rejected[{line, id?, code, message}], counts}``.
    """
    skipped: list[Record] = []
    rejected: list[Record] = []
    fresh: dict[int, Record] = {}
    with _locked(directory):
        name, path, existing = _cases_of(directory)
        for number, text in lines:
            try:
                record = _parsed(text)
            except (ValueError, TypeError, RecursionError) as error:
                rejected.append({"line": number, "code": "E_CASE_INVALID", "message": str(error)})
                continue
            known = existing.setdefault(str(record["id"]), record)
            if known is record:
                fresh[number] = record
            elif stable_json(known) == stable_json(record):
                skipped.append({"id": record["id"]})
            else:
                message = f"another case has the id {record['id']}"
                rejected.append({"line": number, "id": record["id"], "code": "E_RUN_CONFLICT", "message": message})
        rejected += _append_sound(directory, path, fresh)
    counts = {"added": len(fresh), "skipped": len(skipped), "rejected": len(rejected)}
    return {
        "suite": name,
        "added": [{"id": record["id"]} for record in fresh.values()],
        "skipped": skipped,
        "rejected": sorted(rejected, key=lambda item: item["line"]),
        "counts": counts | {"total": sum(counts.values())},
    }


def add_scorer(directory: Path, entry: Mapping[str, Any]) -> Record:
    """Add one scorer and return ``{suite, scorer, id, created}``; raises as :func:`add_case`."""
    file = suite_file(directory)
    if file.suffix != ".json":
        raise UsageError(f"{file} is not JSON", hint="edit the TOML file by hand")
    with _locked(directory):
        load_suite(directory)
        document = json.loads(load_text(file))
        native = document.get("schema_version") is not None
        written = _native_entry(entry) if native else dict(entry)
        scorers = list(document.get("scorers", []))
        same = [other for other in scorers if _key(other) == _key(written)]
        created = not same
        if same and stable_json(same[0]) != stable_json(written):
            raise RunConflict(f"the suite has another scorer {_key(written)}", hint="choose another --id, or edit suite.json")
        if created:
            document["scorers"] = [*scorers, written]
            _replace(directory, file, render(document))
    return {"suite": document.get("name"), "scorer": _use(written), "id": written.get("id"), "created": created}


def load_text(path: Path) -> str:
    """Return a suite file's text; raises ``SuiteError`` when there is none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}", hint="create it: evalwright suite add NAME ...") from error


def _identified(case: Any) -> Record:
    if not is_object(case):
        raise TypeError("a case is a JSON object")
    record: Record = {key: value for key, value in case.items() if key != "id"}
    return record | {"id": case.get("id") or digest_json(record)[7:19]}


def _parsed(text: str | None) -> Record:
    if text is None:
        raise ValueError("the line is not UTF-8")
    return _identified(parse_json(text))


def _append_sound(directory: Path, path: Path, fresh: dict[int, Record]) -> list[Record]:
    """Append those records that make a sound suite; take the others out of ``fresh`` and return why, by input line."""
    rejected: list[Record] = []
    before = _grown(path, []).count(b"\n")
    while fresh:
        numbers = list(fresh)
        try:
            _append(directory, path, list(fresh.values()))
            break
        except SuiteError as error:
            places: list[tuple[int, Record]] = [(problem.get("line", 0) - before - 1, problem) for problem in error.problems]
            bad = {numbers[place]: problem for place, problem in reversed(places) if 0 <= place < len(numbers)}
            if not bad:
                raise
            for number, problem in sorted(bad.items()):
                record = fresh.pop(number)
                reason = {"line": number, "id": record["id"], "code": problem["code"], "message": problem["message"]}
                rejected.append(reason)
    return rejected


def _cases_of(directory: Path) -> tuple[str, Path, dict[str, Record]]:
    """Return the suite's name, its cases file and its cases by id; the suite must be sound."""
    suite = load_suite(directory).suite
    return suite.name, directory / suite.cases_file, {case.id: case.record for case in suite.cases}


def _grown(path: Path, records: Sequence[Mapping[str, Any]]) -> bytes:
    old = path.read_bytes()
    glue = b"" if not old or old.endswith(b"\n") else b"\n"
    return old + glue + "".join(stable_json(record) + "\n" for record in records).encode()


def _append(directory: Path, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    content = _grown(path, records)
    load_suite(directory, read=_reading(path, content))
    _write(path, content)


def _replace(directory: Path, path: Path, text: str) -> None:
    load_suite(directory, read=_reading(path, text.encode()))
    _write(path, text.encode())


def _reading(path: Path, content: bytes) -> Callable[[Path], bytes]:
    return lambda wanted: content if wanted == path else wanted.read_bytes()


def _create(directory: Path, text: str) -> None:
    aside = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name[:50]}."))
    try:
        (aside / "fixtures").mkdir()
        (aside / "suite.json").write_text(text, encoding="utf-8", newline="")
        (aside / "cases.jsonl").touch()
        load_suite(aside, Registry(aside))
        aside.chmod(0o755)
        os.rename(aside, directory)
    finally:
        if aside.exists():
            remove_tree(aside, inside=directory.parent)


def _write(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_bytes(content)
    os.replace(aside, path)


def render(document: Mapping[str, Any]) -> str:
    """Return a suite's document as it lies on disk."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


@contextlib.contextmanager
def _locked(directory: Path) -> Generator[None]:
    """Keep other authors of this suite out while the block runs."""
    with (directory.parent / f".{directory.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _native_entry(entry: Mapping[str, Any]) -> Record:
    rest = {key: value for key, value in entry.items() if key != "name"}
    return {"use": entry["name"], **rest}


def _use(entry: Mapping[str, Any]) -> str:
    return str(entry.get("use") or entry.get("name"))


def _key(entry: Mapping[str, Any]) -> str:
    return str(entry.get("id") or _use(entry))
