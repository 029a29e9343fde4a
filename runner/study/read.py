"""From a study file to a `Study`: parse, validate everything, name every problem (`docs/reference/study-file.md`).

`load` is what every command uses: a valid Study, or `StudyInvalid` (exit 10) with the first problem. `problems` is for
`check`: all of them at once. Words that the contract knows and this version cannot run yet are refused as such; other words
are typos and get the choices. Standard library only.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS
from mpc_protocols.options import Options
from mpc_protocols.psu.method import methods
from mpc_protocols.registry import not_installed
from runner.failures import reason
from runner.study import keys
from runner.study.contributors import Contributors, read_contributors
from runner.study.model import Alignment, Privacy, Session, Study, Unit, VerticalStudy, unchecked_inputs
from runner.study.parties import read_parties
from runner.study.table import Own, Table, listed, nearest, read_toml, shown
from runner.study.vertical import fit_study, read_alignment
from synth.algorithm import ALGORITHMS, Algorithm, TrainedAlgorithm
from synth.config import AlgorithmConfig
from synth.domain import BROKEN_ROWS, Column, Domain, column_from_spec
from synth.domain.domain import DOMAIN_KEYS
from synth.training import Training
from synth.workload import KEYS, MAX_CANDIDATES, Workload

PARTITIONS = ("horizontal", "vertical")
SECURITIES = ("semi-honest", "malicious")
SECTIONS = ("study", "privacy", "workload", "domain", "alignment", "session", "contributors", "party")
"""The tables of every study; algorithms and backends declare their own."""
DEFAULT_MAX_ROWS = 1 << 22


def load(path: Path | str) -> Study:
    """The study at `path`. Raises `StudyInvalid` with the first problem."""
    study, found = _read(Path(path))
    if study is None:
        raise StudyInvalid(found[0])
    return study


def problems(path: Path | str) -> list[str]:
    """All problems of the study at `path`, one sentence each; an empty list means that `load` succeeds."""
    try:
        return _read(Path(path))[1]
    except StudyInvalid as error:
        return [error.sentence]


def changed(study: Study, tree: Mapping[str, Any]) -> tuple[Study | None, list[str]]:
    """The study whose file holds another tree, None if it is invalid; and what is then wrong, a sentence each."""
    read, found = read_tree(study.path, tree)
    return read, [sentence.removeprefix(f"{study.path}: ") for sentence in found]


def _read(path: Path) -> tuple[Study | None, list[str]]:
    return read_tree(path, read_toml(path))


def read_tree(path: Path, tree: Mapping[str, Any]) -> tuple[Study | None, list[str]]:
    """The study of a parsed file, None if it is invalid; and all its problems. path: where relative paths start, and its name."""
    found: list[str] = []
    root = Table(tree, str(path), "", (*SECTIONS, *ALGORITHMS.names, *_tables_of_backends()), found)
    needed = ("study", "privacy", *(("workload",) if _has_workload(tree) else ()), "domain", "party")
    for name in needed:
        if name not in root:
            header = "[[party]]" if name == "party" else f"[{name}]"
            root.problem(f"has no {header} table; `python -m runner init DIR` writes an example")

    def section(name: str, known: tuple[str, ...]) -> Table:
        return Table(tree.get(name, {}), str(path), f"[{name}]", known, found)

    head = section("study", keys.STUDY)
    name = partition = "?"
    algorithm: Algorithm[Any, Any] | None = None
    backend: Backend | None = None
    if "study" in root:
        name = head.text("name")
        algorithm = ALGORITHMS.get(head.choice("algorithm", ALGORITHMS.names))
        backend = BACKENDS.get(head.choice("backend", BACKENDS.names))
        partition = head.choice("partition", PARTITIONS)
    privacy = _privacy(section("privacy", keys.PRIVACY), "privacy" in root)
    names, domain = _domain(section("domain", DOMAIN_KEYS), path) if "domain" in root else ((), None)
    config, options = _config(root, algorithm, domain), _options(root, backend)
    backend = backend and backend.configured(options, partition)
    security, research = _security(head, backend), head.flag("research", False)
    malicious = backend is not None and security in backend.securities and backend.secured(security).malicious
    if algorithm is not None and backend is not None:
        _sound(head, algorithm, config, research)
        _together(head, algorithm, backend, partition)
        if malicious:
            _against_deviation(head, root, algorithm, config)
    if algorithm is not None and domain is not None and domain.constraints and not algorithm.constrained:
        others = listed(one.name for one in ALGORITHMS if one.constrained)
        root.problem(
            f'[domain] constraints cannot be kept by algorithm = "{algorithm.name}", whose rows would break them; use {others}, '
            "or remove them"
        )
    workload = section("workload", KEYS)
    if algorithm is not None and not algorithm.workload and "workload" in root:
        root.problem(
            f'[workload] has no meaning with algorithm = "{algorithm.name}", which measures no marginals; remove it'
        )
    elif names and "workload" in root:
        _workload(workload, names, domain)
    alignment = None
    if partition == "vertical" and "alignment" in root:
        alignment = read_alignment(tree["alignment"], str(path), found, privacy)
    elif partition == "vertical":
        root.problem(
            'has no [alignment] table, and partition = "vertical" needs one: method = "psu" and the name of the id '
            f"column, or method = {listed(methods()[1:])}"
        )
    elif partition == "horizontal" and "partition" in head and "alignment" in root:
        root.problem('[alignment] has no meaning with partition = "horizontal"; remove it')
    session_table = section("session", keys.SESSION)
    session = _session(session_table)
    if "answer_s" in session_table and not malicious:
        session_table.problem(
            f'has no meaning with security = "{SECURITIES[0]}", where a party waits for another as long as that one lives; '
            "remove it",
            "answer_s",
        )
    parties = (
        read_parties(tree["party"], path, found, backend, partition, session.tls, domain)
        if "party" in root
        else ()
    )
    contributors = None
    if "contributors" in root:
        contributors = read_contributors(
            tree["contributors"], path, found, backend, partition, privacy, parties, domain
        )
    if session.bad_input == "exclude" and backend is not None:
        chosen = isinstance(algorithm, Algorithm) and algorithm.cohorts(config) is not None
        _excludes(session_table, unchecked_inputs(backend, partition, "contributors" in root, chosen))
    if contributors is not None and contributors.arriving and isinstance(algorithm, Algorithm):
        _arriving(root, algorithm, config, contributors)
    if isinstance(algorithm, Algorithm) and backend is not None and algorithm.cohorts(config) is not None:
        _cohorts(head, root, algorithm, backend)
    if alignment is not None:
        given = tree["privacy"].get("unit") if isinstance(tree.get("privacy"), dict) else None
        secured = backend.secured(security) if malicious and backend is not None else backend
        privacy = fit_study(alignment, str(path), found, privacy, given, domain, parties, secured)
        if algorithm is not None and isinstance(config, algorithm.config):
            misfit = algorithm.misfit(config, privacy.adjacency, not alignment.psu)
            if misfit is not None:
                head.problem(f'= "{algorithm.name}" {misfit}', "algorithm")
    if isinstance(algorithm, Training) and backend is not None:
        _training(head, alignment, str(path), found, algorithm, backend)
    if found or domain is None or algorithm is None or backend is None:
        return None, found
    common: dict[str, Any] = dict(
        path=path,
        name=name,
        algorithm=algorithm.name,
        backend=backend.name,
        partition=partition,
        security=security,
        research=research,
        privacy=privacy,
        workload_spec=workload.raw,
        config=config,
        options=options,
        domain=domain,
        session=session,
        parties=parties,
        tree=tree,
        contributors=contributors,
    )
    return Study(**common) if alignment is None else VerticalStudy(**common, alignment=alignment), []


def _has_workload(tree: Mapping[str, Any]) -> bool:
    """Whether the study's algorithm takes a table of marginals; one that is unknown is told elsewhere."""
    head = tree.get("study")
    name = head.get("algorithm") if isinstance(head, dict) else None
    algorithm = ALGORITHMS.get(name) if isinstance(name, str) else None
    return algorithm is None or algorithm.workload


