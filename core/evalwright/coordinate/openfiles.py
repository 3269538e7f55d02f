"""Open files: every run that is carried out holds some, and the usual limit of a process is soon reached."""

from __future__ import annotations

import resource

from evalwright.errors import UsageError

__all__ = ["make_room"]

FILES_PER_RUN = 4
OTHER_FILES = 256


def make_room(runs: int) -> None:
    """Let this process open as many files as that many runs at once need.

    Raises ``UsageError`` where the machine does not allow it, before anything is made.
    """
    needed = runs * FILES_PER_RUN + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, max(soft, needed)):
        return
    if hard not in (resource.RLIM_INFINITY, max(hard, needed)):
        raise UsageError(
            f"{runs} runs at once need {needed} open files, and {hard} are allowed",
            hint="make fewer repeats and add others later with --resume EXPERIMENT --repeats N, or raise the limit: ulimit -n",
            key="repeats",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
