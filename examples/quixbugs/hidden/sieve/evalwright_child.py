"""Call a candidate's function on request: arguments come over one pipe, answers leave over another as lines of JSON.

``evalwright_check.py`` starts it, and waits for a first line that says it is ready. It knows no expected value. Python 3.8
or later, standard library.
"""

from __future__ import annotations

import itertools
import json
import marshal
import os
import resource
import sys
from typing import Any

MEMORY_LIMIT_BYTES = 2 * 1024**3
ITEM_LIMIT = 1_000_000


def encode(value: Any) -> Any:
    """Return the JSON form of plain data: scalars as they are, everything else as ``[kind, items]``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind in (dict, list, tuple, set, frozenset, bytes):
        if issubclass(type(value), kind):
            items = value.items() if kind is dict else value
            return [kind.__name__, [encode(item) for item in items]]
    if hasattr(value, "__iter__"):
        return ["iterator", [encode(item) for item in itertools.islice(value, ITEM_LIMIT)]]
    return ["other", []]


def load(directory: str, file: str, function: str) -> Any:
    """Return the function from the candidate's source; no compiled copy beside it is ever used."""
    sys.path.append(directory)
    sys.dont_write_bytecode = True
    name = file.rpartition(".")[0]
    module = sys.modules[name] = type(sys)(name)
    with open(f"{directory}/{file}", "rb") as source:
        exec(compile(source.read(), file, "exec"), module.__dict__)
    return getattr(module, function)


def serve(directory: str, file: str, function: str, request_fd: str, answer_fd: str) -> None:
    """Say that calls can come, and answer them until the other side closes its pipe."""
    requests, answers = os.fdopen(int(request_fd), "rb"), os.fdopen(int(answer_fd), "w")
    answers.write('{"value": null}\n')
    answers.flush()
    loaded = None
    while True:
        try:
            args, kwargs = marshal.load(requests)
        except EOFError:
            return
        try:
            loaded = loaded or load(directory, file, function)
            answer = {"value": encode(loaded(*args, **kwargs))}
        except BaseException as problem:  # whatever a candidate raises, SystemExit included, is its answer
            answer = {"error": type(problem).__name__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    serve(*sys.argv[1:])
