"""The [[party]] tables of a study: who takes part, where they listen, who computes
(`docs/reference/study-file.md`)."""

from __future__ import annotations

import glob
import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mpc_protocols.process.installation import program
from parties.addresses import is_loopback
from parties.data.location import KINDS_OF_FILES
from parties.data.sql.addresses import FILES, SCHEMES, is_server, misfit
from parties.data.tallies.engine import ENGINES
from parties.data.tallies.places import DaskCluster, EngineTallies, TallyFiles
from runner.study.declared.keys import DASK, PARTITIONED_BY, TALLIES, DataKeys, PartyKeys
from runner.study.declared.table import Table, nearest, value_text
from runner.study.model import DataLocation, Party

if TYPE_CHECKING:
    from mpc_protocols.backend import Backend
    from synth.domain import Domain

MAX_PARTIES = 19
"""Three parties that only compute and sixteen custodians."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
FORMATS = (".csv", ".parquet")
"""What workers of a cluster read."""


def read_parties(
    raw: object,
    path: Path,
    problems: list[str],
    backend: Backend | None,
    partition: str,
    tls: str,
    domain: Domain | None,
) -> tuple[Party, ...]:
    """All parties in order; notes every problem, each under the party's name."""
    if not isinstance(raw, list) or not raw or not all(isinstance(entry, dict) for entry in raw):
        problems.append(f"{path}: party must be a list of tables: begin each with [[party]].")
        return ()
    tables = [
        Table(entry, str(path), f"[[party]] {entry.get('name', number)}", PartyKeys, problems)
        for number, entry in enumerate(raw, 1)
    ]
    flags = [table.flag("compute", False) if "compute" in table else None for table in tables]
    roles = backend.roles(flags) if backend is not None else [True] * len(flags)
    parties = tuple(
        _party(table, compute, path, partition, domain) for table, compute in zip(tables, roles, strict=True)
    )
    _distinct(tables, parties)
    file = Table({}, str(path), "", (), problems)
    if len(parties) > MAX_PARTIES:
        file.problem(f"lists {len(parties)} parties; at most {MAX_PARTIES} can take part")
    computing = [party.name for party in parties if party.compute]
    if backend is not None and (misfit := backend.misfit(computing, partition)):
        file.problem(misfit)
    if tls == "insecure-loopback":
        for table, party in zip(tables, parties, strict=True):
            if not is_loopback(party.host):
                table.problem(
                    f'= {value_text(party.address)} is not a loopback address, and [session] tls = "insecure-loopback" '
                    'is for those only; use tls = "mutual"',
                    "address",
                )
    return parties


def _party(table: Table, compute: bool, path: Path, partition: str, domain: Domain | None) -> Party:
    name = table.text("name")
    if "name" in table and (not NAME.fullmatch(name) or name.casefold() == "ca"):
        table.problem(
            'must be letters, digits, "-", "_" or ".", begin with a letter or digit, and not be "ca" '
            f"(files are named after it), got {value_text(name)}",
            "name",
        )
    host, port = read_address(table, "address")
    fingerprint = None
    if "fingerprint" in table:
        fingerprint = table.text("fingerprint").replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", fingerprint):
            table.problem(
                "must be the SHA-256 of the party's certificate, 64 hexadecimal digits, as "
                f"`{program()} certs show` prints it, got {value_text(table.raw['fingerprint'])}",
                "fingerprint",
            )
    columns = None
    if "columns" in table:
        if partition == "horizontal":
            table.problem(
                'has no meaning with partition = "horizontal": every custodian has all columns; remove it',
                "columns",
            )
        else:
            columns = table.texts("columns")
            for column in columns:
                if domain is not None and column not in domain:
                    table.problem(
                        f'names "{column}", which the domain does not have{nearest(column, domain.names)}',
                        "columns",
                    )
    data = read_location(table, path, servers=False)
    if data is not None and data.parts is not None:
        table.problem(
            "= { tallies = ... } or { dask = ... } would let whoever writes the study choose whose counts this custodian adds; "
            "say it in the private file",
            "data",
        )
    return Party(name, host, port, compute, data, fingerprint, columns)


def read_address(table: Table, key: str) -> tuple[str, int]:
    """The (host, port) of "host:port"; ("?", 0) after noting a problem."""
    text = table.text(key, expected='"host:port"')
    if (address := address_of(text)) is not None:
        return address
    if text != "?":
        table.problem(f'must be "host:port" with a port from 1 to 65535, got {value_text(text)}', key)
    return "?", 0


