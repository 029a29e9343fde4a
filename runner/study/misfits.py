"""What of a study does not stand together: algorithm, backend, security and the tables beside them.

Each function adds its sentences to the problems of the tables it is given; those of one table alone are
`read.py`'s.
"""

from __future__ import annotations

from typing import Any

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.psu.method import methods
from mpc_protocols.registry import not_installed
from runner.study.declared.keys import PARTITIONS, SECURITIES
from runner.study.declared.table import Table, listed
from runner.study.declared.tables import Alignment
from runner.study.sections.contributors import Contributors
from synth.algorithm import ALGORITHMS, Algorithm, TrainedAlgorithm
from synth.config import AlgorithmConfig
from synth.domain import Domain
from synth.training import Training


def runs(head: Table, algorithm: Algorithm[Any, Any], backend: Backend, partition: str) -> None:
    """Whether algorithm and backend are installed and run on this partition."""
    for key, version in (("algorithm", algorithm), ("backend", backend)):
        if lack := not_installed(version):
            head.problem(f'= "{version.name}" {lack}', key)
        if partition in PARTITIONS and partition not in version.partitions:
            others = [
                f'backend = "{of.name}"' for of in BACKENDS if not of.ideal and partition in of.partitions
            ]
            instead = f"; use {' or '.join(others)}" if key == "backend" and others else ""
            head.problem(
                f'= "{version.name}" runs with partition = {listed(version.partitions)} only{instead}', key
            )


def questions(table: Table, root: Table) -> None:
    """Whether questions can be registered at all."""
    if "contributors" in root:
        table.problem(
            "has no meaning with [contributors]: their counts are made before anything is measured; remove it, and ask "
            "`infer` what the run will have measured"
        )


def begins(table: Table, root: Table) -> None:
    """Whether a run can begin from an earlier one at all."""
    for name, why in (
        ("contributors", "their counts are made before anything is measured"),
        ("table", "what one person's children have in common is no marginal of an earlier table"),
    ):
        if name in root:
            table.problem(f"has no meaning with [{name}]: {why}; remove it")


def sound(head: Table, algorithm: Algorithm[Any, Any], config: AlgorithmConfig, research: bool) -> None:
    """The gate of systems without a sound claim or utility."""
    instead = algorithm.alternative(config)
    if instead is not None and not research:
        head.problem(
            f'= "{algorithm.name}" as configured is for research, without a sound claim or utility; use {instead}, '
            "or set research = true",
            "algorithm",
        )


def against_deviation(
    head: Table, root: Table, algorithm: Algorithm[Any, Any], config: AlgorithmConfig
) -> None:
    """What does not hold against a computing party that deviates, with a backend that answers questions."""
    by_itself = algorithm.reporting(config) is not None or algorithm.cohorts(config) is not None
    if by_itself or isinstance(algorithm, TrainedAlgorithm | Training):
        head.problem(
            f'= "malicious" holds for the answers of a backend, and algorithm = "{algorithm.name}" as configured does more than '
            "ask for them; remove it, or use another algorithm",
            "security",
        )
    if "contributors" in root:
        root.problem(
            '[contributors] has no meaning with security = "malicious": sealed bundles are not checked against a computing party '
            "that deviates; remove it, or let contributors be there (compute = false)"
        )


def training(
    head: Table,
    alignment: Alignment | None,
    file: str,
    problems: list[str],
    algorithm: Training[Any, Any],
    backend: Backend,
) -> None:
    """What the training of a model by two owners needs of the rest of the study."""
    if backend.ideal:
        head.problem(
            f'= "{backend.name}" runs in one process, and algorithm = "{algorithm.name}" trains between two; use '
            'backend = "replicated"',
            "backend",
        )
    if alignment is None:
        return
    table = Table({}, file, "[alignment]", (), problems)
    if not alignment.psu:
        table.problem(
            f'must have method = "psu": algorithm = "{algorithm.name}" trains on the union that it gives',
            "method",
        )
    elif alignment.population != "intersection":
        table.problem(
            f'has no meaning with algorithm = "{algorithm.name}", which trains on the union and is evaluated on the '
            "intersection; remove it",
            "population",
        )


def cohorts(head: Table, root: Table, algorithm: Algorithm[Any, Any], backend: Backend) -> None:
    """What clients that choose by themselves need of the rest of the study."""
    if not backend.cohorts:
        others = [f'"{other.name}"' for other in BACKENDS if other.cohorts and not other.ideal]
        head.problem(
            f'= "{backend.name}" serves no clients that choose by themselves, as algorithm = "{algorithm.name}" has them; use '
            f"{' or '.join(others)}",
            "backend",
        )
    if "contributors" in root:
        root.problem(
            f'[contributors] has no meaning with algorithm = "{algorithm.name}" as configured, whose clients are there in every '
            "round; use an algorithm that runs on what they leave"
        )


def arriving(
    root: Table, algorithm: Algorithm[Any, Any], config: AlgorithmConfig, contributors: Contributors
) -> None:
    """Whether the algorithm runs while contributors arrive."""
    schedule = '[contributors] schedule = "arriving"'
    if not algorithm.arrives:
        others = [f'"{other.name}"' for other in ALGORITHMS if other.arrives]
        root.problem(
            f'{schedule} is for algorithm = {" or ".join(others)}, and the study has "{algorithm.name}"'
        )
    elif isinstance(config, algorithm.config):
        try:
            algorithm.while_arriving(config, len(contributors.closes), contributors.again)
        except StudyInvalid as misfit:
            root.problem(f"{schedule} does not go with that: {misfit.sentence.rstrip('.')}")


def excludes(table: Table, why: str | None) -> None:
    """Whether contributors' inputs can be checked, so that a bad one can be left out. why: they cannot."""
    if why:
        table.problem(
            f'= "exclude" needs counts of contributors to be checked, which they are not here ({why}); remove it',
            "bad_input",
        )


def constraints(root: Table, algorithm: Algorithm[Any, Any], domain: Domain) -> None:
    """Whether the algorithm's rows keep the domain's constraints."""
    if domain.constraints and not algorithm.constrained:
        others = listed(one.name for one in ALGORITHMS if one.constrained)
        root.problem(
            f'[domain] constraints cannot be kept by algorithm = "{algorithm.name}", whose rows would break them; use {others}, '
            "or remove them"
        )


def alignment_tables(head: Table, root: Table, partition: str) -> None:
    """Whether there is an [alignment] where columns are split, and none elsewhere."""
    if partition == "vertical" and "alignment" not in root:
        root.problem(
            'has no [alignment] table, and partition = "vertical" needs one: method = "psu" and the name of the id '
            f"column, or method = {listed(methods()[1:])}"
        )
    elif partition == "horizontal" and "partition" in head and "alignment" in root:
        root.problem('[alignment] has no meaning with partition = "horizontal"; remove it')


def waits(table: Table, malicious: bool) -> None:
    """Whether what [session] says of waiting has a meaning."""
    for key in ("answer_s", "deadline_factor", "deadline_floor_s"):
        if key in table and not malicious:
            table.problem(
                f'has no meaning with security = "{SECURITIES[0]}", where a party waits for another as long as that one lives; '
                "remove it",
                key,
            )
