"""Git commands in a transcript, and which of them ask for history beyond HEAD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["beyond_head", "git_commands"]

_QUOTES = str.maketrans(dict.fromkeys("\"'`,[]()", " "))
_END_OF_COMMAND = re.compile(r"[|;&\n]")
_TAKES_A_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_READS = frozenset({"cat-file", "checkout", "cherry-pick", "diff", "grep", "log", "reset", "rev-list", "shortlog", "show"})
_EVERYTHING = frozenset({"--all", "--reflog", "--walk-reflogs", "-g"})
_FORMER = re.compile(r"ORIG_HEAD|FETCH_HEAD|@\{(?!u|push)")
_ALWAYS = {
    "fetch": "it asks a remote",
    "fsck": "it looks for unreachable objects",
    "ls-remote": "it asks a remote",
    "pull": "it asks a remote",
    "reflog": "it reads the reflog",
}


def git_commands(transcript: str) -> Iterator[list[str]]:
    """Yield the words of everything that reads like a git command: ``git``, the subcommand, its arguments.

    Takes time linear in the transcript, which is the agent's to write.
    """
    for part in _END_OF_COMMAND.split(transcript):
        if "git" not in part:
            continue
        words = part.translate(_QUOTES).split()
        start = next((at for at, word in enumerate(words) if word.rpartition("/")[2] == "git"), None)
        if start is not None:
            rest = _without_options(words[start + 1 :])
            if rest:
                yield ["git", *rest]


def beyond_head(words: Sequence[str]) -> str | None:
    """Say what a git command reads beyond the history of HEAD; ``None`` for ordinary work."""
    command, arguments = words[1], words[2:]
    if command in _ALWAYS:
        return _ALWAYS[command]
    if command == "stash" and arguments[:1] and arguments[0] in ("list", "show", "branch"):
        return "it looks into the stash"
    if command == "cat-file" and "--batch-all-objects" in arguments:
        return "it lists every object"
    if command in ("log", "rev-list", "shortlog", "show") and not _EVERYTHING.isdisjoint(arguments):
        return "it asks for more than the history of HEAD"
    if command in _READS and any(_FORMER.search(word) for word in arguments):
        return "it names a former or fetched commit"
    return None


def _without_options(words: Sequence[str]) -> Sequence[str]:
    """Return the words from the subcommand on."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _TAKES_A_VALUE else 1
    return words[at:]
