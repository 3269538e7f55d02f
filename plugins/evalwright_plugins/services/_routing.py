"""From a method and a path to what answers it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import unquote

from evalwright_plugins.services._messages import Answer, Call

__all__ = ["Router", "no_route", "path_pattern"]

T = TypeVar("T")
PARAMETER = re.compile(r"\{([A-Za-z_]\w*)(\.\.\.)?\}", re.ASCII)


def path_pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of a path such as ``/orders/{id}``; ``{path...}`` takes the rest, slashes too, or nothing.

    Raises ``ValueError`` for a template that does not start with a slash or names a parameter twice.
    """
    if not template.startswith("/"):
        raise ValueError(f"{template!r} must start with a slash")
    words, at = list[str](), 0
    for found in PARAMETER.finditer(template):
        words += [re.escape(template[at : found.start()]), f"(?P<{found[1]}>{'.*' if found[2] else '[^/]+'})"]
        at = found.end()
    try:
        return re.compile("".join(words) + re.escape(template[at:]).rstrip("/"))
    except re.error as error:
        raise ValueError(f"{template!r} is no path: {error}") from error


def no_route(call: Call) -> Answer:
    """Return the answer to a call that nothing fits: 404 that names the route."""
    route = f"{call.method} {unquote(call.path)}"
    return Answer(404, {"message": "Not Found", "error": f"this service has no route {route}", "route": route}, unknown=True)


class Router(Generic[T]):
    """Finds the handler of a call. The first route that fits counts."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], T]] = []

    def add(self, method: str, template: str) -> Callable[[T], T]:
        """Return a decorator that makes its function the handler of a route."""

        def decorate(handler: T) -> T:
            self._routes.append((method, path_pattern(template), handler))
            return handler

        return decorate

    def find(self, method: str, path: str) -> tuple[T, dict[str, str]] | None:
        """Return the handler with the decoded parameters of the path, ``None`` when no route fits."""
        for wanted, pattern, handler in self._routes:
            if wanted == method and (match := pattern.fullmatch(path)):
                return handler, {name: unquote(value) for name, value in match.groupdict().items()}
        return None
