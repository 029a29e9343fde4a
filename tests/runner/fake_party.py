"""A party program for the launcher's tests: the real command line around a `run_party` that does what a test
says.

FAKE_PARTY in the environment: JSON, party -> list of steps, each [name, argument]:
    sleep s · event {..} · fail [class, sentence] · crash · hang (ignores SIGINT and SIGTERM) · stop (SIGSTOP to itself)
    kill n (signal to itself) · default n (the signal's default action: the process dies of it)
    write (the files of a finished run) · touch file · wait (for ever, politely) · certified (crash without certificates)
    after party (until that party has left its report)
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any, NoReturn

import runner.__main__
from mpc_protocols import errors
from runner.party.options import PartyOptions


def run_party(options: PartyOptions) -> None:
    assert options.party is not None
    log = options.out / "cosynth.log"
    log.write_text("log\n")
    for name, argument in json.loads(os.environ.get("FAKE_PARTY", "{}")).get(
        options.party, [["write", None]]
    ):
        STEPS[name](argument, options)  # type: ignore[operator]


def event(argument: dict[str, Any], options: PartyOptions) -> None:
    print(json.dumps({"t": 0.0, "party": options.party, **argument}), flush=True)


def fail(argument: list[str], options: PartyOptions) -> None:
    raise getattr(errors, argument[0])(argument[1])


def hang(argument: None, options: PartyOptions) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def write(argument: None, options: PartyOptions) -> None:
    for name in ("synthetic.csv", "report.html", "measurements.json", "model.npz", "events.jsonl"):
        (options.out / name).write_text(f"{name} of {options.party}\n")
    run = {
        "study": "trial",
        "deployment": "one-machine",
        "rows": 3,
        "parties": [{"name": n} for n in ("north", "south", "west")],
    }
    (options.out / "run.json").write_text(json.dumps(run))


def crash(argument: None, options: PartyOptions) -> None:
    raise ValueError("a secret value of a record")


def certified(argument: None, options: PartyOptions) -> None:
    certs = options.certs
    assert certs is not None and all(
        path is not None and path.stat().st_size for path in (certs.ca, certs.cert, certs.key)
    )


def after(argument: str, options: PartyOptions) -> None:
    report = Path(sys.argv[sys.argv.index("--job") + 1]).parent / f"{argument}.report"
    while not report.exists():
        time.sleep(0.01)


STEPS = {
    "after": after,
    "sleep": lambda argument, _: time.sleep(argument),
    "wait": lambda *_: time.sleep(600),
    "event": event,
    "fail": fail,
    "hang": hang,
    "write": write,
    "crash": crash,
    "certified": certified,
    "stop": lambda *_: os.kill(os.getpid(), signal.SIGSTOP),
    "kill": lambda argument, _: os.kill(os.getpid(), argument),
    "default": lambda argument, _: signal.signal(argument, signal.SIG_DFL),
    "touch": lambda argument, _: Path(argument).touch(),
}


def main() -> NoReturn:
    """The program."""
    fake = types.ModuleType("runner.party.process")
    fake.run_party = run_party  # type: ignore[attr-defined]
    sys.modules["runner.party.process"] = fake
    runner.__main__.program()


if __name__ == "__main__":
    main()
