"""From a study file to a `Study`: parse, validate everything, name every problem
(`docs/reference/study-file.md`).

`load` is what every command uses: a valid Study, or `StudyInvalid` (exit 10) with the first problem.
`problems` is for `check`: all of them at once. Words that the contract knows and this version cannot run yet
are refused as such; other words are typos and get the choices. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import Any, cast

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import Options
from mpc_protocols.process.installation import program
from runner.study import misfits
from runner.study.declared.keys import SECURITIES, InferenceKeys, PriorKeys, StudyKeys, UnitKeys
from runner.study.declared.table import Own, Table, private_instead, read_toml, value_text
from runner.study.declared.tables import Privacy, Session, Unit
from runner.study.model import Party, Study, VerticalStudy, unchecked_inputs
from runner.study.sections import inference, linked, prior
from runner.study.sections.columns import check_workload, has_workload, read_domain
from runner.study.sections.contributors import read_contributors
from runner.study.sections.parties import read_parties
from runner.study.sections.vertical import fit_study, read_alignment
from synth.algorithm import ALGORITHMS, Algorithm
from synth.config import AlgorithmConfig
from synth.domain import Domain
from synth.domain.keys import DomainKeys
from synth.judgement.parameters import MAX_DELTA
from synth.linked.tables import LinkedTables
from synth.training import Training
from synth.workload import WorkloadKeys

SECTIONS = (
    "study",
    "privacy",
    "workload",
    "domain",
    "table",
    "alignment",
    "session",
    "contributors",
    "inference",
    "prior",
    "party",
)
"""The tables of every study; algorithms and backends declare their own."""
HOMES = {
    key: f"[{name}]"
    for name, keys in (
        ("session", Session),
        ("domain", DomainKeys),
        ("workload", WorkloadKeys),
        ("privacy", Privacy),
        ("study", StudyKeys),
    )
    for key in keys.options()
}
"""Where a key belongs that stands elsewhere, as above the first table."""


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
    """The study whose file holds another tree, None if it is invalid; and what is then wrong, a sentence
    each."""
    read, found = read_tree(study.path, tree)
    return read, [sentence.removeprefix(f"{study.path}: ") for sentence in found]


def _read(path: Path) -> tuple[Study | None, list[str]]:
    return read_tree(path, read_toml(path))


def read_tree(path: Path, tree: Mapping[str, Any]) -> tuple[Study | None, list[str]]:
    """The study of a parsed file, None if it is invalid; and all its problems. path: where relative paths
    start, and its name."""
    found: list[str] = []
    if private := private_instead(str(path), tree):
        return None, [private]
    if tree.keys() == {"domain"}:
        study = path.with_name("study.toml")
        return None, [
            f"{path}: has columns only, which belong to a study; once they are confirmed, append it to that, and name that: "
            f"`cat {quote(str(path))} >> {quote(str(study))}`."
        ]
    root = Table(tree, str(path), "", (*SECTIONS, *ALGORITHMS.names, *_tables_of_backends()), found, HOMES)
    stated = has_workload(tree) and "table" not in tree  # linked tables have a workload of their own
    needed = ("study", "privacy", *(("workload",) if stated else ()), "domain", "party")
    for name in needed:
        if name not in root:
            root.problem(f"has no {_header(name)} table; {_where_one_is(name, path)}")

    def section(name: str, known: type[Options]) -> Table:
        return Table(tree.get(name, {}), str(path), f"[{name}]", known, found, HOMES)

    head = section("study", StudyKeys)
    name = partition = "?"
    research = False
    algorithm: Algorithm[Any, Any] | None = None
    backend: Backend | None = None
    if "study" in root:
        told = head.options(StudyKeys)
        name, partition, research = told.name, told.partition, told.research
        # of a word that names none nothing follows, such as which tables belong to it
        algorithm, backend = (
            ALGORITHMS.get(str(head.raw.get("algorithm"))),
            BACKENDS.get(str(head.raw.get("backend"))),
        )
    privacy = _privacy(section("privacy", Privacy), "privacy" in root)
    names, domain = read_domain(section("domain", DomainKeys), path) if "domain" in root else ((), None)
    tables = linked.read_linked(root, domain) if "table" in root else None
    if tables is not None:
        names, domain = tables.unfolded.names, tables.unfolded
    config, options = _config(root, algorithm, domain), _options(root, backend)
    backend = backend and backend.configured(options, partition)
    security = _security(head, backend)
    malicious = backend is not None and security in backend.securities and backend.secured(security).malicious
    if algorithm is not None and backend is not None:
        misfits.sound(head, algorithm, config, research)
        misfits.runs(head, algorithm, backend, partition)
        if malicious:
            misfits.against_deviation(head, root, algorithm, config)
    if algorithm is not None and domain is not None and tables is None:
        misfits.constraints(root, algorithm, domain)
    workload = section("workload", WorkloadKeys)
    if algorithm is not None and not algorithm.workload and "workload" in root:
        root.problem(
            f'[workload] has no meaning with algorithm = "{algorithm.name}", which measures no marginals; remove it'
        )
    elif names and "workload" in root:
        check_workload(workload, names, domain)
    questions = None
    if algorithm is not None and domain is not None and "inference" in root and not found:
        asked = section("inference", InferenceKeys)
        misfits.questions(asked, root)
        questions = inference.read_inference(asked, algorithm, config, domain)
    alignment = None
    if partition == "vertical" and "alignment" in root:
        alignment = read_alignment(tree["alignment"], str(path), found, privacy)
    else:
        misfits.alignment_tables(head, root, partition)
    session_table = section("session", Session)
    session = session_table.options(Session)
    misfits.waits(session_table, malicious)
    parties = (
        read_parties(
            tree["party"] if tables is None else linked.expanded(tables, tree["party"]),
            path,
            found,
            backend,
            partition,
            session.tls,
            domain,
        )
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
        misfits.excludes(session_table, unchecked_inputs(backend, partition, "contributors" in root, chosen))
    before = None
    if algorithm is not None and domain is not None and "prior" in root and not found:
        begins = section("prior", PriorKeys)
        misfits.begins(begins, root)
        before = prior.read_prior(begins, path.parent, algorithm, domain, parties)
    if contributors is not None and contributors.arriving and isinstance(algorithm, Algorithm):
        misfits.arriving(root, algorithm, config, contributors)
    if isinstance(algorithm, Algorithm) and backend is not None and algorithm.cohorts(config) is not None:
        misfits.cohorts(head, root, algorithm, backend)
    if alignment is not None:
        given = tree["privacy"].get("unit") if isinstance(tree.get("privacy"), dict) else None
        secured = backend.secured(security) if malicious and backend is not None else backend
        privacy = fit_study(alignment, str(path), found, privacy, given, domain, parties, secured)
        if algorithm is not None and isinstance(config, algorithm.config):
            misfit = algorithm.misfit(config, privacy.adjacency, not alignment.psu)
            if misfit is not None:
                head.problem(f'= "{algorithm.name}" {misfit}', "algorithm")
    if tables is not None:
        linked.check_study(tables, root, algorithm, privacy, alignment)
    if "table" not in root or tables is not None:
        parties = _placed(root, parties, tables, partition)
    if isinstance(algorithm, Training) and backend is not None:
        misfits.training(head, alignment, str(path), found, algorithm, backend)
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
        workload_spec=workload.raw or ({} if tables is None else {"cliques": tables.cliques}),
        config=config,
        options=options,
        domain=domain,
        session=session,
        parties=parties,
        tree=tree,
        contributors=contributors,
        inference=questions,
        linked=tables,
        prior=before,
    )
    return Study(**common) if alignment is None else VerticalStudy(**common, alignment=alignment), []


def _placed(
    root: Table, parties: tuple[Party, ...], tables: LinkedTables | None, partition: str
) -> tuple[Party, ...]:
    """The parties with their data by the names of the study's tables."""
    found = []
    for party in parties:
        if party.data is not None:
            try:
                where = f"{root.file}: [[party]] {party.name}"
                party = replace(
                    party, data=linked.placed(tables, party.data, where, partition == "horizontal")
                )
            except StudyInvalid as error:
                root.problems.append(error.sentence)
        found.append(party)
    return tuple(found)


