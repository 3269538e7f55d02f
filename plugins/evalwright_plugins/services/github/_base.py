"""What all routes of the fake GitHub share: the context of a call, look-ups, pages and error bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

from evalwright_plugins.services._messages import Answer, Call, Refusal, is_array
from evalwright_plugins.services._routing import Router
from evalwright_plugins.services.github.render import Renderer
from evalwright_plugins.services.github.world import Issue, Pull, Repository, World

__all__ = ["MOST_COMMITS", "ROUTER", "Context", "Handler", "invalid", "not_found", "refuse", "route"]

DOCUMENTATION = "https://docs.github.com/rest"
MAX_PER_PAGE = 100
MAX_TEXT = 65536
MOST_BRANCHES = 100
MOST_COMMITS = 500
T = TypeVar("T")
Handler = Callable[..., Answer]
ROUTER: Router[Handler] = Router()
route = ROUTER.add


def refuse(status: int, message: str, **more: Any) -> NoReturn:
    """Turn a call down with an error body as GitHub's."""
    body = {"message": message, **more, "documentation_url": DOCUMENTATION, "status": str(status)}
    raise Refusal(Answer(status, body))


def not_found() -> NoReturn:
    """Turn a call down for something that is not there."""
    refuse(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid", message: str | None = None) -> NoReturn:
    """Turn a call down for a field that is wrong."""
    error = {"resource": resource, "field": field, "code": code} | ({"message": message} if message else {})
    refuse(422, "Validation Failed", errors=[error])


class Context:
    """One call to a world."""

    def __init__(self, world: World, call: Call) -> None:
        self.world = world
        self.call = call
        self.base = f"http://{call.headers.get('host', 'localhost')}"
        self.render = Renderer(self.base, world)

    def repository(self, owner: str, repo: str) -> Repository:
        """Return a repository; names are the same in upper and lower case."""
        return self.world.repositories.get(f"{owner}/{repo}".lower()) or not_found()

    def issue(self, repository: Repository, number: str) -> Issue:
        """Return an issue or a pull request."""
        return (repository.issues.get(int(number)) if _number(number) else None) or not_found()

    def pull(self, repository: Repository, number: str) -> tuple[Issue, Pull]:
        """Return a pull request."""
        issue = self.issue(repository, number)
        return issue, issue.pull or not_found()

    def text(self, resource: str, field: str, default: str | None = None, *, longest: int = MAX_TEXT) -> str:
        """Return a text of the body of at most ``longest`` characters, ``default`` where it is absent.

        Without a default it must be there and not be empty.
        """
        value = self.call.fields.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value.strip()):
            return invalid(resource, field, "missing_field" if value is None or value == "" else "invalid")
        if len(value) > longest:
            return invalid(resource, field, "custom", f"{field} is too long (maximum is {longest} characters)")
        return value

    def texts(self, resource: str, field: str) -> list[str]:
        """Return a list of texts of the body; the body itself may be that list."""
        value = self.call.body if is_array(self.call.body) else self.call.fields.get(field)
        if not is_array(value) or not all(isinstance(item, str) and item for item in value):
            return invalid(resource, field)
        return [str(item) for item in value]

    def page(self, items: Sequence[T], render: Callable[[T], Any], *, place: str | None = None) -> Answer:
        """Answer with one page, and with links to the others; ``place`` is the key of the list in an object with its total."""
        size = min(max(_whole(self.call.query.get("per_page"), 30), 1), MAX_PER_PAGE)
        page = max(_whole(self.call.query.get("page"), 1), 1)
        last = max((len(items) + size - 1) // size, 1)
        body: Any = [render(item) for item in items[(page - 1) * size : page * size]]
        links = {"prev": page - 1, "first": 1} if page > 1 else {}
        links |= {"next": page + 1, "last": last} if page < last else {}
        shown = [f'<{self._url(page=number, per_page=size)}>; rel="{name}"' for name, number in links.items()]
        if place:
            body = {"total_count": len(items), "incomplete_results": False, place: body}
        return Answer(200, body, {"Link": ", ".join(shown)} if shown else {})

    def _url(self, **query: int) -> str:
        return f"{self.base}{self.call.path}?{urlencode({**self.call.query, **query})}"


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and _number(text) else default
