"""The study that `init` writes to start from, with every setting explained, and a party's private file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpc_protocols.backend import BACKENDS
from mpc_protocols.process.installation import as_started
from mpc_protocols.psu.method import AUTO, METHODS, methods
from runner.study.declared.tables import Session
from synth.algorithm import ALGORITHMS, proposed

COMMENT = 31
"""Column at which comments begin."""
_START = """\
#:schema ./study.schema.json
# A study: public, the same file at every party. Its hash is compared before anything private moves.
# Paths are relative to this file. `cosynth check study.toml` names every problem in it.

[study]
name = "example"
{algorithm}
{backend}
"""
_HORIZONTAL = """\
partition = "horizontal"       # every custodian has different people's rows, and the same columns; for different columns about
                               # overlapping people: `cosynth init DIR --vertical`
# security = "malicious"       # the promise also holds if one of the three computing parties departs from the protocol
                               # (docs/security.md); takes about twice as long

[privacy]                      # what anybody can learn about one unit from everything that is released
epsilon = 1.0
delta = 1e-9                   # well below one over the number of people
adjacency = "add-remove"       # one unit's rows more or less; "replace": row counts are public, one unit's values change
max_rows = 1000000             # public bound on the rows of each custodian; one with more refuses
unit = "row"                   # or { id = "person_id", max_rows = 3, max_custodians = 1 }: several rows of one person

"""
_VERTICAL = """\
partition = "vertical"         # the parties with data hold different columns about overlapping people
# security = "malicious"       # the promise also holds if one of the three computing parties departs from the protocol
                               # (docs/security.md); takes two to four times as long

[privacy]                      # what anybody can learn about one person from everything that is released
epsilon = 1.0
delta = 1e-9                   # well below one over the number of people
adjacency = "add-remove"       # one person more or less; "replace": lengths of lists are public, one person's values change
max_rows = 1000000             # public bound on the rows of each party; an owner with more refuses

[alignment]                    # how the owners' records are joined; nobody learns who is in common
method = "psu"                 # or {aligned}: row after row belongs together already (then without id and normalise)
id = "person_id"               # every owner's table has it; it is no column of the domain. Several: ["name", "born"]
normalise = "text"             # how it is written: text, exact, name, email, date or "phone:FR" (any country).
                               # What becomes equal is one person. Compare how both sides write it, with invented people: if
                               # nobody matches, the run still ends well, with a table of noise
population = "intersection"    # people that every owner holds; "union": that any owner holds (every column: missing = true)
duplicates = "refuse"          # one row per person; "first": further rows of a person are left out
{via}
# min_size = 1000              # an owner with fewer people refuses: joining few would reveal who they are
# size_epsilon = 0.1           # the parties (not recipients) are told each list's length and the size of the union, with noise:
# size_delta = 1e-9            # each number costs an owner this much on top of epsilon and delta; `plan` adds it up
# pad_to = 5000                # or { north = 5000, south = 9000 }: lists are filled up to this length, which then costs nothing

"""
_WORKLOAD = """\
[workload]                     # which marginals the synthetic table is to preserve
degree = 2                     # all pairs of columns; with count = 64 and seed = 1: a random choice of 64 of them
# cliques = [["age", "income"], ["work", "income"]]          # or name them
# label = "income"             # joins every one of them: for a table on which this column is to be predicted

"""
_QUESTIONS = """\
{workload}{table}

{domain}[session]
{session}

"""
_COLUMNS = """\
[domain.columns.age]           # public knowledge, never taken from the data
kind = "numeric"
low = 0                        # numbers outside low..high are clamped
high = 99
bins = 20
integral = true
missing = true                 # empty fields are allowed
                               # other kinds: integer, date, datetime, ordinal, boolean, codes (docs/reference/study-file.md)

[domain.columns.income]
kind = "numeric"
low = 0
high = 200000
bins = 16

[domain.columns.work]
kind = "categorical"
values = ["private", "public", "self-employed", "none"]      # any other value is refused

"""
CONFIRM = """\
# [domain.columns.NAME]        # public knowledge, never taken from the data: domain.proposed.toml has a proposal for each column
                               # of your table. Confirm each, then append that file to this one

"""
_CUSTODIANS = """\
# The first three parties compute; further ones only contribute their rows. A computing party needs no data of its own.
[[party]]
name = "north"
address = "127.0.0.1:7101"     # between organisations: the host that the others reach, and one port
data = "north.csv"             # this party's own table; in a deployment it stands in the party's private file instead

[[party]]
name = "south"
address = "127.0.0.1:7102"
data = "south.csv"

[[party]]
name = "west"
address = "127.0.0.1:7103"
data = "west.csv"
"""
_OWNERS = """\
# The first three parties compute; further ones only contribute. Two to eight own columns; who computes needs no data of its own.
[[party]]
name = "north"
address = "127.0.0.1:7101"     # between organisations: the host that the others reach, and one port
data = "north.csv"             # person_id, age, income; in a deployment it stands in the party's private file instead
# columns = ["age", "income"]  # its columns of the domain, if the table has others of them too; every column has one owner

