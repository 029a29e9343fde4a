"""`init DIR`: a commented, valid study to start from, and a private file to go with it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.failures import reason

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Write DIR/study.toml, a study with every setting explained, and DIR/private.example.toml, an
example of a party's private settings. Nothing is overwritten and no data is made up.
"""
STUDY = '''\
# A study: public, the same file at every party. Its hash is compared before anything private moves.
# Paths are relative to this file. `python -m runner check study.toml` names every problem in it.

[study]
name = "example"
algorithm = "aim"              # which questions are asked: AIM picks the marginals that the model gets most wrong
backend = "replicated"         # who answers them: three parties on secret shares ("ideal": one process in the clear, for tests)
partition = "horizontal"       # every custodian has different people's rows, and the same columns; "vertical": different columns
                               # about overlapping people (README)

[privacy]                      # what anybody can learn about one unit from everything that is released
epsilon = 1.0
delta = 1e-9                   # well below one over the number of people
adjacency = "add-remove"       # one unit's rows more or less; "replace": row counts are public, one unit's values change
max_rows = 1000000             # public bound on the rows of all parties together; a custodian with more refuses
unit = "row"                   # or { id = "person_id", max_rows = 3, max_custodians = 1 }: several rows of one person

[workload]                     # which marginals the synthetic table is to preserve
degree = 2                     # all pairs of columns; with count = 64 and seed = 1: a random choice of 64 of them
# cliques = [["age", "income"], ["work", "income"]]          # or name them

[aim]
rounds = 10                    # or "adaptive"
max_model_mb = 4               # larger models fit better and take longer
# synthetic_rows = 10000       # default: about as many as there are rows, known only with noise

[domain.columns.age]           # public knowledge, never taken from the data
kind = "numeric"
low = 0                        # numbers outside low..high are clamped
high = 99
bins = 20
integral = true
missing = true                 # empty fields are allowed

[domain.columns.income]
kind = "numeric"
low = 0
high = 200000
bins = 16

[domain.columns.work]
kind = "categorical"
values = ["private", "public", "self-employed", "none"]      # any other value is refused

[session]
connect_s = 120                # how long parties wait for one another
silence_s = 10                 # a party that is silent for longer is lost

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
'''
PRIVATE = '''\
# One party's private settings; this file never leaves the party: run study.toml --party north --private private.toml
# Paths are relative to this file.

data = "north.csv"             # .csv, .parquet, or { url = "postgres://..." or "duckdb://...", table = "people" }
# listen = "0.0.0.0:7101"      # if it differs from the study's address
# out = "out"
cert = "north.crt"             # from `python -m runner certs make` or `certs request` and `certs sign`
key = "north.key"              # readable by this user only
ca = "ca.crt"
# allow_empty = true           # a table without rows is refused unless this is set

[ledger]                       # what this data has spent over all runs
dataset = "people of the north, 2026"
cap_epsilon = 4.0              # runs that would exceed it are refused (exit 50); without a cap the ledger only counts
cap_delta = 1e-8
'''
FILES = {"study.toml": STUDY, "private.example.toml": PRIVATE}


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "init", run, help="write a commented study to start from", description=DESCRIPTION,
                     examples="  python -m runner init mystudy\n")
    parser.add_argument("dir", metavar="DIR", type=Path, help="a directory, made if it does not exist")


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    directory: Path = arguments.dir
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if (directory / name).exists():
                raise UsageError(f"{directory / name} exists already and is left alone; name another directory.")
        for name, text in FILES.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written ({reason(error)}); name another directory.") from None
    study = directory / "study.toml"
    print(f"""{study} describes a study of three custodians. Next:
  1. declare your columns under [domain.columns] and the parties' names; put each custodian's table where `data` says
  2. python -m runner check {study}
  3. python -m runner plan {study}
  4. python -m runner run {study} --out {directory / "out"}
{directory / "private.example.toml"} shows what a party keeps to itself in a deployment.""")
