"""`python -m runner` and the console script `cosynth`."""

import sys

from runner.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