def address_of(text: str) -> tuple[str, int] | None:
    """The (host, port) of "host:port"; None if it is not that."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    return (host, number) if _is_host(host) and 1 <= number <= 65535 else None


def _is_host(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return HOST.fullmatch(host) is not None


def read_location(table: Table, path: Path, *, servers: bool) -> DataLocation | None:
    """`data` of a party or of a private file, relative to the file that names it; None if it is not there.

    servers: whether it may be the table of a server: only its custodian says whom its own process gives a
    password.
    """
    given = table.raw.get("data")
    if given is None:
        return None
    if isinstance(given, dict) and "tallies" in given:
        inner = Table(given, table.file, f"{table.where} data".strip(), TALLIES, table.problems)
        parts = inner.integer("parts", low=1) if "parts" in inner else None
        if isinstance(given["tallies"], dict):
            return DataLocation(tallies=_of_engine(inner, path.parent, parts))
        pattern = inner.text("tallies", expected='a pattern of paths such as "counted/*.tally"')
        whole = Path(glob.escape(str(path.parent.resolve()))) / pattern
        return DataLocation(tallies=TallyFiles(str(whole), parts, _by_unit(inner)))
    if isinstance(given, dict) and "dask" in given:
        return DataLocation(
            cluster=_cluster(
                Table(given, table.file, f"{table.where} data".strip(), DASK, table.problems), path.parent
            )
        )
    if isinstance(given, dict) and given and not given.keys() & DataKeys.options().keys():
        names = Table(given, table.file, f"{table.where} data".strip(), tuple(given), table.problems)
        places = {name: read_location(names.under(name), path, servers=servers) for name in given}
        return DataLocation(tables={name: place for name, place in places.items() if place is not None})
    if isinstance(given, dict):
        inner = Table(given, table.file, f"{table.where} data".strip(), DataKeys, table.problems)
        url, name = inner.text("url"), inner.text("table")
        if "url" in inner and url.partition("://")[0] not in SCHEMES:
            # the address may hold a password: never echo it
            inner.problem("must begin with " + " or ".join(f"{scheme}://" for scheme in SCHEMES), "url")
        elif "url" in inner and not servers and is_server(url):
            inner.problem(
                "is a server's, to which this party's process would give its password: say it in the private file",
                "url",
            )
        elif wrong := misfit(url):
            inner.problem(wrong, "url")
        if "\0" in unquote(url):
            inner.problem("must not hold %00", "url")
        else:
            url = placed(url, path.parent)
        return DataLocation(url=url, table=name, push_down=inner.flag("push_down", False))
    if isinstance(given, str) and Path(given).suffix.lower() in KINDS_OF_FILES:
        return DataLocation(path=table.place("data", path.parent, "the path of a file"))
    # a database's address may hold a password
    echo = "an address" if isinstance(given, str) and "://" in given else value_text(given)
    table.problem(
        f'must name a .csv, .tsv, .parquet or .xlsx file, or be {{ url = "...", table = "..." }}, got {echo}; counts of a table '
        'in parts are named { tallies = "..." }',
        "data",
    )
    return None


def placed(url: str, base: Path) -> str:
    """The address of a database, with the absolute path of one that is a file; any other as it is. base:
    where paths start."""
    scheme, _, place = url.partition("://")
    if scheme not in FILES:
        return url
    file, mark, rest = place.partition("?")
    return f"{scheme}://{quote(str((base / unquote(file)).resolve()))}{mark}{rest}"


def _cluster(data: Table, base: Path) -> DaskCluster:
    scheduler = data.text("dask", expected="a scheduler's address such as tls://scheduler:8786")
    if "dask" in data and not (
        scheduler.startswith("tls://") and address_of(scheduler.removeprefix("tls://"))
    ):
        data.problem(
            f"must be a scheduler's address with TLS, tls://host:port, got {value_text(scheduler)}", "dask"
        )
    patterns = data.raw.get("url")
    tables: dict[str, str] = {}
    if isinstance(patterns, dict) and patterns:
        names = Table(patterns, data.file, f"{data.where} url", tuple(patterns), data.problems)
        tables, files = {name: _files(names, name) for name in patterns}, ""
    else:
        files = _files(data, "url")
    ca, cert, key = (data.place(name, base, "the path of a PEM file") for name in ("ca", "cert", "key"))
    return DaskCluster(scheduler, ca, cert, key, files, _by_unit(data), tables)


def _of_engine(data: Table, base: Path, parts: int | None) -> EngineTallies:
    """Parts that an installed engine counts. Raises `StudyInvalid` for one that cannot be loaded."""
    given = dict(data.raw["tallies"])
    inner = Table(given, data.file, f"{data.where} tallies", tuple({"engine", *given}), data.problems)
    name = inner.text("engine", expected="the name of an engine that is installed here")
    engine = ENGINES.get(name)
    settings = {key: value for key, value in given.items() if key != "engine"}
    if engine is not None and (wrong := engine.misfit(settings)):
        inner.problem(wrong)
    elif engine is None and name != "?":
        there = ", ".join(ENGINES.names) or "none"
        inner.problem(
            f'names "{name}", which is not installed here{nearest(name, ENGINES.names)}; installed: {there}',
            "engine",
        )
    return EngineTallies(name, settings, base.resolve(), parts, _by_unit(data))


def _files(data: Table, key: str) -> str:
    """A pattern of the files of a table."""
    files = data.text(key, expected="the files of the table, as the workers see them")
    if key in data and not (Path(files).is_absolute() and Path(files).suffix.lower() in FORMATS):
        data.problem(
            "must be the absolute path of .csv or .parquet files as all workers see them, such as /mnt/people/*.parquet (other "
            f"stores: mount them, or use tallies), got {value_text(files)}",
            key,
        )
    return files


def _by_unit(data: Table) -> bool:
    return "partitioned_by" in data and bool(data.choice("partitioned_by", PARTITIONED_BY))


def _distinct(tables: list[Table], parties: tuple[Party, ...]) -> None:
    names: dict[str, str] = {}
    addresses: dict[tuple[str, int], str] = {}
    for table, party in zip(tables, parties, strict=True):
        if (
            "name" in table
            and (first := names.setdefault(party.name.casefold(), party.name)) is not party.name
        ):
            table.problem(
                f'is named like an earlier party ("{first}"); names must differ by more than case', "name"
            )
        if (
            party.port
            and (other := addresses.setdefault((party.host.casefold(), party.port), party.name))
            is not party.name
        ):
            table.problem(
                f"= {value_text(party.address)} is the address of {other} too; give each party a port of its own",
                "address",
            )
