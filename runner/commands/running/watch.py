"""`watch DIR`: a page on this machine that follows a run."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

from mpc_protocols.errors import UsageError
from runner.report.watch.server import watching
from runner.results.outdir import EVENTS, MARK, RUN, beside


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port must be from 0 to 65535, got {arguments.port}.")
    if not arguments.dir.is_dir():
        what = "is not a directory" if arguments.dir.exists() else "does not exist"
        raise UsageError(
            f"{arguments.dir} {what}; name the --out directory of a run, or make it and start the run."
        )
    held = {path.name for path in arguments.dir.iterdir()}
    if held and not held & {MARK, EVENTS, RUN}:
        raise UsageError(
            f"{arguments.dir} holds files, and no run{beside(arguments.dir)}; name the --out directory of a run, or an "
            "empty one, in which one can start."
        )
    if not held:
        print(f"no run has begun in {arguments.dir} yet; the page waits for one", flush=True)
    with suppress(KeyboardInterrupt), watching(arguments.dir, arguments.port) as page:
        print(f"watching {arguments.dir}: {page.address} (Ctrl-C ends this page, not the run)", flush=True)
        while True:
            time.sleep(3600)
