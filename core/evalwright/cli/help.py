"""Help texts, made from the contract's tables."""

from __future__ import annotations

from evalwright.cli.contract import EXIT_CODES, GLOBAL_FLAGS, VERBS, Flag, Verb
from evalwright.cli.foreign import foreign_summaries

__all__ = ["overview", "verb_help"]


def overview() -> str:
    """Return what ``--help`` prints."""
    helps = {name: verb.help for name, verb in VERBS.items()} | foreign_summaries()
    width = max(map(len, helps))
    verbs = "".join(f"  {name:<{width}}  {text}\n" for name, text in helps.items())
    flags = "".join(f"  {name:<12} {text}\n" for name, text in GLOBAL_FLAGS.items())
    codes = "; ".join(f"{code} {entry['meaning'].partition(':')[0].partition(';')[0]}" for code, entry in EXIT_CODES.items())
    return (
        "evalwright measures agents: isolated trials, sealed evidence, honest statistics.\n\n"
        f"Usage: evalwright VERB ...        start with: evalwright init && evalwright run code-review\n\n"
        f"Verbs:\n{verbs}\nFlags of every verb:\n{flags}\n"
        f"Exit codes: {codes}.\n"
        "Machines: evalwright capabilities --json · evalwright schema VERB · evalwright robot-docs guide\n"
    )


def verb_help(name: str, verb: Verb) -> str:
    """Return what ``VERB --help`` prints."""
    lines = [f"evalwright {name}: {verb.help}", "", f"Usage: {usage(name, verb)}"]
    lines += _table("Actions", list((verb.actions or {}).items()))
    lines += _table("Flags", [(_flag(flag), flag.help) for flag in verb.flags])
    meanings = {code: entry["meaning"] for code, entry in EXIT_CODES.items()} | (verb.meanings or {})
    codes = ", ".join(f"{code} {meanings[code]}" for code in verb.exit_codes)
    lines += ["", f"Exit codes: {codes}", f"Changes files: {'yes' if verb.mutates else 'no'}"]
    return "\n".join(lines) + "\n"


def usage(name: str, verb: Verb) -> str:
    """Return the usage line of a verb."""
    words = [f"[{arg[:-1]}]" if arg.endswith("?") else arg for arg in verb.args]
    return " ".join(["evalwright", name, *words, *(["[flags]"] if verb.flags else [])])


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(left) for left, _ in rows), default=0)
    return ["", f"{title}:", *(f"  {left:<{width}}  {text}" for left, text in rows)] if rows else []


def _flag(flag: Flag) -> str:
    if flag.kind == "flag":
        return flag.name
    return f"{flag.name} {'|'.join(flag.choices) or flag.metavar}"
