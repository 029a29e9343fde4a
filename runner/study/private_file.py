"""A party's private settings, `--private FILE` (`docs/reference/study-file.md`): its data, keys, ledger.
Never sent, never hashed.

Paths are relative to the file itself. Everything is optional: what is absent comes from the study or the
command line. Standard library only.
"""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import PeerIdentity, StudyInvalid
from mpc_protocols.functionality import Adjacency
from mpc_protocols.options import Options
from mpc_protocols.process.installation import program
from mpc_protocols.process.later import Later
from parties.addresses import is_loopback
from parties.budget.notion import ProtectedUnit
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import RFC, Rules
from parties.data.linked.draw_key import DrawKey
from parties.data.location import KINDS_OF_FILES
from runner.study.declared.keys import UnitKeys
from runner.study.declared.private_keys import LedgerKeys, PrivateKeys
from runner.study.declared.table import Table, read_toml, study_instead, value_text
from runner.study.hashing import digest
from runner.study.model import DataLocation, Study, VerticalStudy
from runner.study.own_table import read_rules
from runner.study.sections.linked import placed
from runner.study.sections.parties import read_address, read_location

if TYPE_CHECKING:
    from parties.budget import account
    from synth.domain import Domain
else:
    account = Later("parties.budget.account")


@dataclass(frozen=True)
class CertificateFiles:
    """Paths of the session CA's certificate, this party's certificate and this party's key, all PEM.

    ca: None if the study pins every party's certificate. insecure_key: go on although other users can read
    the key.
    """

    ca: Path | None
    cert: Path
    key: Path
    insecure_key: bool = False


@dataclass(frozen=True)
class LedgerSettings:
    """[ledger]: where this custodian keeps account, under which name for its population, and how much it
    allows.

    A cap bounds what all runs on the data set come to at cap_delta; None means no cap. It holds for one
    notion of neighbouring tables, cap_unit and cap_adjacency; what they leave open is the first run's.
    `max_alignments` limits the runs with one counterparty.
    """

    file: Path | None = None
    dataset: str | None = None
    cap_epsilon: float | None = None
    cap_delta: float | None = None
    max_alignments: int | None = None
    cap_unit: ProtectedUnit | None = None
    cap_adjacency: Adjacency | None = None

    @property
    def cap(self) -> account.Cap:
        """What the ledger is to enforce."""
        return account.Cap(
            self.cap_epsilon, self.cap_delta, self.max_alignments, self.cap_unit, self.cap_adjacency
        )


@dataclass(frozen=True)
class Private:
    """One party's private file; all paths absolute. `listen` is (host, port) when it differs from the study's
    address.

    workers: how many processes count its table. rules: how it is read ([csv], [harmonise]).
    """

    data: DataLocation | None = None
    workers: int = 1
    listen: tuple[str, int] | None = None
    out: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    allow_empty: bool = False
    inbox: Path | None = None
    rules: Rules = field(default_factory=Rules)
    ledger: LedgerSettings = LedgerSettings()


def load(path: Path | str | None) -> Private:
    """The private file at `path` (None: all defaults). Raises `StudyInvalid` with its first problem."""
    found: list[str] = []
    private = _read(Path(path), found) if path is not None else Private()
    if found:
        raise StudyInvalid(found[0])
    return private


def problems(path: Path | str) -> list[str]:
    """All problems of the private file at `path`, one sentence each."""
    found: list[str] = []
    try:
        _read(Path(path), found)
    except StudyInvalid as error:
        found.append(error.sentence)
    return found


def ledger_settings(given: Mapping[str, Any], where: str, base: Path) -> LedgerSettings:
    """[ledger] from a mapping of its keys. where: for sentences; base: where a relative `file` starts. Raises
    `StudyInvalid`."""
    found: list[str] = []
    settings = _ledger(given, where, base, found)
    if found:
        raise StudyInvalid(found[0])
    return settings


def location(
    study: Study, name: str, private: Private, instead: DataLocation | None = None
) -> DataLocation | None:
    """Where this party's data lies and how it is read; None if it only computes.

    Its private file wins over the study, and `instead` over both. Raises `StudyInvalid` for a party that
    would neither compute nor have data, and for rules in the private file that do not fit the study.
    """
    party = study.party(name)
    found = instead or private.data or party.data
    if found is None and not party.compute:
        raise _idle(study, name)
    if private.workers > 1 and isinstance(study, VerticalStudy):
        raise StudyInvalid(
            f"{study.path}: the rows of a vertical study are read by one process; remove `workers` from the private file of "
            f"party {name}."
        )
    if found is None:
        return None
    found = read_by_rules(study, found, private.rules)
    if found.linked is None and (study.linked is None or found.cluster is None):
        return found
    return replace(found, draws=DrawKey(private.ledger.file, digest(study, "")))


