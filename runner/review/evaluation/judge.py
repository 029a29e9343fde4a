"""The figures of an evaluation: distances of marginals, prediction, copies. OFFLINE ONLY, like
`synth.judgement.metrics`.

Each figure stands beside two that say what it means: that of a table with the same single columns and nothing
between them, and that of real rows themselves. All three are compared with the same real rows: those held
out, or one random half where none were. Each brings as many rows to a comparison, at random, as the smallest
of the three has, since few rows lie far from any others: so what is left of a distance beside that of real
rows is the table's. Of few rows several halves and draws are taken, and the mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.data.records import read
from runner.review.evaluation.figure import Figure, mean_of
from runner.review.evaluation.prediction import Prediction, predicted, questions
from runner.review.evaluation.words import lines
from runner.study import DataLocation, VerticalStudy
from runner.study.private_file import read_by_rules
from synth.domain import Domain
from synth.judgement.against_rows import PairBeside, beside
from synth.judgement.metrics import random_cliques, workload_error
from synth.judgement.metrics.copies import share_in

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from parties.data.harmony.rules import Rules
    from parties.data.records import Records
    from runner.report.files import Run
    from runner.study import Study

Table = NDArray[np.integer[Any]]

SETS = 300
"""Of columns for which distances are computed, where there are more: at random, the same in every evaluation."""
SEED = 20_261_122
MAX_ROWS = 1 << 31
WORST = 10
ROWS_DRAWN, MAX_DRAWS = 40_000, 8
"""Of all draws together, and the most draws."""


@dataclass(frozen=True)
class Evaluation:
    """What was found. rows: of the synthetic and the real table.

    distances: by the number of columns, mean total variation, 0 (equal) to 1. worst: pairs with their
    distances, the largest first. relations: of each pair, in the real rows (those held out, if there are) and
    in the table. compared: rows of each table in a comparison, and the rows compared with. prediction: area
    under the ROC curve of a model trained on the table, on real rows; None without a label. copies: share of
    rows that equal a row of one half of the real ones. counts: of the real rows, by column.
    """

    rows: tuple[int, int]
    distances: Mapping[int, Figure]
    worst: Sequence[tuple[Clique, Figure]]
    relations: Sequence[PairBeside]
    compared: tuple[int, int]
    label: str | None
    prediction: Prediction | None
    copies: Figure
    counts: Mapping[str, Sequence[int]]

    def __str__(self) -> str:
        return "\n".join(lines(self))


def real_rows(path: Path, domain: Domain) -> Table:
    """The rows of a file as codes, (rows, columns) in the domain's order. Raises `DataRefused`."""
    with open_source(locate(path)) as source:
        return _codes(read(source, domain, None, max_rows=MAX_ROWS), domain)


def rows_by_rules(path: Path, study: Study, rules: Rules) -> Table:
    """The same of a file that is written as a custodian's table: by the rules of its private file, as a run
    would read it.

    Raises also `StudyInvalid` for rules that do not fit the study, and `UsageError` for a vertical one.
    """
    if isinstance(study, VerticalStudy):
        raise UsageError(
            "A private file says how one owner's own columns are read; join all owners' columns as the study writes them, and "
            "leave --private out."
        )
    unit = study.privacy.unit
    named = (unit.id, unit.max_rows) if rules.leave_out and unit.id is not None else None
    place = read_by_rules(study, DataLocation(path.resolve()), rules).locate()
    with open_source(place) as source:
        return _codes(read(source, study.domain, None, max_rows=MAX_ROWS, unit=named), study.domain)


def _codes(records: Records, domain: Domain) -> Table:
    return np.column_stack([records.codes[name] for name in domain.names]).astype(np.int64)