def _training(
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


def _cohorts(head: Table, root: Table, algorithm: Algorithm[Any, Any], backend: Backend) -> None:
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


def _tables_of_backends() -> tuple[str, ...]:
    return tuple(backend.name for backend in BACKENDS if backend.options.options())


def _arriving(
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


def _security(head: Table, backend: Backend | None) -> str:
    given = head.choice("security", SECURITIES, SECURITIES[0])
    if backend is not None and given not in backend.securities and given == head.raw.get("security"):
        head.problem(
            f'= "{given}" is not offered by backend = "{backend.name}", which has '
            f"{' and '.join(backend.securities)} security only; remove it",
            "security",
        )
    return given


def _against_deviation(
    head: Table,
    root: Table,
    algorithm: Algorithm[Any, Any],
    config: AlgorithmConfig,
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


def _sound(head: Table, algorithm: Algorithm[Any, Any], config: AlgorithmConfig, research: bool) -> None:
    """The gate of systems without a sound claim or utility."""
    instead = algorithm.alternative(config)
    if instead is not None and not research:
        head.problem(
            f'= "{algorithm.name}" as configured is for research, without a sound claim or utility; use {instead}, '
            "or set research = true",
            "algorithm",
        )


def _together(head: Table, algorithm: Algorithm[Any, Any], backend: Backend, partition: str) -> None:
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


def _privacy(table: Table, present: bool) -> Privacy:
    if not present:
        return Privacy(Fraction(1), Fraction(1, 2), "add-remove", 1, Unit())
    epsilon = table.number("epsilon", below=keys.MAX_EPSILON)
    delta = table.number("delta", below=1.0)
    adjacency = table.choice("adjacency", ("add-remove", "replace"))
    max_rows = table.integer("max_rows", DEFAULT_MAX_ROWS, low=1, high=1 << 40)
    unit = Unit()
    given = table.raw.get("unit", "row")
    if isinstance(given, dict):
        inner = Table(given, table.file, "[privacy] unit", keys.UNIT, table.problems)
        unit = Unit(
            inner.text("id", expected="the name of the identifier's column"),
            inner.integer("max_rows", low=1, high=1 << 31),
            inner.integer("max_custodians", low=1, high=1 << 10),
        )
    elif given != "row":
        table.problem(
            f'must be "row" or {{ id = "person", max_rows = 3, max_custodians = 1 }}, got {shown(given)}',
            "unit",
        )
    return Privacy(Fraction(str(epsilon)), Fraction(str(delta)), cast(Any, adjacency), max_rows, unit)


def _config(root: Table, algorithm: Algorithm[Any, Any] | None, domain: Domain | None) -> AlgorithmConfig:
    """The chosen algorithm's table, by what the algorithm has declared."""
    if algorithm is None:
        return AlgorithmConfig()
    _foreign(root, "algorithm", algorithm.name, ALGORITHMS.names)
    table, config = _declared(root, algorithm.name, algorithm.config)
    for key, sentence in () if domain is None else config.misfits(domain.sizes):
        table.problem(sentence, key)
    return cast(AlgorithmConfig, config)


def _options(root: Table, backend: Backend | None) -> Options:
    """The chosen backend's table, by what the backend has declared."""
    if backend is None:
        return Options()
    _foreign(root, "backend", backend.name, _tables_of_backends())
    return _declared(root, backend.name, backend.options)[1]


def _declared(root: Table, name: str, kind: type[Own]) -> tuple[Table, Own]:
    table = Table(root.raw.get(name, {}), root.file, f"[{name}]", tuple(kind.options()), root.problems)
    return table, table.options(kind)


def _foreign(root: Table, key: str, chosen: str, names: tuple[str, ...]) -> None:
    for other in names:
        if other in root and other != chosen:
            root.problem(f'[{other}] has no meaning with {key} = "{chosen}"; remove it')


def _session(table: Table) -> Session:
    return Session(
        float(table.number("connect_s", Session.connect_s, below=1e6)),
        # heartbeats leave every second: less silence than two of them would end healthy runs
        float(table.number("silence_s", Session.silence_s, above=1.999, below=1e6)),
        cast(Any, table.choice("tls", ("mutual", "insecure-loopback"), "mutual")),
        cast(Any, table.choice("bad_input", ("end", "exclude"), "end")),
        float(table.number("answer_s", Session.answer_s, below=1e6)),
    )


def _excludes(table: Table, why: str | None) -> None:
    """Whether contributors' inputs can be checked, so that a bad one can be left out. why: they cannot."""
    if why:
        table.problem(
            f'= "exclude" needs counts of contributors to be checked, which they are not here ({why}); remove it',
            "bad_input",
        )


def _domain(table: Table, path: Path) -> tuple[tuple[str, ...], Domain | None]:
    """The declared names and the domain, from the table's columns or its file; every bad column is a problem of its own."""
    if ("file" in table) == ("columns" in table):
        table.problem("needs either file or columns, and only one of them")
        return (), None
    given, prefix = table.raw.get("columns"), "[domain.columns]"
    if "file" in table:
        file = path.parent / table.text("file", expected="the name of a JSON file")
        given, prefix = _read_json(table, file), str(file)
    if given is None:
        return (), None
    if not isinstance(given, dict) or not given:
        key = "file" if "file" in table else "columns"
        table.problem(f"must map every column to its size or to a table, got {shown(given)}", key)
        return (), None
    columns: dict[str, Column] = {}
    for name, spec in given.items():
        try:
            columns[name] = column_from_spec(spec, f"{prefix} {name}")
        except StudyInvalid as error:
            table.problems.append(f"{table.file}: {error.sentence}")
    if len(columns) != len(given):
        return tuple(given), None
    try:
        domain = Domain(tuple(columns), tuple(columns.values()))
        rule = table.raw.get("broken_rows", BROKEN_ROWS[0])
        return tuple(given), domain.constrained(table.raw.get("constraints", []), rule)
    except StudyInvalid as error:
        table.problems.append(f"{table.file}: {error.sentence}")
        return tuple(given), None


def _read_json(table: Table, file: Path) -> object:
    def no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        if repeated:
            raise ValueError(f'"{repeated[0]}" stands there twice')
        return dict(pairs)

    try:
        return cast(object, json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=no_repeats))
    except OSError as error:
        table.problem(f"names {file}, which cannot be read ({reason(error)})", "file")
    except json.JSONDecodeError as error:
        table.problem(
            f"names {file}, which is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            "file",
        )
    except UnicodeDecodeError:
        table.problem(f"names {file}, which is not UTF-8", "file")
    except ValueError as error:
        table.problem(f"names {file}: {error}", "file")
    except RecursionError:
        table.problem(f"names {file}, which is nested too deeply", "file")
    return None


def _workload(table: Table, names: tuple[str, ...], domain: Domain | None) -> None:
    """Check the workload without drawing a random subset of its sets, which needs NumPy, unless their sizes are in doubt."""
    before = len(table.problems)
    label, cliques = table.raw.get("label"), table.raw.get("cliques")
    if isinstance(label, str) and label not in names:
        table.problem(
            f'names the column "{label}", which the domain does not have{nearest(label, names)}', "label"
        )
    elif "label" in table and not isinstance(label, str):
        table.problem(f"must be the name of a column, got {label!r}", "label")
    if isinstance(cliques, list):
        for name in dict.fromkeys(
            name
            for clique in cliques
            if isinstance(clique, list)
            for name in clique
            if isinstance(name, str) and name not in names
        ):
            table.problem(
                f'names the column "{name}", which the domain does not have{nearest(name, names)}', "cliques"
            )
    elif "degree" in table:
        degree = table.integer("degree", low=1, high=len(names))
        count = table.integer("count", 1, low=1)
        table.integer("seed", 0, low=0)
        joined = degree + ("label" in table)
        largest = math.prod(sorted(domain.sizes.values())[-joined:]) if domain is not None else MAX_CELLS
        if "count" in table and count <= MAX_CANDIDATES and largest <= MAX_CELLS:
            return
    if len(table.problems) > before or domain is None:
        return
    try:
        workload = Workload.from_spec({key: table.raw[key] for key in KEYS if key in table}, domain)
    except StudyInvalid as error:
        table.problems.append(f"{table.file}: {error.sentence}")
        return
    for clique in workload.cliques:
        if (cells := domain.cells(clique)) > MAX_CELLS:
            table.problem(
                f"holds the clique {', '.join(clique)} of {cells:,} cells; more than {MAX_CELLS:,} cannot be shared: "
                "use fewer bins or a smaller clique"
            )
            return
