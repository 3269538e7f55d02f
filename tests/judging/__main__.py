"""Write the page of hostile judges: ``python -m tests.judging``."""

from __future__ import annotations

from tests.judging.hostile import bodies, outcomes
from tests.judging.page import PAGE, page_with


def main() -> None:
    """Ask, and write what became of it."""
    given = bodies()
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), given, outcomes(given)), encoding="utf-8")
    print(f"{len(given)} bodies: {PAGE}")


if __name__ == "__main__":
    main()
