"""Starting, watching and ending commands: the only code that starts a process.

Linux only. Every command runs in a session of its own under a supervisor that ends its whole process tree with it.
"""

from evalwright.processes._client import Process, Supervisor
from evalwright.processes.identity import ProcessIdentity, boot_id, current_process

__all__ = ["Process", "ProcessIdentity", "Supervisor", "boot_id", "current_process"]
