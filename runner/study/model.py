"""A study as every party holds it: the frozen form of the public TOML file (`docs/reference/study-file.md`).

Everything here is public except `Party.data`, which says where one custodian's own table lies; `data` is part
of neither the digest nor `Study.public()`. Values are valid once a Study exists: `runner.study.read` is the
only place that builds one. Standard library only: the launcher imports this file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.functionality import Adjacency
from mpc_protocols.process.later import Later
from parties.data.harmony.rules import RFC, Dialect
from parties.data.location import locate
from runner.study.declared.tables import Alignment, Privacy, Session
from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from synth.training import Training
from synth.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from mpc_protocols.options import Options
    from parties.data.harmony.recipe import Recipe
    from parties.data.linked import places
    from parties.data.linked.draw_key import DrawKey
    from parties.data.location import Location
    from parties.data.tallies.places import DaskCluster, EngineTallies, TallyFiles
    from runner.starting import proposed
    from runner.starting.proposed import Proposed
    from runner.study import in_code, read, toml_text
    from runner.study.sections.contributors import Contributors
    from runner.study.sections.inference import Inference
    from runner.study.sections.prior import StudyPrior
    from synth.config import AlgorithmConfig
    from synth.domain import Domain
    from synth.linked.tables import LinkedTables
else:
    in_code = Later("runner.study.in_code")
    places = Later("parties.data.linked.places")
    proposed = Later("runner.starting.proposed")
    read = Later("runner.study.read")
    toml_text = Later("runner.study.toml_text")


@dataclass(frozen=True)
class DataLocation:
    """Where a custodian's table is: a .csv or .parquet file (absolute path), a table of a database, or the
    counts of its parts.

    The address may hold a password and is not even in the `repr`. dialect, recipe: what the custodian's
    private file says of the table; None: it is read as it is. push_down: its rows may not leave the database.

    tables: of several tables that are named, the places by name, until they are found to be the study's; then
    `children` has those of the tables of children, `linked` is the study's, and this is where the parent
    table is. draws: the key of the draws.
    """

    path: Path | None = None
    url: str | None = field(default=None, repr=False)
    table: str | None = None
    dialect: Dialect = RFC
    recipe: Recipe | None = field(default=None, repr=False)
    push_down: bool = False
    tallies: TallyFiles | EngineTallies | None = None
    cluster: DaskCluster | None = None
    tables: Mapping[str, DataLocation] | None = None
    children: Mapping[str, DataLocation] | None = None
    linked: LinkedTables | None = field(default=None, repr=False)
    draws: DrawKey | None = field(default=None, repr=False)

    @property
    def parts(self) -> TallyFiles | EngineTallies | DaskCluster | None:
        """Where parts of the table are counted; None of a table that is read here."""
        return self.tallies or self.cluster

    @property
    def dataset(self) -> str:
        """The ledger's name for the data when the custodian gives none. Raises as `locate`."""
        return self.locate().dataset if self.parts is None else self.parts.dataset

    def locate(self) -> Location:
        """The place of rows, as `parties.data.location` knows it. Raises `StudyInvalid` or `DataRefused`."""
        place = locate(
            self.path
            if self.path is not None
            else {"url": self.url, "table": self.table, "push_down": self.push_down}
        )
        dialect = self.dialect if place.path is None else self.dialect.of(place.path)
        place = replace(place, dialect=dialect, recipe=self.recipe)
        if self.linked is None:
            return place
        children = {name: child.locate() for name, child in (self.children or {}).items()}
        return replace(place, linked=places.LinkedPlaces(self.linked, children, self.draws))


