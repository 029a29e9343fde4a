"""A run whose parties live on a slow network: what `bench end-to-end` starts instead of `cosynth`.

    python -m runner.bench.within PLACE run STUDY --out DIR ...

PLACE is JSON: `network` (delay_s, bytes_per_s) emulated in the session of each party's process, or
`namespaces` (party to namespace), in which the party's process is run. Without `--party` this is the
launcher, which starts every party through this program again; with it, the party itself.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from runner.__main__ import program
from runner.bench.net import shim
from runner.failures import describe
from runner.launch.launcher import launch


def command_of(place: str) -> tuple[str, ...]:
    """The command that replaces `runner.launch.fork_server.PROGRAM`."""
    return (sys.executable, "-P", "-m", "runner.bench.within", place)


def main() -> NoReturn:
    """Be the launcher or a party."""
    place, arguments = sys.argv[1], sys.argv[2:]
    if "--party" not in arguments:
        os._exit(_launch(place, arguments))
    where = json.loads(place)
    party = arguments[arguments.index("--party") + 1]
    if "namespaces" in where:  # the process stays the launcher's child
        os.execvp(
            "ip",
            [
                "ip",
                "netns",
                "exec",
                where["namespaces"][party],
                sys.executable,
                "-P",
                "-m",
                "runner",
                *arguments,
            ],
        )
    sys.argv = ["runner", *arguments]
    program({"way_in": shim.way_in(shim.Network(**where["network"]))})


def _launch(place: str, arguments: list[str]) -> int:
    try:
        launch(
            Path(arguments[1]),
            Path(arguments[arguments.index("--out") + 1]),
            progress="json",
            replace=True,
            program=command_of(place),
        )
    except (Exception, KeyboardInterrupt) as error:
        code, sentence = describe(error)
        print(sentence, file=sys.stderr)
        return code
    return 0


if __name__ == "__main__":
    main()
