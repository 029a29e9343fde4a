"""`infer DIR QUESTION...`: numbers with intervals from a finished run's released measurements."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.process.foreign_text import printable
from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands
    from synth.inference import Answer

DESCRIPTION = """\
Answer questions from what the run has released, each number with an interval that holds for the
noise of the privacy and for the drawing of the people. A number that no released marginal carries
gets no interval but the reason, and what would have to be measured. Asking costs no further budget.

questions: mean(age), mean(income | sex == 'F'), mean(income) | sex, share(work == 'Private' | age < 30),
differences and ratios of these, count(...), sum(...), median(age), quantile(age, 0.9), corr(age, income),
cramers_v(work, sex), table(sex, work), and regressions: "income ~ age + C(sex)",
"logistic(smoker == 'yes' ~ age)"
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "infer",
        run,
        description=DESCRIPTION,
        examples="""\
  cosynth infer out "mean(age)" "share(income == '>50K' | sex == 'F')"
  cosynth infer out "income ~ age + sex" --rows --level 0.9
""",
    )
    parser.add_argument("dir", metavar="DIR", type=Path, help="the --out directory of a finished run")
    parser.add_argument(
        "questions",
        metavar="QUESTION",
        nargs="*",
        help="a question, in quotes; default: those that the study has registered",
    )
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals (0.95)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "--population",
        dest="target",
        action="store_const",
        const="population",
        default="population",
        help="of the people that the rows were drawn from (the default)",
    )
    target.add_argument(
        "--rows",
        dest="target",
        action="store_const",
        const="rows",
        help="of these rows: noise of the privacy only",
    )
    parser.add_argument("--joint", action="store_true", help="intervals that hold at the level all together")
    parser.add_argument("--json", action="store_true", help="a JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Run the command. Raises `UsageError` after the answers if a package is missing for others."""
    from mpc_protocols.errors import UsageError
    from runner.api.inference import answers, note, row
    from runner.report.files import measurements_of
    from runner.results.finished_run import open_run
    from runner.results.warnings import tell, texts_of
    from synth.inference import NOT_COMPUTED

    finished = open_run(arguments.dir)
    measurements = measurements_of(arguments.dir, finished.domain)
    level, target = arguments.level, arguments.target
    found = answers(
        finished, measurements, arguments.questions, level=level, target=target, joint=arguments.joint
    )
    of_all = note(finished.facts)
    if arguments.json:
        print(
            json.dumps(
                {
                    "level": level,
                    "target": target,
                    "joint": arguments.joint,
                    "note": of_all,
                    "answers": [row(a) for a in found],
                }
            )
        )
    else:
        _print(found, level, target, arguments.joint)
        if of_all:
            print(of_all)
    tell(texts_of(finished.facts))
    for answer in found:
        if answer.licence == NOT_COMPUTED:
            raise UsageError(answer.reason)


def _print(found: Sequence[Answer], level: float, target: str, joint: bool) -> None:
    header = ("", "estimate", f"{100 * level:g} % interval", "noise", "table")
    lines = [header]
    for answer in found:
        if answer.estimate is None:
            lines.append((printable(answer.name), "none", answer.licence, "", ""))
            continue
        share = "" if answer.noise_share is None else f"{100 * answer.noise_share:.0f} %"
        table = "" if answer.table is None else f"{answer.table:.5g}"
        lines.append(
            (
                printable(answer.name),
                f"{answer.estimate:.5g}",
                f"{answer.low:.5g} to {answer.high:.5g}",
                share,
                table,
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        cells = [
            text.ljust(w) if i == 0 else text.rjust(w)
            for i, (text, w) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    of = "the people that the rows were drawn from" if target == "population" else "these rows"
    print(f"of {of}; noise: its share of the variance{'; all intervals hold together' if joint else ''}")
    told: dict[str, None] = {}
    for answer in found:
        if answer.reason:
            told[answer.reason] = None
        if answer.note:
            told[f"{answer.name}: {answer.note}"] = None
        if answer.licence == "measured over bins":
            told[
                f"{answer.name}: measured over bins only; the interval allows for any values within these."
            ] = None
        elif answer.bounds is not None and answer.bounds != (answer.low, answer.high):
            low, high = answer.bounds
            told[
                f"{answer.name}: with every value in the middle of its bin; wherever in their bins they are, "
                f"{low:.5g} to {high:.5g}."
            ] = None
    for text in told:
        print(printable(text))
