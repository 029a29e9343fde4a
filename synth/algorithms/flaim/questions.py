"""What clients are asked, as public bytes: the same for all clients of a cohort, and all that their answers
may depend on.

    register   once, before the first round: one-way marginals of everybody
    size       the client's noisy number of rows; accepting it is a participation, whatever comes of it
    columns    one-way marginals
    choose     a vector of zeros with a one at the chosen candidate
    counts     the marginals of a list, zeros where the client did not choose; its noisy rows beside the chosen one
    drawn      one public marginal, and the noisy rows
    truth      marginals as they are: of a variant that protects nothing

A line of JSON with sorted keys, and after it the model's archive where clients compare with one, and what
else they are sent to compare with (`variant.Exposure`; the JSON's "truth" is its length). `parse` believes
nothing: what comes is checked to be the canonical encoding of a question.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Question
from mpc_protocols.mechanisms.gaussian import sampler

if TYPE_CHECKING:
    from synth.algorithms.flaim.plan import FlaimPlan

KINDS: Final = ("register", "size", "columns", "choose", "counts", "drawn", "truth")


@dataclass(frozen=True)
class Asked:
    """One question. round: from 1; 0 before the first. cliques: candidates, or those whose counts are asked.
    rows: the cohort's noisy rows, for `choose`. model, references: archive, and what is sent beside it, for
    `choose`."""

    kind: str
    round: int
    cliques: tuple[Clique, ...] = ()
    rows: int = 0
    model: bytes = b""
    references: bytes = b""

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        head = {
            "kind": self.kind,
            "round": self.round,
            "cliques": [list(clique) for clique in self.cliques],
            "rows": self.rows,
            "truth": len(self.references),
        }
        line = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        return line + b"\n" + self.model + self.references


def question_of(plan: FlaimPlan, asked: Asked) -> Question:
    """How long an answer is, and how much a unit moves it: as the plan has it, the same at whoever asks and
    whoever is asked.

    asked: cliques of the plan's columns only.
    """
    marginals = len(plan.one_way) if asked.kind in ("register", "columns") else 1
    cells = [plan.domain.cells(clique) for clique in asked.cliques]
    match asked.kind:
        case "register" | "columns":
            length = sum(plan.domain.cells(clique) for clique in plan.one_way)
        case "size":
            length = 1
        case "choose":
            length = len(cells)
        case "truth":
            length = sum(cells)
        case _:  # the noisy rows of a marginal beside its counts
            length = sum(cells) + len(cells)
    noise = sampler(plan.size_sigma2).bound if plan.size_sigma2 else 0
    return Question(asked.to_bytes(), length, plan.max_rows + noise, marginals * plan.moved)


def parse(content: bytes) -> Asked:
    """The inverse of `Asked.to_bytes`. Raises `ProtocolAborted` for anything else."""
    head, _, rest = content.partition(b"\n")
    try:
        fields = json.loads(head)
        end = len(rest) - _whole(fields["truth"])
        found = Asked(
            str(fields["kind"]),
            _whole(fields["round"]),
            tuple(_clique(names) for names in fields["cliques"]),
            _whole(fields["rows"]),
            rest[:end],
            rest[end:],
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found is None or found.kind not in KINDS or found.to_bytes() != content:
        raise ProtocolAborted("A client was asked something that is no question of its study; stop the run.")
    return found


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("A whole number was expected.")
    return value


def _clique(names: Sequence[Any]) -> Clique:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("A list of names was expected.")
    return tuple(names)