def _header(name: str) -> str:
    return "[[party]]" if name == "party" else f"[{name}]"


def _where_one_is(name: str, path: Path) -> str:
    """What to do about a table that a study lacks: `init --from` leaves the proposed columns beside the
    study."""
    proposed = path.with_name("domain.proposed.toml")
    if name == "domain" and proposed.is_file():
        return f"confirm the columns that {proposed} proposes, then append it: `cat {quote(str(proposed))} >> {quote(str(path))}`"
    return f"`{program()} init DIR` writes an example"


def _tables_of_backends() -> tuple[str, ...]:
    return tuple(backend.name for backend in BACKENDS if backend.options.options())


def _security(head: Table, backend: Backend | None) -> str:
    given = str(head.raw.get("security", SECURITIES[0]))
    if given not in SECURITIES:
        return SECURITIES[0]
    if backend is not None and given not in backend.securities:
        head.problem(
            f'= "{given}" is not offered by backend = "{backend.name}", which has '
            f"{' and '.join(backend.securities)} security only; remove it",
            "security",
        )
    return given


def _privacy(table: Table, present: bool) -> Privacy:
    if not present:
        return Privacy(Fraction(1), Fraction(1, 2), "add-remove", 1)
    told = table.options(Privacy)
    delta = table.raw.get("delta")
    if not told.accept_delta and isinstance(delta, float) and MAX_DELTA < delta < 1:
        table.problem(
            f"{delta:g} lets a method publish one row in {max(1, round(1 / delta)):,}: choose less than one over ten times "
            f"the rows, or set accept_delta = true if a delta above {MAX_DELTA:g} is really meant",
            "delta",
        )
    given = table.raw.get("unit", "row")
    if isinstance(given, dict):
        keys = Table(given, table.file, "[privacy] unit", UnitKeys, table.problems).options(UnitKeys)
        return replace(told, unit=Unit(keys.id, keys.max_rows, keys.max_custodians))
    if given != "row":
        table.problem(
            f'must be "row" or {{ id = "person", max_rows = 3, max_custodians = 1 }}, got {value_text(given)}',
            "unit",
        )
    return told


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
    table = Table(root.raw.get(name, {}), root.file, f"[{name}]", kind, root.problems)
    return table, table.options(kind)


def _foreign(root: Table, key: str, chosen: str, names: tuple[str, ...]) -> None:
    for other in names:
        if other in root and other != chosen:
            root.problem(f'[{other}] has no meaning with {key} = "{chosen}"; remove it')
