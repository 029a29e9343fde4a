"""A finished run, as Python sees it. Whatever is asked of it is a function of what the run has released: no
further budget."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mpc_protocols.errors import UsageError
from mpc_protocols.process.foreign_text import printable
from mpc_protocols.process.later import Later
from parties.data.libraries import pd
from parties.data.scratch import Scratch
from runner.api.card import card
from runner.api.conditions import allowed
from runner.api.handed_over import named, written
from runner.api.inference import answers, check_form, frame
from runner.api.plot import Picture, Report
from runner.report.drawings.pictures import pictures
from runner.report.files import load, measurements_of
from runner.results.columns import frame_of
from runner.results.finished_run import agreed_study, open_run
from runner.results.linked import linked_of
from runner.results.model_graph import attribute_graph, junction_tree
from runner.results.outdir import RUN, table_of
from runner.results.query import ask
from runner.results.warnings import texts_of
from runner.study.model import DataLocation
from synth.inference.replicates import MAX_REPLICATES, Replicates, draw_tables
from synth.mrf import conditional

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    from parties.data.linked.rows import CodedTables
    from runner.results.finished_run import FinishedRun
    from runner.review.evaluation import judge, linked_rows
    from runner.review.evaluation.judge import Evaluation
    from runner.review.evaluation.linked import LinkedEvaluation
    from runner.study import Study
    from synth.domain import Domain
    from synth.inference import Target
    from synth.synthesis import Measured
else:
    judge = Later("runner.review.evaluation.judge")
    linked_rows = Later("runner.review.evaluation.linked_rows")

MAX_ROWS = 1 << 27
"""Of one sample."""


@dataclass(frozen=True)
class Run:
    """A finished run: where its files are, and the content of its run.json.

    holder: what must live as long as the run, such as a temporary directory.
    """

    directory: Path
    summary: Mapping[str, Any] = field(repr=False)
    holder: object = field(default=None, repr=False, compare=False)

    @property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic table; a missing value is NaN, days and times are pandas' own."""
        texts = {
            column["name"]: str
            for column in self.summary["columns"]
            if any(isinstance(value, str) for value in column.get("values", ()))
        }
        return pd.read_csv(
            self.directory / table_of(self.summary),
            dtype=texts,
            keep_default_na=False,
            na_values=[""],
            parse_dates=[column["name"] for column in self.summary["columns"] if "step" in column],
        )

    @property
    def report(self) -> Report:
        """The path of the HTML report; a notebook shows it as the page."""
        return Report(self.directory / "report.html")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be known before the table is used, the most important first; empty if there is nothing
        of that kind."""
        return texts_of(self.summary)

    def __str__(self) -> str:
        facts, told = self.summary, [f"WARNING: {text}" for text in self.warnings]
        relations = facts.get("relations", {}).get("sentence")
        return printable(
            "\n".join(
                [
                    f"{facts['study']}: {facts['rows']:,} rows, {len(facts['columns'])} columns, epsilon "
                    f"{facts['privacy']['epsilon']:g}, in {self.directory}",
                    *([relations] if relations else []),
                    *told,
                ]
            )
        )

    @property
    def measurements(self) -> tuple[Measured, ...]:
        """Every noisy marginal that was opened, in order: `columns`, `values` (int64, row-major), `sigma2`,
        `round`."""
        return self._measurements

    def sample(
        self, rows: int, where: Mapping[str, Any] | None = None, *, seed: int | None = None
    ) -> pd.DataFrame:
        """Fresh rows from the model; with `where` those that the model expects among rows of this kind.

        where: of each column named a value, a list of values (None: missing), or `cosynth.between(low,
        high)`; a number stands for its whole bin. seed: the same rows for the same seed. Raises `UsageError`
        for values that the study does not have, or that no row of the model has together.
        """
        if not isinstance(rows, int | np.integer) or not 0 <= rows <= MAX_ROWS:
            raise UsageError(f"A sample has from 0 to {MAX_ROWS:,} rows, got {rows!r}.")
        opened, model = self._opened, self._opened.model
        if where:
            try:
                model = conditional.given(model, allowed(opened.domain, where))
            except ValueError as error:
                raise UsageError(str(error)) from None
        start = secrets.randbits(64) if seed is None else seed
        codes = model.sample(rows, np.random.default_rng([start, 0]))
        return frame_of(codes, opened.domain, start)

    def replicates(
        self, number: int = 20, rows: int | None = None, *, seed: int | None = None
    ) -> list[pd.DataFrame]:
        """Tables as further releases would be: how an estimate differs among them tells its error
        (`docs/howto/answer-a-question.md`).

        rows: of each; default: as many as the released table has. Raises `UsageError`: fewer than 2, a run
        whose counts are not of all rows.
        """
        if not 2 <= number <= MAX_REPLICATES:
            raise UsageError(f"From 2 to {MAX_REPLICATES} replicates can be made, got {number}.")
        opened, wanted = self._opened, int(self.summary["rows"]) if rows is None else rows
        if not 0 <= wanted <= MAX_ROWS:
            raise UsageError(f"A replicate has from 0 to {MAX_ROWS:,} rows, got {wanted}.")
        check_form(opened.facts)
        made = Replicates(opened.model, self._measurements, opened.facts)
        start = secrets.randbits(64) if seed is None else seed
        tables = draw_tables(made, number, wanted, start)
        return [frame_of(codes, opened.domain, start + place) for place, codes in enumerate(tables)]

    def query(self, *columns: str) -> pd.DataFrame:
        """A marginal of the model: a row for each combination of values, with its expected count and share.

        `standard_error` is that of a count, from the noise of what was released; NaN where these columns were
        not counted together. `frame.attrs["basis"]` says which: "measured", "measured over bins" or "not
        measured together". Raises `UsageError`.
        """
        answer = ask(self._opened, self._measurements, columns, "The run")
        frame = pd.DataFrame(answer.values, columns=list(answer.columns))
        frame["count"], frame["share"] = answer.counts, answer.shares
        frame["standard_error"] = float("nan") if answer.standard_error is None else answer.standard_error
        frame.attrs.update(basis=answer.basis, total=answer.total)
        return frame

    def infer(
        self, *questions: str, level: float = 0.95, target: Target = "population", joint: bool = False
    ) -> pd.DataFrame:
        """Means, shares, quantiles, correlations, regressions with intervals: a row for each number that is
        asked for.

        questions: `"mean(age)"`, `"share(income == '>50K' | sex == 'F')"`, `"income ~ age + sex"`
        (`docs/howto/answer-a-question.md`); none: those that the study has registered. target: "population",
        of the people that the rows were drawn from, or "rows", these. joint: all intervals hold together at
        the level. Columns: `runner.api.inference.COLUMNS`; without an interval (`low` NaN) `reason` says why,
        and what would have to be measured. `frame.attrs["note"]` says what is to be known of all answers of
        this run, if anything is. Raises `UsageError` for a question that does not fit the run.
        """
        found = answers(self._opened, self._measurements, questions, level=level, target=target, joint=joint)
        return frame(found, level, target, self._opened.facts)

    def plot(self, *kinds: str) -> Picture:
        """The report's pictures, shown in a notebook or saved as a file: "pairs", "columns", "graph",
        "budget"; default all.

        Whiskers are 95 % intervals of the rows' shares, for the noise. Raises `UsageError` for another kind.
        """
        html, parts = pictures(load(self.directory), kinds)
        return Picture(html, parts)

    def graph(self) -> nx.Graph:
        """Which columns the released model connects, and how strongly: a networkx graph
        (`runner.results.model_graph`)."""
        return attribute_graph(self._opened)

    def junction_tree(self) -> nx.Graph:
        """The released model's junction tree: a networkx graph (`runner.results.model_graph`)."""
        return junction_tree(self._opened)

    @overload
    def evaluate(
        self, real: pd.DataFrame, test: pd.DataFrame | None = None, label: str | None = None
    ) -> Evaluation: ...

    @overload
    def evaluate(
        self,
        real: Mapping[str, pd.DataFrame],
        test: Mapping[str, pd.DataFrame] | None = None,
        label: str | None = None,
    ) -> LinkedEvaluation: ...

    def evaluate(
        self,
        real: pd.DataFrame | Mapping[str, pd.DataFrame],
        test: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
        label: str | None = None,
    ) -> Evaluation | LinkedEvaluation:
        """How good the table is, by real rows. NOT PRIVATE: for whoever holds these
        (`docs/howto/judge-a-result.md`).

        real: rows with all columns of the study; of linked tables a frame of each, by name. test: real rows
        that were not in the run. label: a column to predict. Raises `DataRefused` for rows that do not fit
        the study, `UsageError`.
        """
        finished = load(self.directory)
        linked = linked_of(finished.facts, finished.domain, self.directory)
        with named({}):
            if linked is not None:
                from runner.review.evaluation.linked import judge_linked

                study = agreed_study(finished.facts, self.directory / RUN)
                made, own = linked_rows.released_tables(self.directory, linked), _tables(real, study)
                held_out = None if test is None else _tables(test, study)
                return judge_linked(finished, linked, made, own, held_out, label)
            if isinstance(real, Mapping) or isinstance(test, Mapping):
                raise UsageError("This run has one table: give one frame of real rows, and one of test rows.")
            fresh = None if test is None else _coded(test, finished.domain, "The frame of test rows")
            return judge.judge(
                finished, _coded(real, finished.domain, "The frame of real rows"), fresh, label
            )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self)

    @cached_property
    def _opened(self) -> FinishedRun:
        return open_run(self.directory)

    @cached_property
    def _measurements(self) -> tuple[Measured, ...]:
        return measurements_of(self.directory, self._opened.domain)


def _tables(frames: pd.DataFrame | Mapping[str, pd.DataFrame], study: Study) -> CodedTables:
    """Linked tables as codes, of a frame of each."""
    if not isinstance(frames, Mapping):
        raise UsageError("This run is of linked tables: give real={...}, a frame of each by its name.")
    with Scratch(watched=True) as folder:
        files = {folder / f"{number}.parquet": name for number, name in enumerate(frames)}
        with named({file: f"The frame {name}" for file, name in files.items()}):
            for file, name in files.items():
                written(frames[name], file, f"The frame {name}")
            tables = {name: DataLocation(file) for file, name in files.items()}
            return linked_rows.real_tables(DataLocation(tables=tables), study, None)


def _coded(frame: pd.DataFrame, domain: Domain, name: str) -> NDArray[np.integer[Any]]:
    """The rows of a frame as codes; sentences call it by its name, and never by a file's."""
    with Scratch(watched=True) as folder:
        file = folder / "rows.parquet"
        with named({file: name}):
            written(frame, file, name)
            return judge.real_rows(file, domain)
