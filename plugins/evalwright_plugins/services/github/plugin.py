"""The service ``github``: a fake GitHub of its own for each trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalwright.interfaces import Deadline, RunningService, Service
from evalwright_plugins.services._messages import Answer, Call
from evalwright_plugins.services._routing import no_route
from evalwright_plugins.services._running import HttpRunning
from evalwright_plugins.services.github import checks, contents, graphql, issues, pulls
from evalwright_plugins.services.github._base import ROUTER, Context
from evalwright_plugins.services.github.begin import begin, shown
from evalwright_plugins.services.github.seed import GithubSeed
from evalwright_plugins.services.github.world import World

__all__ = ["GithubConfig", "GithubService"]

ROUTES = (checks, contents, graphql, issues, pulls)
"""The modules that hold the routes."""

ENTERPRISE = ("/api/v3", "/api")


class GithubConfig(BaseModel):
    """``env`` maps variables of the agent to texts with ``{url}`` and ``{token}``.

    ``guarded`` answers 401 to calls without the trial's token, as GitHub does for a private repository.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    env: dict[str, str] = {
        "GITHUB_API_URL": "{url}",
        "GITHUB_GRAPHQL_URL": "{url}/graphql",
        "GITHUB_TOKEN": "{token}",
    }
    guarded: bool = True


class GithubService(Service[GithubConfig]):
    """Starts a GitHub with the repositories of the case's seed."""

    api = "service/1.0"
    Config = GithubConfig
    Seed = GithubSeed

    def open(self, seed: Path | None, deadline: Deadline) -> RunningService:
        """Start listening. Raises ``ValueError`` for a seed of another form."""
        start = GithubSeed.model_validate_json(seed.read_bytes()) if seed else GithubSeed()
        return HttpRunning(_Github(begin(start)), self.config.env, guarded=self.config.guarded)


class _Github:
    def __init__(self, world: World) -> None:
        self._world = world

    def answer(self, call: Call) -> Answer:
        method = "GET" if call.method == "HEAD" else call.method
        path = next((call.path.removeprefix(start) for start in ENTERPRISE if call.path.startswith(f"{start}/")), call.path)
        found = ROUTER.find(method, path)
        if found is None:
            return no_route(call)
        handler, parameters = found
        return handler(Context(self._world, call), **parameters)

    def denied(self, call: Call) -> Answer:
        message = "Bad credentials" if "authorization" in call.headers else "Requires authentication"
        return Answer(401, {"message": message, "documentation_url": "https://docs.github.com/rest", "status": "401"})

    def state(self) -> dict[str, Any]:
        return shown(self._world)
