"""The launcher as a process of its own, with the party program of the tests: python fake_launcher.py STUDY
OUT [--json]."""

from __future__ import annotations

import sys
from pathlib import Path

from runner.failures import describe
from runner.launch.launcher import launch
from tests.runner.test_launch import PROGRAM

if __name__ == "__main__":
    try:
        launch(
            Path(sys.argv[1]),
            Path(sys.argv[2]),
            progress="json" if "--json" in sys.argv else "human",
            program=PROGRAM,
        )
    except (Exception, KeyboardInterrupt) as error:
        code, sentence = describe(error)
        print(sentence, file=sys.stderr)
        sys.exit(code)
