"""The arguments of `infer`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

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
        carried_out_by("infer"),
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
