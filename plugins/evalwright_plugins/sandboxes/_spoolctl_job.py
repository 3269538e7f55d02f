"""What a spoolctl job runs: it takes the command's streams, becomes the command, and says why if it cannot.

A program of its own, standard library only. Its one argument is a private directory with ``command.json`` (``argv`` and the
names of variables to drop), the named pipes ``stdout`` and ``stderr``, ``stdin``, and the pipe ``start``: it closes when the
command begins, after holding the reason if it does not.
"""

import json
import os
import sys


def main() -> None:
    """Become the command."""
    place = sys.argv[1]
    start = os.open(f"{place}/start", os.O_WRONLY | os.O_CLOEXEC)
    try:
        with open(f"{place}/command.json", encoding="utf-8") as file:
            command = json.load(file)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = os.open(f"{place}/{name}", os.O_WRONLY if number else os.O_RDONLY)
            os.dup2(stream, number)
            os.close(stream)
        for name in command["drop"]:
            os.environ.pop(name, None)
        argv = [os.fsencode(word) for word in command["argv"]]
        os.execvpe(argv[0], argv, os.environ)
    except (OSError, ValueError) as error:
        os.write(start, f"{getattr(error, 'errno', None) or 0} {error}".encode("utf-8", "replace")[:2000])
        os._exit(127)


if __name__ == "__main__":
    main()