def tables_here(study: Study, private: Mapping[str, Private], instead: Collection[str]) -> tuple[str, ...]:
    """The parties that have a table in a run of all on this machine: by the study, by their private file, or
    `instead` of both. Raises as `location`."""
    return tuple(
        name
        for name in (party.name for party in study.parties)
        if name in instead or location(study, name, private.get(name, Private())) is not None
    )


def only_table(study: Study, tables: Sequence[str]) -> str | None:
    """What is wrong with a run in which one party alone has a table, which the study does not name; None if
    nothing is. Its budget would be spent on that table alone, and what is missing is more often a forgotten
    `--private` than meant. tables: as `tables_here` gives them."""
    others = [party.name for party in study.parties if party.name not in tables]
    if len(tables) != 1 or not others or any(party.data for party in study.parties):
        return None
    if study.contributors is not None:
        return None
    return (
        f"Only {tables[0]} has a table here, and its budget would be spent on that table alone; name those of "
        f"{' and '.join(others)} too (--private), or say with --alone that nobody else has one."
    )


def idle_here(study: Study) -> dict[str, StudyInvalid]:
    """By name, what is wrong with each party that neither computes nor has data, where a run of all on this
    machine is meant: all addresses are this machine's, and it has a table that the study names.

    Elsewhere a private file may name the data, and `location` tells at that party.
    """
    tables = [party.data for party in study.parties if party.data is not None]
    here = any(table.path is None or table.path.exists() for table in tables)
    if not here or not all(is_loopback(party.host) for party in study.parties):
        return {}
    idle = [party.name for party in study.parties if party.data is None and not party.compute]
    return {name: _idle(study, name) for name in idle}


def _idle(study: Study, name: str) -> StudyInvalid:
    return StudyInvalid(
        f"{study.path}: [[party]] {name} neither computes nor has data; give it data in the study or in its "
        "private file, let it compute, or remove it."
    )


def read_by_rules(study: Study, found: DataLocation, rules: Rules) -> DataLocation:
    """A table with what its custodian's private file says of how it is read. Raises `StudyInvalid` if that
    does not fit."""
    found = placed(study.linked, found, str(study.path), study.partition == "horizontal")
    if found.push_down and isinstance(study, VerticalStudy):
        raise StudyInvalid(
            f"{study.path}: data has push_down = true, and owners of different columns need their rows; leave it out."
        )
    if found.parts is not None:
        # Dask sorts linked tables by persons itself
        sorted_there = study.linked is not None and found.cluster is not None
        _check_parts(study, found.parts.by_unit or sorted_there)
    if not rules.stated:
        return found
    if found.linked is not None or (study.linked is not None and found.cluster is not None):
        return _linked_by_rules(found, rules)
    alignment = study.alignment if isinstance(study, VerticalStudy) else None
    if alignment is not None and not alignment.psu:
        for key, stated in (("filter", rules.filter is not None), ("missing_ids", rules.leave_out)):
            if stated:
                raise StudyInvalid(
                    f"{rules.file}: [harmonise] {key} leaves rows out, and the study joins tables row by row "
                    '([alignment] method = "row-order"); leave them out in all tables, or align by identifiers.'
                )
    if (
        rules.dialect != RFC
        and found.parts is None
        and (found.path is None or KINDS_OF_FILES.get(found.path.suffix.lower()) != "csv")
    ):
        raise StudyInvalid(f"{rules.file}: [csv] has no meaning, for the data is not a CSV file; remove it.")
    unit = study.privacy.unit.id
    identifiers = alignment.id if alignment is not None else () if unit is None else (unit,)
    return replace(found, dialect=rules.dialect, recipe=fit(rules, study.domain, identifiers))


def _linked_by_rules(found: DataLocation, rules: Rules) -> DataLocation:
    """How CSV files are written holds for all of them. Raises `StudyInvalid` for [harmonise]."""
    if replace(rules, dialect=RFC) != Rules(rules.file, stated=True):
        raise StudyInvalid(
            f"{rules.file}: [harmonise] is not read for linked tables; make the columns fit where the tables are "
            f"exported, and remove it."
        )
    if found.linked is None:
        return replace(found, dialect=rules.dialect)
    domains = {child.name: child.domain for child in found.linked.tables}
    children = {
        name: _as_written(place, rules, domains[name]) for name, place in (found.children or {}).items()
    }
    return replace(_as_written(found, rules, found.linked.people), children=children)


def _as_written(place: DataLocation, rules: Rules, domain: Domain) -> DataLocation:
    """One of linked tables, with the marks in its numbers if it is a CSV file. domain: of its own columns."""
    csv = place.path is not None and KINDS_OF_FILES.get(place.path.suffix.lower()) == "csv"
    marked = csv and (rules.dialect.decimal != RFC.decimal or rules.dialect.thousands is not None)
    recipe = fit(Rules(rules.file, rules.dialect), domain, ()) if marked else None
    return replace(place, dialect=rules.dialect, recipe=recipe)


