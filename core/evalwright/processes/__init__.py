"""Starting, watching and ending commands: the only code that starts a process.

Linux only. Every command runs in a session of its own under a supervisor that ends its whole process tree with it.
"""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.processes.identity import ProcessIdentity, boot_id, current_process
    from evalwright.processes.journal import ProcessJournal, end_strays, living_strays
    from evalwright.processes.process import Process
    from evalwright.processes.stop import Stop
    from evalwright.processes.supervisor import Supervisor
else:
    __getattr__ = lazy(
        __name__,
        {
            ".identity": "ProcessIdentity boot_id current_process",
            ".journal": "ProcessJournal end_strays living_strays",
            ".process": "Process",
            ".stop": "Stop",
            ".supervisor": "Supervisor",
        },
    )

__all__ = [
    "Process",
    "ProcessIdentity",
    "ProcessJournal",
    "Stop",
    "Supervisor",
    "boot_id",
    "current_process",
    "end_strays",
    "living_strays",
]