[[party]]
name = "south"
address = "127.0.0.1:7102"
data = "south.csv"             # person_id, work

[[party]]
name = "west"                  # only computes
address = "127.0.0.1:7103"
"""
PRIVATE = """\
# One party's private settings; this file never leaves the party: run study.toml --party north --private private.toml
# Paths are relative to this file.

{data} # .csv, .parquet, or { url = "postgres://...", table = "people" }, see docs/howto/databases.md
# listen = "0.0.0.0:7101"      # if it differs from the study's address
# out = "out"
cert = "north.crt"             # from `cosynth certs make` or `certs request` and `certs sign`
key = "north.key"              # readable by this user only
ca = "ca.crt"
# allow_empty = true           # a table without rows is refused unless this is set

[ledger]                       # what this data has spent over all runs
dataset = "people of the north, 2026"
cap_epsilon = 4.0              # runs that would exceed it are refused (exit 50); without a cap the ledger only counts
cap_delta = 1e-8
# cap_unit = { id = "person", max_rows = 3, max_custodians = 1 }  # or "row": whom the cap protects; runs at unit "row" then
#                              # count 9 times. Default of this and of cap_adjacency: what the first run has
# cap_adjacency = "add-remove" # or "replace", under which runs at add-remove count 4 times
# max_alignments = 3           # runs of vertical studies with one and the same other party
# file = "ledger.db"           # default: $COSYNTH_LEDGER, else cosynth/ledger.db under the user's data directory
"""


def private_template(table: Path | Mapping[str, Path] = Path("north.csv")) -> str:
    """A party's private file, of the custodian of this table, or of linked tables by name."""
    return as_started(PRIVATE).replace("{data}", f"{data_line(table):<{COMMENT - 1}}")


def data_line(table: Path | Mapping[str, Path]) -> str:
    """`data = ...` of a table, or of linked tables by name."""
    if isinstance(table, Path):
        return f"data = {json.dumps(str(table), ensure_ascii=False)}"
    inner = (f"{name} = {json.dumps(str(path), ensure_ascii=False)}" for name, path in table.items())
    return f"data = {{ {', '.join(inner)} }}"


def template(vertical: bool, domain: str = _COLUMNS, linked: Sequence[str] = ()) -> str:
    """A commented study: the proposed algorithm and the first backend, with every key and default that they
    declare.

    domain: the tables of its columns. linked: the names of linked tables, which have a workload of their own.
    """
    algorithm, backend = proposed(), next(iter(BACKENDS))
    asked = [f'"{other.name}": {other.summary}' for other in ALGORITHMS if other is not algorithm]
    answer = [f'"{other.name}": {other.summary}' for other in BACKENDS if other is not backend]
    joined = [f'"{other.name}": for {other.owners}' for other in METHODS if other.psu]
    parts = {
        "{workload}": "" if linked else _WORKLOAD,
        "{algorithm}": _line(
            f'algorithm = "{algorithm.name}"', f"which questions are asked: {algorithm.summary}", asked
        ),
        "{backend}": _line(f'backend = "{backend.name}"', f"who answers them: {backend.summary}", answer),
        "{table}": f"[{algorithm.name}]\n{algorithm.config.template(COMMENT)}",
        "{session}": Session.template(COMMENT, "connect_s", "silence_s"),
        "{aligned}": " or ".join(f'"{other}"' for other in methods()[1:]),
        "{via}": _line(
            f'# via = "{AUTO}"',
            "the protocol; or by name, for how many owners (docs/howto/vertical.md):",
            joined,
        ),
    }
    text = _START + (_VERTICAL + _QUESTIONS + _OWNERS if vertical else _HORIZONTAL + _QUESTIONS + _CUSTODIANS)
    for place, value in parts.items():
        text = text.replace(place, value)
    for name in ("north", "south", "west") if linked else ():
        line = data_line({table: Path(f"{name}_{table}.csv") for table in linked})
        text = re.sub(rf'data = "{name}.csv" *', f"{line} ", text).replace(f"{line} \n", f"{line}\n")
    return as_started(text).replace("{domain}", domain)


def _line(setting: str, comment: str, more: list[str]) -> str:
    """A setting with its comment, and further lines of comment."""
    return "\n".join(
        [f"{setting:<{COMMENT - 1}} # {comment}", *(f"{'':<{COMMENT - 1}} # {words}" for words in more)]
    )


def called(text: str, name: str) -> str:
    """The template's study by this name, under which a ledger counts what its custodians spend; "" leaves it
    as it is."""
    return (
        text.replace('name = "example"', f"name = {json.dumps(name, ensure_ascii=False)}", 1)
        if name
        else text
    )


def with_custodians(text: str, names: Sequence[str]) -> str:
    """The template's study with these custodians as its parties, and, if they are two, a third that computes."""
    head = text[: text.index("[[party]]")]
    everybody = [*names, *(["third"] if len(names) == 2 else [])]
    return head + "\n".join(
        f'[[party]]\nname = {json.dumps(name, ensure_ascii=False)}\naddress = "127.0.0.1:{7101 + number}"\n'
        for number, name in enumerate(everybody)
    )
