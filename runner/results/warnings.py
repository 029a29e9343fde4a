"""What is to be said first of a finished run: no relations, columns that stand alone, too few rows, a promise
of little.

A function of what was released and of the study, so every party writes the same (`docs/reference/outputs.md`,
`warnings`).
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from mpc_protocols.process.foreign_text import printable
from synth.judgement.parameters import unsafe
from synth.judgement.warned import Warned

if TYPE_CHECKING:
    from runner.results.release import Release
    from synth.domain import Domain
    from synth.judgement.relations import Relations

NAMED = 5
RED, PLAIN = "\x1b[1;31m", "\x1b[0m"
MAX_JUDGED = 500
"""Columns of a table whose relations are judged."""


def relations_of(release: Release, domain: Domain) -> Relations | None:
    """The verdict on a release; None where there is no model of columns measured together by everybody."""
    from synth.judgement.relations import relations
    from synth.mrf import Model

    if release.prior is not None and release.prior.known:
        return None  # what was measured afresh is what seemed to have changed, and says nothing of the rest
    if release.reported or not release.measurements or len(domain) < 2 or len(domain) > MAX_JUDGED:
        return None
    model = Model.from_bytes(release.model)
    return relations(model, release.measurements, domain.sizes, release.noise_share is not None)


def warnings_of(
    found: Relations | None, fallback: str | None, epsilon: float, delta: float, rows: int
) -> tuple[Warned, ...]:
    """The warnings of a run, the most important first. fallback: why the columns are independent, if they
    are. rows: noisy."""
    warned = [*unsafe(epsilon, delta, rows)]
    if fallback is not None or (found is not None and not found.kept):
        warned.append(
            Warned(
                "no-relations",
                "No two columns of this table are related: whatever is predicted or correlated from it means nothing.",
            )
        )
        if found is not None and found.visible:
            warned.append(
                Warned(
                    "noise-above-signal", f"{found.sentence} What is lost was seen, and not worth its noise."
                )
            )
    elif found is not None and found.unrelated:
        names = ", ".join(found.unrelated[:NAMED])
        more = f" and {len(found.unrelated) - NAMED} more" if len(found.unrelated) > NAMED else ""
        warned.append(
            Warned(
                "unrelated-column",
                f"No relation of these columns to another one shows: {names}{more}. That may be so, or the noise hides it.",
            )
        )
    if fallback is not None:
        warned.append(
            Warned(
                "few-rows",
                f"{fallback} More rows, a larger epsilon or fewer values help; the command plan says how much.",
            )
        )
    return tuple(warned)


def texts_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts of run.json's warnings; none of a run of an earlier version, or of what is no such list."""
    found = facts.get("warnings", [])
    if not isinstance(found, list):
        return ()
    return tuple(str(one["text"]) for one in found if isinstance(one, dict) and "text" in one)


def of_columns(facts: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """What a run's verdict says against reading a relation out of these columns; nothing of one column, or
    without a verdict."""
    found = facts.get("relations")
    if len(columns) < 2 or not isinstance(found, dict):
        return ()
    if not found.get("kept"):
        return ("No two columns of this table are related: this marginal shows single columns only.",)
    alone = [name for name in columns if name in found.get("unrelated", ())]
    lost = {frozenset(pair["columns"]) for pair in found.get("lost", ())}
    if alone:
        return (f"No relation of {', '.join(alone)} to another column shows in this table.",)
    return tuple(
        f"A relation of {' and '.join(pair)} showed through the noise, and this table does not keep it."
        for pair in itertools.combinations(columns, 2)
        if frozenset(pair) in lost
    )


def tell(texts: Sequence[str]) -> None:
    """As the last lines on stderr."""
    sys.stdout.flush()
    for text in texts:
        print(emphasised(f"WARNING: {printable(text, line=True)}", sys.stderr), file=sys.stderr)


def emphasised(text: str, stream: TextIO) -> str:
    """The text, its lines of warnings in red if the stream is a terminal with colours."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return "\n".join(f"{RED}{line}{PLAIN}" if "WARNING" in line else line for line in text.split("\n"))
