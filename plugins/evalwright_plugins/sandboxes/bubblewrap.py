"""The sandbox ``bubblewrap``: an empty root, a user without rights, and namespaces of its own for each command."""

from __future__ import annotations

import errno
import itertools
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from evalwright.errors import SandboxError
from evalwright.interfaces import (
    Command,
    Deadline,
    Host,
    LocalSession,
    Mount,
    Problem,
    Sandbox,
    SandboxRequest,
    Session,
    give,
    give_tree,
)
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.network import Loopback, NetworkConfig, Serve, SessionNetwork, injection_problems
from evalwright_plugins.sandboxes._bubblewrap_line import EXCHANGE, HOME, TEMPORARY, WORKSPACE, View, write_etc
from evalwright_plugins.sandboxes._limits import Limits
from evalwright_plugins.sandboxes._seccomp import ABIS, call_filter

__all__ = ["BubblewrapConfig", "BubblewrapSandbox"]

NOBODY = 65534
INSTALL = "install it: apt-get install bubblewrap"
PROBE_SECONDS = 10.0
CLEANUP_SECONDS = 10.0
WRAPPER = 'exec 3>"$0" 4<"$1" 5<"$2" && shift 2 && exec "$@"'
"""Opens the files of bubblewrap's account of the command, of its options and of the filter, then becomes bubblewrap."""
PROBE = ("--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/true")
NO_NAMESPACES = (
    "it needs unprivileged user namespaces: allow them (sysctl kernel.unprivileged_userns_clone=1, or "
    "kernel.apparmor_restrict_unprivileged_userns=0); in a container run it with --security-opt seccomp=unconfined"
)
EXEC_FAILED = "bwrap: execvp "
ERRNOS: Mapping[str, int] = {os.strerror(number): number for number in errno.errorcode}


KERNEL = ("/proc", "/sys", "/dev", "/run")
TAKEN = frozenset({"", "/etc", "/home", "/root", "/tmp", "/usr", "/var", "/workspace", "/exchange", "/agent", "/suite"})


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path} must be an absolute path without ..")
    if path.rstrip("/") in TAKEN or any(PurePosixPath(path).is_relative_to(place) for place in KERNEL):
        raise ValueError(f"{path} would show or hide too much; name the directory that the agent needs")
    return path


class BubblewrapConfig(NetworkConfig):
    """``network``, ``allow`` and ``inject`` as :class:`NetworkConfig` has them.

    ``read_only`` lists files and directories of the host that commands see at the same path. ``temporary_bytes`` bounds
    ``/tmp`` and ``/dev/shm``, each. ``user_namespaces`` lets commands make sandboxes of their own.
    """

    read_only: list[Annotated[str, AfterValidator(_absolute)]] = Field(default=[])
    limits: Limits = Limits()
    temporary_bytes: Annotated[int, Field(ge=4096, le=1 << 50)] = 1 << 30
    user_namespaces: bool = False


