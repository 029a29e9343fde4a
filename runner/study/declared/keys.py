"""The keys of a study's tables, each declared once: where the table is read (`table.Table.options`), in the
JSON Schema (`schema.py`) and on the reference page (`reference.py`) they are the same ones.

Here are tables that become objects of another form. Those that stay what they are declare their keys
themselves: `Privacy`, `Session` and `Alignment` (`tables.py`), algorithms (what several share in
`synth.config`) and backends, all by `mpc_protocols.options`, the workload, the domain. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.options import TEXT, Options, Schema, option, required
from parties.data.sql.addresses import FILES
from synth.algorithm import ALGORITHMS
from synth.domain.keys import COLUMNS
from synth.linked.tables import MAX_CHILDREN, NAME

MAX_EPSILON = 1e6
"""Far above what protects anybody; the accountant can still count with it."""
PARTITIONS = ("horizontal", "vertical")
SECURITIES = ("semi-honest", "malicious")
SCHEDULES = ("collect", "arriving")
PEOPLE = ("same", "disjoint")
MIN_BUNDLES = 10
MAX_CONTRIBUTORS = 1 << 16
MAX_SHARE = 0.9
"""Of the budget, that registered questions take: less than."""


@dataclass(frozen=True)
class StudyKeys(Options):
    """[study]."""

    name: str = required("text", "shown in outputs")
    algorithm: str = required(
        "word",
        "which questions are asked",
        words=lambda: ALGORITHMS.names,
        meaning="which questions are asked: [algorithms](../design/algorithms.md). `init`, `demo` and, in Python, "
        "`Study.of` and `Synthesizer` take `mosaic` unless told otherwise; `florist` trains a model instead of "
        "writing a table",
    )
    backend: str = required(
        "word",
        "who answers",
        words=lambda: BACKENDS.names,
        meaning="who answers: three parties on secret shares; three to nine on Shamir shares, of whom any minority may "
        "be bad; two without a third; the same two, to whom contributors send ciphertexts; two with CrypTen's "
        "protocols and a third that deals, which needs `make crypten`; or one process in the clear, which "
        "protects nothing",
    )
    partition: str = required(
        "word",
        "other people's rows with the same columns, or other columns about overlapping people",
        words=PARTITIONS,
    )
    security: str = option(
        SECURITIES[0],
        "word",
        "malicious: the promise holds against one computing party that departs from the protocol",
        words=SECURITIES,
        meaning="`malicious`: the promise holds against one computing party that departs from the protocol "
        '([security](../security.md)). With `backend = "replicated"` and algorithms that only ask questions; of '
        "split columns with rows joined by `row-order`, `merge3` or, with `replace`, `dh2`, and tables that can "
        "be cut into two parts of at most 1,024 cells; without `[contributors]`; else refused (10). An "
        "interrupted run is not resumed (2)",
    )
    research: bool = option(
        False,
        "flag",
        "required by algorithms and methods without a sound claim",
        meaning="required by algorithms and methods without a sound claim; otherwise they are refused (10), naming the "
        "alternative",
    )


@dataclass(frozen=True)
class UnitKeys(Options):
    """`unit` of [privacy], where it is not a row."""

    id: str = required(
        "text", "the column that names the person", shape="the name of the identifier's column"
    )
    max_rows: int = required("whole", "rows of one person at one custodian", low=1, high=1 << 31)
    max_custodians: int = required(
        "whole", "custodians that may have rows of one person", low=1, high=1 << 10
    )


@dataclass(frozen=True)
class DataKeys(Options):
    """`data`, where it is a database's table. Of a server's the address stands in the private file, which may
    have any scheme."""

    url: str = required("text", "address of the database")
    table: str = required("text", "its table or view")
    push_down: bool = option(False, "flag", "only counts leave the database")

    @classmethod
    def schema(cls) -> Schema:
        table = super().schema()
        table["properties"]["url"] = {"type": "string", "pattern": f"^({'|'.join(FILES)})://"}
        return table


TALLIES = ("tallies", "parts", "partitioned_by")
DASK = ("dask", "ca", "cert", "key", "url", "partitioned_by")
PARTITIONED_BY = ("id",)
RESERVED = frozenset({*DataKeys.options(), "tallies", "dask", "synthetic", "unfinished"})
"""What no linked table may be called: names that mean something else, as a key of `data` or as a file of a
result."""
_PLACE: Schema = {"anyOf": [TEXT, DataKeys.schema()]}


@dataclass(frozen=True)
class PartyKeys(Options):
    """[[party]]."""

    name: str = required(
        "text", "files are named after it", meaning="letters, digits, `-`, `_`, `.`; files are named after it"
    )
    address: str = required(
        "text", "host:port, where the others reach it", shape='"host:port"', meaning='`"host:port"`'
    )
    data: Any = option(
        None,
        "form",
        "this party's own table; in a deployment it stands in the party's private file",
        path=True,
        form={
            "anyOf": [
                TEXT,
                DataKeys.schema(),
                {
                    "type": "object",
                    "propertyNames": {"pattern": NAME.pattern, "not": {"enum": sorted(RESERVED)}},
                    "additionalProperties": _PLACE,
                    "minProperties": 1,
                },
            ]
        },
        meaning='`.csv`, `.parquet`, or `{ url = "postgres://...", table = "people" }`, also of MySQL, MariaDB, SQL '
        "Server, Oracle, Snowflake, BigQuery, SQLite and DuckDB; with `push_down = true` only counts leave the "
        'database ([databases](../howto/databases.md)); or `{ tallies = "counted/*.tally", parts = 40, '
        'partitioned_by = "id" }`: counts of the table\'s parts, of which the last two keys are optional, and '
        '`tallies = { engine = "NAME", ... }` names a plug-in that counts them; or `{ '
        'dask = "tls://scheduler:8786", ca, cert, key, url = "/mnt/people/*.parquet" }` (of '
        'linked tables `url = { patients = "...", visits = "..." }`), these two in the '
        "private file only ([large tables](../howto/large-tables.md)); or, of linked tables, `{ patients = ..., "
        "visits = ... }` with a file or database's table each ([linked tables](../howto/linked.md)). May stand "
        "in the private file instead, and a server's table must; in neither: this party only computes",
    )
    compute: bool = option(
        None,
        "flag",
        "whether it is one of the computing parties",
        fallback="the first three",
        meaning="whether it is one of the computing parties. `replicated` takes exactly three, and so does `additive`, "
        "whose third deals",
    )
    fingerprint: str | None = option(None, "text", "SHA-256 of its certificate: pins it")
    columns: tuple[str, ...] | None = option(
        None,
        "texts",
        "the columns it owns",
        shape="a list of different names",
        fallback="the domain's columns in its data",
        meaning="vertical: the columns it owns (of a table of children: its name). Every column has exactly one owner",
    )


@dataclass(frozen=True)
class CloseKeys(Options):
    """`close` of [contributors]."""

    at: Any = option(None, "form", "a date and time with a time zone", form=TEXT)
    bundles: int | None = option(None, "whole", "so many bundles have come", low=1, high=MAX_CONTRIBUTORS)

    @classmethod
    def schema(cls) -> Schema:
        return {**super().schema(), "minProperties": 1}


@dataclass(frozen=True)
class WaveKeys(Options):
    """`after` of [contributors]."""

    run: str = required("text", "the folder of a finished run over bundles", path=True)
    receivers: str = required("text", "its study's receivers", path=True)


def _one_or_more(kind: type[Options]) -> Schema:
    return {"oneOf": [kind.schema(), {"type": "array", "items": kind.schema(), "minItems": 1}]}


@dataclass(frozen=True)
class ContributorKeys(Options):
    """[contributors]."""

    keys: str = required(
        "text",
        "a file with the public key of each contributor",
        shape="the name of a file",
        path=True,
        meaning="a file with a line `NAME ed25519:KEY` for each contributor, as `contribute --make-key` prints it; `#` "
        "begins a comment. Its content is in the digest",
    )
    receivers: str = required(
        "text",
        "a file with the public keys of the computing parties",
        shape="the name of a JSON file",
        path=True,
        meaning="a JSON file with the public keys of the computing parties, as `inbox --make-key` writes it. Its content "
        "is in the digest",
    )
    expected_rows: int = required(
        "whole",
        "about how many rows all have together; public",
        low=1,
        high=1 << 31,
        meaning="about how many rows all have together; public. What cannot win on so many rows is not collected and "
        "never a candidate",
    )
    min: int = option(
        MIN_BUNDLES,
        "whole",
        "for fewer bundles nothing is opened",
        low=2,
        high=MAX_CONTRIBUTORS,
        meaning='for fewer bundles nothing is opened (40); with `schedule = "arriving"` fewer newcomers than that wait '
        "for a later round; at least 2",
    )
    close: Any = required(
        "form",
        "when the collection is over",
        form=_one_or_more(CloseKeys),
        meaning="`{ at = 2027-01-31T00:00:00Z, bundles = 90 }`, or one of these: the collection is over when the first "
        "comes true",
    )
    schedule: str = option(
        SCHEDULES[0],
        "word",
        "arriving: a selection in each round of arrivals",
        words=SCHEDULES,
        meaning='one run on the union. `"arriving"`: with `algorithm = "aim"`, a selection in each round of arrivals, on '
        "the bundles that are there; `close` is then a list, `[{ bundles = 20 }, { bundles = 40 }]`, one for "
        "each round, each later than the one before (counts by `min` at least), and `[aim] rounds` their number. "
        "The last one's date ends all rounds; without it a run waits for as long as too few come",
    )
    again: bool = option(
        False,
        "flag",
        "with arriving: single columns are measured once more at the end",
        meaning='with `schedule = "arriving"`: single columns are measured once more at the end',
    )
    registered: str | None = option(
        None,
        "text",
        "single columns of everybody who is enrolled, from an earlier run",
        shape="the name of a measurements.json",
        path=True,
        meaning="`measurements.json` of an earlier run that has every column by itself, once, and nothing else (`[flaim] "
        'variant = "one-shot"`, `[workload] degree = 1`); the table is brought to these columns. Its content is '
        "in the digest",
    )
    after: Any = option(
        None,
        "form",
        "earlier waves of the table",
        path=True,
        form=_one_or_more(WaveKeys),
        meaning='`{ run = "first/out", receivers = "first/receivers.json" }`, or a list of such: earlier waves of the '
        "table, each the folder of a finished run over bundles (`result.json`, `measurements.json`) and its "
        "study's receivers. What they have measured is measured of contributors who were in none of them, and "
        "added ([later waves](../howto/contribute.md#late-arrivals-a-later-wave)). Same epsilon, delta, "
        "adjacency, unit, domain (bins, labels, order of values, constraints) and `registered` as theirs; no two "
        'of them share a contributor, none is a run with `schedule = "arriving"`, whose rounds were counted over '
        "different contributors (10)",
    )


@dataclass(frozen=True)
class InferenceKeys(Options):
    """[inference]."""

    queries: tuple[str, ...] = required(
        "texts",
        "questions that the release answers with intervals",
        shape="a list of different names",
        meaning="1 to 100 questions as `infer` reads them. The marginals of the columns that they need together are "
        "measured in one batch after the columns, at full resolution, with the same noise each",
    )
    share: float = option(
        0.2,
        "number",
        "of the budget, for these",
        below=MAX_SHARE,
        meaning="of the budget, for these; less than 0.9. Nothing is taken where single columns answer all questions",
    )


@dataclass(frozen=True)
class PriorKeys(Options):
    """[prior]."""

    release: str | None = option(
        None,
        "text",
        "the folder of a finished run",
        shape="a path",
        path=True,
        meaning="the folder of a finished run (`run.json`, `measurements.json`, `model.npz`; where the study pins "
        "certificates also `signatures.json`, by the parties that it pins), of this domain or one with two of "
        "its columns at least. The path starts where the study lies; SHA-256 of the files is in the digest, the "
        "path is not",
    )
    table: str | None = option(
        None,
        "text",
        "in its place: public rows",
        shape="a path",
        path=True,
        meaning="in its place: public rows, .csv or .parquet, with two of the study's columns at least, in the study's "
        "values. Each file has at most 64 MiB",
    )
    people: str = option(
        PEOPLE[0],
        "word",
        "disjoint: nobody in this run was in that release",
        words=PEOPLE,
        meaning="`disjoint`: nobody in this run was in that release, or in those that it rests on; then ledgers count "
        "the largest of them and not the sum, if certificates of all parties are pinned, who have signed it "
        "([accounts](../design/accounts.md) 12). Not with `table`",
    )


@dataclass(frozen=True)
class ChildKeys(Options):
    """[table.NAME]."""

    parent: str = required(
        "text",
        "what the table of people is called, the same for all",
        shape="the name of the table of people",
        meaning="what the table of people is called, the same for all; or another table of children, to whose "
        "rows these belong",
    )
    key: str = required(
        "text",
        "the column of both tables that names the person",
        shape="the column that names a row's person",
        meaning="the column of both tables that names the person, or the row of that other table; in no table's "
        "columns, the same for all of one parent",
    )
    max_rows: int = required(
        "whole",
        "of one person",
        low=1,
        high=MAX_CHILDREN,
        meaning="of one person, 1 to 1024; of more, so many are drawn at random. The domain has `NAME_count`, from 0 to "
        "it",
    )
    order: str | None = option(
        None,
        "text",
        "a column that orders a person's children",
        shape="the name of a column of this table",
        meaning="a column that orders a person's children: numbers, days, times, or an ordinal column of the table",
    )
    columns: Any = required(
        "form",
        "as under [domain.columns]",
        form=COLUMNS,
        meaning="as under `[domain.columns]`. The domain has each as `NAME_column`, of a child drawn at random, and as "
        "`NAME_before_column` (`NAME_other_column` without an order), of the one before (of another one)",
    )
