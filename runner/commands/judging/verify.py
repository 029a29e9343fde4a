"""`verify DIR [DIR ...]`: an auditor's recomputation of what a run's files claim."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, UsageError
from mpc_protocols.process.foreign_text import printable
from parties.budget.ledger import Ledger
from runner.check.finding import problem
from runner.results.outdir import RUN
from runner.review.verification.files import files
from runner.review.verification.linked import linked_tables
from runner.review.verification.place import Place
from runner.review.verification.prior import begun_from
from runner.review.verification.recomputed import recomputed
from runner.review.verification.signers import Authority
from runner.review.verification.spending import spending
from runner.study import load, private_file

if TYPE_CHECKING:
    from runner.check.finding import Finding


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    own = None if arguments.study is None else load(arguments.study)
    ca = None if arguments.ca is None else Authority.of(arguments.ca)
    for directory, many in Counter(directory.resolve() for directory in arguments.dirs).items():
        if many > 1:
            raise UsageError(f"{directory} is named {many} times; name the directory of each party once.")
    places = [Place.at(directory) for directory in arguments.dirs]
    ledgers = [
        *arguments.ledger,
        *(Ledger(private_file.load(file).ledger.file).path for file in arguments.private),
    ]
    first: CosynthError | None = None

    def findings() -> Iterator[Finding]:
        try:
            yield from files(places, own, ca)
            yield from spending(places, ledgers, own)
            yield from recomputed(places[0], own)
            yield from begun_from(places[0], arguments.prior)
            for place in places:
                yield from linked_tables(place)
        except CosynthError as error:  # nothing after it can be read
            yield problem(error)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError):
            yield problem(
                UsageError(
                    f"{places[0].directory / RUN} is not as a run writes it; it is damaged or of another version."
                )
            )

    for finding in findings():
        kind = "problem" if finding.error else "not checked" if finding.note else "holds"
        if arguments.json:
            print(json.dumps({"kind": kind, "text": finding.text}), flush=True)
        elif not finding.error or first is not None:
            print(f"{kind:<12} {printable(finding.text, line=True)}", flush=True)
        first = first or finding.error
    if first is not None:
        raise first