def _check_parts(study: Study, by_unit: bool) -> None:
    """Raise `StudyInvalid` where a table cannot be counted in parts, or not in these."""
    if isinstance(study, VerticalStudy):
        raise StudyInvalid(
            f"{study.path}: owners of a vertical study share rows, not counts; give a table as `data`, not tallies."
        )
    whose = study.privacy.unit.id if study.linked is None else study.linked.key
    if by_unit and whose is None:
        raise StudyInvalid('data.partitioned_by has no meaning in a study with unit = "row"; remove it.')
    if not by_unit and whose is not None:
        raise StudyInvalid(
            f"The study bounds a person's rows by {whose}, and a part of a table tells of its own rows only; "
            'cut the table by ranges of the hash of that column, and say partitioned_by = "id" in `data` '
            "(docs/howto/large-tables.md)."
        )


def certificates(study: Study, name: str, private: Private) -> CertificateFiles | None:
    """The certificate files of this party of a deployment; None if the study goes without.

    Raises `PeerIdentity` naming the key that the private file lacks. `ca` may be absent if the study pins
    every certificate.
    """
    if study.session.tls == "insecure-loopback":
        return None
    pinned = all(party.fingerprint for party in study.parties)
    if private.cert and private.key and (private.ca or pinned):
        return CertificateFiles(private.ca, private.cert, private.key)
    missing = next(key for key in ("cert", "key", "ca") if getattr(private, key) is None)
    raise PeerIdentity(
        f"Party {name} has no certificate: its private file (--private) does not name `{missing}`; "
        f"`{program()} certs make` makes ca.crt, NAME.crt and NAME.key."
    )


def _read(path: Path, found: list[str]) -> Private:
    tree = read_toml(path)
    if study := study_instead(str(path), tree):
        raise StudyInvalid(study)
    table = Table(tree, str(path), "", PrivateKeys, found)
    read = _reader(table, PrivateKeys)

    def place(key: str) -> Path | None:
        return table.place(key, path.parent) if key in table else None

    data, ca = read_location(table, path, servers=True), place("ca")
    if data is not None and data.cluster is not None and ca is not None and _alike(data.cluster.ca, ca):
        table.problem(
            "is the CA of the session, whose other parties could then run anything on the cluster; "
            "name the CA of this custodian's own cluster",
            "data.ca",
        )
    return Private(
        data=data,
        workers=read("workers"),
        listen=read_address(table, "listen") if "listen" in table else None,
        out=place("out"),
        cert=place("cert"),
        key=place("key"),
        ca=ca,
        allow_empty=read("allow_empty"),
        inbox=place("inbox"),
        rules=read_rules(table),
        ledger=_ledger(table.raw.get("ledger", {}), str(path), path.parent, found),
    )


def _reader(table: Table, keys: type[Options]) -> Callable[[str], Any]:
    """Reads a key of a table as it is declared."""
    declared, defaults = keys.options(), keys.defaults()
    return lambda key: table.option(key, declared[key], defaults[key])


def _alike(one: Path, other: Path) -> bool:
    """Whether two files are one, or copies."""
    with suppress(OSError):
        return one == other or filecmp.cmp(one, other, shallow=False)
    return False


def _ledger(given: object, where: str, base: Path, found: list[str]) -> LedgerSettings:
    table = Table(given, where, "[ledger]", LedgerKeys, found)
    read = _reader(table, LedgerKeys)
    if ("cap_epsilon" in table) != ("cap_delta" in table):
        table.problem(
            "needs cap_epsilon and cap_delta together: the cap compares the epsilon spent at that delta"
        )
    return LedgerSettings(
        table.place("file", base) if "file" in table else None,
        read("dataset"),
        read("cap_epsilon"),
        read("cap_delta"),
        read("max_alignments"),
        _cap_unit(table) if "cap_unit" in table else None,
        read("cap_adjacency"),
    )


def _cap_unit(table: Table) -> ProtectedUnit:
    given = table.raw["cap_unit"]
    if isinstance(given, dict):
        inner, bounds = (
            Table(given, table.file, "[ledger] cap_unit", UnitKeys, table.problems),
            UnitKeys.options(),
        )
        columns = (
            inner.texts("id")
            if isinstance(given.get("id"), list)
            else (inner.text("id", expected="the name of the identifier's column, or a list of names"),)
        )
        return ProtectedUnit(
            columns, *(inner.option(key, bounds[key], None) for key in ("max_rows", "max_custodians"))
        )
    if given != "row":
        table.problem(
            f'must be "row" or {{ id = "person", max_rows = 3, max_custodians = 1 }}, got {value_text(given)}',
            "cap_unit",
        )
    return ProtectedUnit()
