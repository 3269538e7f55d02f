"""``plugins list|check``: what is installed, and whether it works."""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.errors import PluginAmbiguous, PluginApiMismatch, PluginError, PluginNotFound, UsageError
from evalwright.registry import BASES, GROUPS, Catalog, Listing, PluginHost, Registry
from evalwright.registry.loading import load_object

__all__ = ["answer"]

Record = dict[str, Any]
SOURCED = frozenset({"importer", "exporter"})
STATES: dict[type[PluginError], str] = {PluginAmbiguous: "duplicate", PluginApiMismatch: "incompatible"}


def answer(session: Session) -> Reply:
    """List without importing, or import each plugin (or one) and say what is wrong with it."""
    options = session.options
    catalog = Catalog()
    listings = [item for kind in GROUPS for item in catalog.listings(kind)]
    if options.action == "list":
        if options.name:
            raise UsageError("plugins list takes no name", hint=f"evalwright plugins check {options.name}")
        entries = [_entry(item, "duplicate" if _doubled(item, listings) else "ok") for item in listings]
        return Reply(data={"plugins": entries}, text=_table(entries))
    chosen = [item for item in listings if options.name in (None, item.name, f"{item.distribution}:{item.name}")]
    if not chosen:
        raise PluginNotFound(f'no plugin is called "{options.name}"', hint="list them: evalwright plugins list")
    entries = [_checked(item, Registry(catalog=catalog), doubled=_doubled(item, listings)) for item in chosen]
    for entry in entries if options.name else ():
        if entry["kind"] in BASES:
            entry["contract"] = _contract(entry, Registry(catalog=catalog))
    broken = [entry for entry in entries if entry["state"] != "ok" or (entry.get("contract") or {}).get("failed")]
    return Reply(data={"plugins": entries}, text=_table(entries), exit_code=3 if broken else 0)


def _checked(item: Listing, registry: Registry, *, doubled: bool) -> Record:
    try:
        if item.kind in BASES:
            api = registry.load(item.kind, f"{item.distribution}:{item.name}").cls.api
            return _entry(item, "duplicate" if doubled else "ok", api=api)
        load_object(item)
    except PluginError as error:
        return _entry(item, STATES.get(type(error), "broken"), reason=error.message)
    return _entry(item, "duplicate" if doubled else "ok")


def _contract(entry: Record, registry: Registry) -> Record:
    """Run the conformance kit on one plugin, or say why it was not run."""
    if entry["state"] not in {"ok", "duplicate"}:
        return {"skipped": "only a plugin that can be loaded has a contract to keep"}
    if entry["kind"] in SOURCED:
        return {"skipped": f"an {entry['kind']} needs something to work on; run its contract from a test of your own"}
    reference = f"{entry['distribution']}:{entry['name']}"
    try:
        problems = registry.create(entry["kind"], reference, {}, PluginHost(registry)).check("worker")
    except PluginError as error:
        return {"skipped": f"it needs a configuration: {error.message}; run its contract from a test of your own"}
    if problems:
        return {"skipped": f"it cannot work here: {problems[0].message}. {problems[0].hint}"}
    try:
        from evalwright.testing import check_installed
    except ImportError:
        return {"skipped": 'the kit needs pytest: pip install "evalwright[testing]"'}
    return check_installed(entry["kind"], reference)


def _entry(item: Listing, state: str, *, api: str | None = None, reason: str | None = None) -> Record:
    if state == "duplicate" and reason is None:
        reason = f'another package offers a {item.kind} of that name; use "{item.distribution}:{item.name}"'
    return {
        "group": GROUPS[item.kind],
        "kind": item.kind,
        "name": item.name,
        "distribution": item.distribution,
        "version": item.version,
        "api": api,
        "state": state,
        "reason": reason,
    }


def _doubled(item: Listing, listings: list[Listing]) -> bool:
    return sum(other.kind == item.kind and other.name == item.name for other in listings) > 1


def _table(entries: list[Record]) -> str:
    rows = [(e["kind"], e["name"], f"{e['distribution']} {e['version']}", e["state"], e["reason"] or "") for e in entries]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]]).rstrip() + "\n"
        for row in rows
    ]
    return "".join(lines) + "".join(_contract_text(entry) for entry in entries if "contract" in entry)


def _contract_text(entry: Record) -> str:
    contract = entry["contract"]
    if "skipped" in contract:
        return f"contract of {entry['name']}: not run, {contract['skipped']}\n"
    lines = [f"contract of {entry['name']}: {contract['passed']} checks passed, {len(contract['failed'])} failed"]
    lines += [f"  ✗ {failure['check']}: {failure['why']}" for failure in contract["failed"]]
    return "\n".join(lines) + "\n"