class BubblewrapSandbox(Sandbox[BubblewrapConfig]):
    """Runs commands where nothing of the host can be written but the workspace, and little of it can be read."""

    api = "sandbox/1.0"
    Config = BubblewrapConfig
    capabilities = frozenset(
        {
            "fs-isolated",
            "gold-isolated",
            "network-allowlist",
            "network-off",
            "pid-isolated",
            "resource-limits",
            "writable-mounts",
        }
    )

    def __init__(self, config: BubblewrapConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()
        self.user = NOBODY if os.geteuid() == 0 else None

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say what is missing: the programs, user namespaces, paths of ``read_only``."""
        try:
            become, bwrap = self.programs()
        except SandboxError as error:
            return [Problem(message=error.message, hint=error.hint or "")]
        problems = [problem for path in self.config.read_only if (problem := self._objection(path))]
        problems += injection_problems(self.config, os.environ, place="sandbox")
        problems += _filter_problems()
        probe = Command(argv=[*become, bwrap, "--seccomp", "0", *PROBE], stdin=call_filter(), timeout=PROBE_SECONDS)
        done = self._supervisor.run(probe)
        if done.exit_code != 0:
            why = done.spawn_error or done.stderr.text.strip()[-300:]
            problems.append(Problem(message=f"bubblewrap cannot make a sandbox here: {why}", hint=NO_NAMESPACES))
        return problems

    def _objection(self, path: str) -> Problem | None:
        """Say why a path of ``read_only`` cannot be mounted."""
        if not os.path.exists(path):
            return Problem(message=f"read_only: {path} does not exist", hint="correct the sandbox's table in suite.json")
        if self.user is not None and not _open_to_all(Path(path)):
            return Problem(
                message=f"read_only: {path} cannot be reached by other users than root",
                hint="open the way to it (chmod o+x on its parents, o+r on itself), or install it below /usr or /opt",
            )
        return None

    def programs(self) -> tuple[list[str], str]:
        """Return how a program is started by the commands' user, and bubblewrap. Raises ``SandboxError`` without them."""
        bwrap, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
        if bwrap is None:
            raise SandboxError("the sandbox bubblewrap needs the program bwrap, which is not installed", hint=INSTALL)
        if self.user is None:
            return [], bwrap
        if setpriv is None:
            raise SandboxError("as root, the sandbox bubblewrap needs setpriv", hint="install util-linux")
        return [setpriv, f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--"], bwrap

    def open(self, request: SandboxRequest) -> Session:
        """Return a session in the request's own directories."""
        session = _BubblewrapSession(request, self._supervisor, self)
        try:
            session.prepare()
        except BaseException:
            session.destroy(Deadline.after(CLEANUP_SECONDS))
            raise
        return session

    def close(self, deadline: Deadline) -> None:
        """End every command that still runs."""
        self._supervisor.close()


class _BubblewrapSession(LocalSession):
    isolation = "namespaces"
    writable_mounts = True

    def __init__(self, request: SandboxRequest, supervisor: Supervisor, sandbox: BubblewrapSandbox) -> None:
        super().__init__(request)
        config = sandbox.config
        self.workspace, self.exchange, self.home, self.temporary = WORKSPACE, EXCHANGE, HOME, TEMPORARY
        self.user = sandbox.user
        self._supervisor = supervisor
        self._limits = {**config.limits.in_force(), **request.limits}
        self._numbers = itertools.count(1)
        become, self._bwrap = sandbox.programs()
        self._place = Path(tempfile.mkdtemp(dir=request.exchange.parent, prefix="b"))
        self._place.chmod(0o711)
        self._network = SessionNetwork(config, request)
        self._loopback = self._entered()
        self._become = self._loopback.prefix() if self._loopback else become
        self._view = View(
            workspace=request.workspace,
            exchange=request.exchange,
            etc=self._directory("etc"),
            home=self._directory("home"),
            temporary_bytes=config.temporary_bytes,
            apart=self._network.kind != "host" and self._loopback is None,
            readonly=request.readonly,
            nested=config.user_namespaces,
            mounts=self._mounts([*config.read_only]),
        )

    def prepare(self) -> None:
        """Fill what commands see beside their workspace, and give them what is theirs. Raises ``SandboxError``."""
        write_etc(self._view.etc, network=self._network.kind == "host")
        (self._place / "filter").write_bytes(call_filter())
        self._hand_over()

    def execute(self, command: Command) -> Completed:
        self.directory(command.cwd)
        cwd = self.workspace / (command.cwd or "")
        number = next(self._numbers)
        account, options = self._place / f"account{number}", self._place / f"options{number}"
        words = self._view.options(cwd, {**self.request.env, **command.env, **self._network.environment})
        options.touch(0o600)
        options.write_bytes(b"".join(os.fsencode(word) + b"\0" for word in words))
        argv = ["/bin/sh", "-c", WRAPPER, str(account), str(options), str(self._place / "filter"), *self._become, self._bwrap]
        argv += ["--args", "4", "--json-status-fd", "3", "--seccomp", "5", "--", *command.argv]
        limits = {**self._limits, **command.limits}
        try:
            process = self._supervisor.start(replace(command, argv=argv, cwd="/", env={}, limits=limits), wrapped=True)
            with self.running(process):
                completed = process.wait()
            return completed if completed.timed_out or completed.canceled else self._explained(completed, account)
        finally:
            account.unlink(missing_ok=True)
            options.unlink()

    def account(self) -> Mapping[str, Any]:
        return self._network.account()

    def inside(self, source: Path) -> PurePosixPath:
        return next((mount.target for mount in self.request.mounts if mount.source == source), PurePosixPath(source))

    def destroy(self, deadline: Deadline) -> None:
        """Close the network and remove the session's own directories."""
        for part in (self._loopback, self._network):
            if part:
                part.close(deadline)
        shutil.rmtree(self._place, ignore_errors=True)

    def _entered(self) -> Loopback | None:
        """Return the loopback that commands get where something is to be reached on it; endpoints keep their port."""
        if self._network.kind == "host":
            return None
        endpoints = {int(address.rpartition(":")[2]): address for address in self.request.endpoints.values()}
        ports: dict[int, Serve | str] = {**endpoints, **self._network.listened}
        return Loopback(self._place / "net", ports, uid=self.user) if ports else None

    def _directory(self, name: str) -> Path:
        directory = self._place / name
        directory.mkdir(mode=0o755)
        return directory

    def _mounts(self, read_only: Sequence[str]) -> Sequence[Mount]:
        """Return what is mounted; a source that the commands' user cannot reach is seen as a copy."""
        held = next((path for path in read_only if self.request.workspace.is_relative_to(Path(path).resolve())), None)
        if held:
            raise SandboxError(f"read_only: {held} holds the workspaces of all trials", hint="name what the agent needs alone")
        configured = [Mount(source=Path(path), target=PurePosixPath(path)) for path in read_only]
        return configured + [self._reachable(mount, f"mount{number}") for number, mount in enumerate(self.request.mounts)]

    def _reachable(self, mount: Mount, name: str) -> Mount:
        """Return a mount whose source the commands' user can reach. Raises ``SandboxError`` for what cannot be mounted."""
        if any(mount.target.is_relative_to(place) for place in (WORKSPACE, EXCHANGE)):
            raise SandboxError(
                f"{mount.target} lies where bubblewrap has the workspace or the exchange directory",
                hint=f"move {mount.source} to a directory of another name",
            )
        if self.user is None or (_open_to_all(mount.source) and not mount.writable):
            return mount
        if mount.writable:
            self._give(mount.source)
            return mount
        copy = self._place / name
        if mount.source.is_dir():
            shutil.copytree(mount.source, copy, symlinks=True)
        else:
            shutil.copy2(mount.source, copy)
        give_tree(copy, self.user)
        return replace(mount, source=copy)

    def _give(self, source: Path) -> None:
        """Make what is mounted writable the commands' user's. Raises ``SandboxError`` where that user cannot get to it."""
        closed = _closed_parent(source)
        if closed:
            raise SandboxError(
                f"the sandbox's user (uid {self.user}) cannot reach {source}: {closed} is closed to others",
                hint=f"open the way to it: chmod o+x {closed}",
            )
        if source.is_dir():
            give_tree(source, self.user)
        else:
            give(source, self.user)

    def _hand_over(self) -> None:
        """Make the home the commands' user's, and see that it gets to what the core has given it."""
        if self.user is None:
            return
        give(self._view.home, self.user)
        for directory in (self.request.workspace, self.request.exchange, self._view.home):
            closed = _closed_parent(directory)
            if closed:
                raise SandboxError(
                    f"the sandbox's user (uid {self.user}) cannot reach {directory}: {closed} is closed to others",
                    hint="let EVALWRIGHT_WORKSPACES name a directory that everybody can traverse (mode 711)",
                )

    def _explained(self, completed: Completed, account: Path) -> Completed:
        """Tell a command that did not start, and a sandbox that could not be made, from a command that failed."""
        if _ran(account):
            return completed
        said = completed.stderr.text.strip()
        if EXEC_FAILED in said:
            why = said[said.rindex(EXEC_FAILED) + len(EXEC_FAILED) :]
            number = ERRNOS.get(why.rpartition(": ")[2])
            return replace(completed, exit_code=None, signal=None, spawn_error=why, spawn_errno=number)
        if completed.signal or completed.limit or completed.spawn_error:
            return completed
        raise SandboxError(f"bubblewrap could not make the sandbox: {said[-500:]}", hint="check it: evalwright doctor")


def _filter_problems() -> Sequence[Problem]:
    """Say that a machine's calls are not known, so that none is kept from commands."""
    if platform.machine() in ABIS:
        return []
    message = f"bubblewrap filters no system calls on {platform.machine()}, so commands can reach VSOCK, keyrings and io_uring"
    return [Problem(message=message, hint=f"it knows those of {' and '.join(ABIS)}", fatal=False)]


def _ran(account: Path) -> bool:
    """Tell from bubblewrap's account (one JSON document a line) whether the command itself was started."""
    return account.exists() and '"exit-code"' in account.read_text(encoding="utf-8")


def _open_to_all(source: Path) -> bool:
    """Tell whether every user can reach a file or directory of the host."""
    return _closed_parent(source) is None and bool(source.stat().st_mode & 0o004)


def _closed_parent(source: Path) -> Path | None:
    """Return the nearest directory above that other users cannot traverse."""
    return next((parent for parent in source.parents if not parent.stat().st_mode & 0o001), None)
