"""Run the command line as ``python -m evalwright``."""

import sys

from evalwright.cli import main

if __name__ == "__main__":
    sys.exit(main())