@dataclass(frozen=True)
class Party:
    """One [[party]]. `fingerprint` is the SHA-256 of its certificate in lower-case hex; `data` stays at this
    party."""

    name: str
    host: str
    port: int
    compute: bool
    data: DataLocation | None = None
    fingerprint: str | None = None
    columns: tuple[str, ...] | None = None

    @property
    def address(self) -> str:
        """host:port, with brackets round an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def unchecked_inputs(backend: Backend, partition: str, bundles: bool, chosen: bool) -> str | None:
    """Why contributors' inputs are not checked, a part of a sentence; None if they are. chosen: whether
    custodians choose by themselves what they answer."""
    if chosen:
        return "what a custodian chooses to answer need not be counts"
    if partition == "vertical":
        return "owners of columns share rows, not counts"
    if bundles:
        return "bundles are added up before they are shared"
    return backend.unchecked or None


@dataclass(frozen=True)
class Study:
    """A valid study; of vertical partitions, a `VerticalStudy`.

    config, options: the algorithm's and the backend's own tables. tree: the parsed TOML, as the digest sees
    it. contributors: who may leave a bundle; None of a study without. inference: the questions that are
    registered; None of a study without. linked: the tables that belong together, of which `domain` has a row
    a person; None of a study of one table. prior: what the run begins from; None of a study that begins from
    nothing.
    """

    path: Path
    name: str
    algorithm: str
    backend: str
    partition: str
    security: str
    research: bool
    privacy: Privacy
    workload_spec: Mapping[str, Any]
    config: AlgorithmConfig
    options: Options
    domain: Domain
    session: Session
    parties: tuple[Party, ...]
    tree: Mapping[str, Any] = field(repr=False)
    contributors: Contributors | None
    inference: Inference | None
    linked: LinkedTables | None
    prior: StudyPrior | None

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Study:
        """The study of a file. Raises `StudyInvalid` with its first problem."""
        return read.load(Path(path))

    @staticmethod
    def from_dict(tree: Mapping[str, Any], base: str | os.PathLike[str] = ".") -> Study:
        """The study of a tree with the study file's tables and keys. base: where relative paths in it start.

        Raises `StudyInvalid` with the first problem.
        """
        return in_code.from_dict(tree, Path(base).resolve())

    @staticmethod
    def from_toml(text: str, base: str | os.PathLike[str] = ".") -> Study:
        """The study of a study file's text. Otherwise as `from_dict`."""
        return in_code.from_toml(text, Path(base).resolve())

    @staticmethod
    def of(
        name: str,
        columns: Mapping[str, Any],
        parties: Iterable[str | Mapping[str, Any]],
        *,
        epsilon: float,
        delta: float,
        algorithm: str | None = None,
        backend: str = "replicated",
        partition: str = "horizontal",
        adjacency: Adjacency = "add-remove",
        workload: Mapping[str, Any] | None = None,
        **tables: Mapping[str, Any],
    ) -> Study:
        """A study from Python, in the study file's words.

        columns: of each column its size or its table, as under [domain.columns]. parties: names, for a run on
        this machine, or tables as under [[party]]. algorithm: default: that whose table is given, else the
        one that `init` proposes. workload: default: all pairs of columns. tables: further keys of any table,
        such as mosaic={"rounds": 20} or privacy={"max_rows": 5000}. Raises `StudyInvalid` with the first
        problem.
        """
        return in_code.of(
            name,
            columns,
            parties,
            epsilon=epsilon,
            delta=delta,
            algorithm=algorithm,
            backend=backend,
            partition=partition,
            adjacency=adjacency,
            workload=workload,
            tables=tables,
        )

    @staticmethod
    def propose(
        table: pd.DataFrame
        | str
        | os.PathLike[str]
        | Mapping[str, pd.DataFrame | str | os.PathLike[str]]
        | None = None,
        /,
        *,
        key: str | None = None,
        **custodians: pd.DataFrame | str | os.PathLike[str],
    ) -> Proposed:
        """Columns for `Study.of`, from a frame or file, or from one of each custodian:
        `Study.propose(north=a, south=b)`; of one custodian's linked tables, people first:
        `Study.propose({"patients": a, "visits": b})`.

        Several custodians' are compared: names without capitals, codes, units. key: of linked tables, the
        column that names the person, where several could. What comes back was read off rows and is private
        until `to_confirm` is confirmed by what is publicly known. Raises `UsageError`, `DataRefused`.
        """
        return proposed.propose(table, custodians, key)

    def to_toml(self) -> str:
        """The text of a study file that holds this study, without its comments."""
        return toml_text.to_toml(self.tree)

    @cached_property
    def workload(self) -> Workload:
        """The workload's cliques (a random subset of a degree needs NumPy); every column alone in a study
        that has none."""
        if not self.workload_spec:
            return Workload(self.domain, tuple((name,) for name in self.domain.names))
        return Workload.from_spec(self.workload_spec, self.domain)

    @cached_property
    def computing(self) -> tuple[Party, ...]:
        """The computing parties in the study's order: P0, P1, P2."""
        return tuple(party for party in self.parties if party.compute)

    @cached_property
    def contributing(self) -> tuple[Party, ...]:
        """The parties that do not compute, in the study's order."""
        return tuple(party for party in self.parties if not party.compute)

    @cached_property
    def numbered(self) -> tuple[Party, ...]:
        """All parties by wire number: computing ones first, contributors after them."""
        return self.computing + self.contributing

    @property
    def descriptor(self) -> Backend:
        """The backend, as its own table and the study's security configure it."""
        return BACKENDS[self.backend].configured(self.options, self.partition).secured(self.security)

    @property
    def checks_inputs(self) -> bool:
        """Whether there is somebody whose counts are checked on shares (`docs/design/inputs.md`)."""
        return not self.inputs_unchecked and bool(self.to_check)

    @property
    def to_check(self) -> tuple[Party, ...]:
        """Whose counts need a check: contributors'; everybody's where a computing party may deviate."""
        return self.parties if self.descriptor.malicious else self.contributing

    @property
    def inputs_unchecked(self) -> str | None:
        """Why contributors' inputs cannot be checked in a study like this one, a part of a sentence; None if
        they can."""
        chosen = ALGORITHMS[self.algorithm].cohorts(self.config) is not None
        return unchecked_inputs(self.descriptor, self.partition, self.contributors is not None, chosen)

    @property
    def resumes(self) -> bool:
        """Whether an interrupted run of it can be gone on with: its releases are recorded, one by one."""
        algorithm = ALGORITHMS[self.algorithm]
        trains = isinstance(
            algorithm, TrainedAlgorithm | Training
        )  # no step of a training is ever made twice
        by_itself = algorithm.reporting(self.config) or algorithm.cohorts(self.config)
        return self.descriptor.resumes and not trains and by_itself is None

    @property
    def leader_number(self) -> int:
        """The wire number of the party that runs the synthesizer."""
        return BACKENDS[self.backend].leader(len(self.computing))

    @property
    def leader(self) -> Party:
        """The party that runs the synthesizer."""
        return self.numbered[self.leader_number]

    def party(self, name: str) -> Party:
        """The party of this name. Raises KeyError."""
        for party in self.parties:
            if party.name == name:
                return party
        raise KeyError(name)

    def public(self) -> dict[str, Any]:
        """JSON-able form with every default filled in and the domain's columns in order; holds no `data`. For
        run.json."""
        unit = self.privacy.unit
        return {
            "study": {
                "name": self.name,
                "algorithm": self.algorithm,
                "backend": self.backend,
                "partition": self.partition,
                "security": self.security,
                **({"research": True} if self.research else {}),
            },
            "privacy": {
                "epsilon": float(self.privacy.epsilon),
                "delta": float(self.privacy.delta),
                "adjacency": self.privacy.adjacency,
                "max_rows": self.privacy.max_rows,
                "unit": {"identifier": list(unit.identifier)}
                if unit.identifier
                else "row"
                if unit.id is None
                else {"id": unit.id, "max_rows": unit.max_rows, "max_custodians": unit.max_custodians},
            },
            **({"workload": dict(self.workload_spec)} if self.workload_spec else {}),
            self.algorithm: self.config.public(),
            **({self.backend: options} if (options := self.options.public()) else {}),
            "domain": self.domain.to_spec(),
            "session": self.session.public(),
            **({} if self.contributors is None else {"contributors": self.contributors.public()}),
            **({} if self.inference is None else {"inference": self.inference.public()}),
            **({} if self.linked is None else {"table": self.linked.to_spec()}),
            **({} if self.prior is None else {"prior": self.prior.public()}),
            "party": [
                {
                    "name": party.name,
                    "address": party.address,
                    "compute": party.compute,
                    **({"columns": list(party.columns)} if party.columns is not None else {}),
                }
                for party in self.parties
            ],
        }


@dataclass(frozen=True)
class VerticalStudy(Study):
    """A valid study of owners of different columns."""

    alignment: Alignment

    def public(self) -> dict[str, Any]:
        return super().public() | {"alignment": self.alignment.agreed(self.privacy.adjacency)}