def judge(
    run: Run,
    real: Table,
    held_out: Table | None = None,
    label: str | None = None,
    owners: NDArray[np.int64] | None = None,
) -> Evaluation:
    """Judge a run's table by real rows. owners: of each real row its person, whose rows are in one half.

    Raises `UsageError`: too few rows, or a label without a use.
    """
    domain, synthetic = run.domain, run.codes.astype(np.int64)
    if min(len(synthetic), len(real)) < 2 or (held_out is not None and not len(held_out)):
        raise UsageError("An evaluation needs at least two synthetic and two real rows.")
    asked = None if label is None else questions(domain, label, real)
    rng = np.random.default_rng(SEED)
    apart = np.column_stack([rng.permutation(column) for column in synthetic.T])
    pairs = _sets(domain, 2, rng)
    sets = {1: _sets(domain, 1, rng), 2: pairs, 3: _sets(domain, 3, rng)}
    sets = {degree: of for degree, of in sets.items() if of}
    draws = draws_of(real, held_out, (synthetic, apart), rng, owners)
    every = {
        clique: figure_of(domain, clique, draws, alone=degree == 1)
        for degree, of in sets.items()
        for clique in of
    }
    known, fresh = draws[0].known, draws[0].fresh
    return Evaluation(
        (len(synthetic), len(real)),
        {degree: mean_of([every[clique] for clique in of]) for degree, of in sets.items()},
        sorted(((pair, every[pair]) for pair in set(pairs)), key=lambda found: (-found[1].value, found[0]))[
            :WORST
        ],
        beside(
            real if held_out is None else held_out, synthetic, domain, sorted(set(pairs), key=pairs.index)
        ),
        (len(draws[0].tables[0]), len(fresh)),
        label,
        None
        if label is None or asked is None
        else predicted(domain, label, asked, [(synthetic, draw.known, draw.fresh) for draw in draws]),
        Figure(share_in(synthetic, known), share_in(apart, known), share_in(fresh, known)),
        {
            name: np.bincount(real[:, place], minlength=domain[name].size).tolist()
            for place, name in enumerate(domain.names)
        },
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """known, fresh: real rows that a run may have seen, and those compared with. tables: synthetic, apart,
    real, alike long."""

    known: Table
    fresh: Table
    tables: tuple[Table, Table, Table]


def draws_of(
    real: Table,
    held_out: Table | None,
    made: tuple[Table, Table],
    rng: np.random.Generator,
    owners: NDArray[np.int64] | None = None,
) -> list[Draw]:
    """Halves and rows to compare. made: the synthetic table, and that of columns apart."""
    found = []
    split = np.random.default_rng(SEED)  # the same halves whatever table is judged
    for _ in range(min(MAX_DRAWS, max(1, ROWS_DRAWN // len(real)))):
        halves = _halves(real, owners, split)
        known, fresh = (halves[0], halves[1]) if held_out is None else (real, held_out)
        rows = min(len(known), len(made[0]))
        tables = [table[rng.permutation(len(table))[:rows]] for table in (*made, known)]
        found.append(Draw(known, fresh, (tables[0], tables[1], tables[2])))
    return found


def _halves(real: Table, owners: NDArray[np.int64] | None, split: np.random.Generator) -> list[Table]:
    if owners is None:
        return np.array_split(split.permutation(real), 2)
    people = np.unique(owners)
    first = np.isin(owners, split.permutation(people)[: len(people) // 2])
    return [real[first], real[~first]]


def figure_of(domain: Domain, clique: Clique, draws: Sequence[Draw], *, alone: bool) -> Figure:
    """The distance of one set of columns, total variation. alone: of one column, which apart is the same."""
    means = [
        float(
            np.mean([workload_error(draw.fresh, draw.tables[place], domain, [clique]) / 2 for draw in draws])
        )
        for place in ((0, 2) if alone else (0, 2, 1))
    ]
    return Figure(means[0], None if alone else means[2], means[1])


def _sets(domain: Domain, degree: int, rng: np.random.Generator) -> list[Clique]:
    if degree > len(domain):
        return []
    every = list(itertools.islice(itertools.combinations(domain.names, degree), SETS + 1))
    return every if len(every) <= SETS else random_cliques(domain, degree, SETS, rng)
