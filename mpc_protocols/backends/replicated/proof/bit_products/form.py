"""In how many rounds a batch is proved, and how often its columns are halved first: a function of public
sizes.

At once, in 7 rounds, a proof opens as many bits as the folded columns have. In stages, in 10, the columns are
halved h times first, and lookups can be proved. What is cheapest is chosen: rounds count as bytes
(`engine.latency`), and so does CPU. So small batches are proved at once and large ones in stages, and the
more so, the nearer the parties are to each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import Final

from mpc_protocols.backends.replicated.proof.field import BLOCK

MAX_HALVINGS: Final = 2
"""With two, a proof takes no more CPU than with none; a third one would."""
EVALUATION_BYTES: Final = 50_000
"""What evaluating all points of the grid is worth beside what grows with the columns: 2 ms of CPU."""
ROUNDS: Final = {False: 7, True: 10}
"""Of a proof, by whether it is made in stages."""


@dataclass(frozen=True)
class Form:
    """in_stages: whether what masks the columns follows the first challenge. halvings: of the columns of
    gates, 0 at once."""

    in_stages: bool = False
    halvings: int = 0

    @property
    def segments(self) -> int:
        """Into how many parts a row is cut."""
        return 1 << self.halvings

    def width(self, words: int, rows: int) -> int:
        """Words of a segment of so many words of statements."""
        return -(-words // (rows << self.halvings))


@dataclass(frozen=True)
class ProofSizes:
    """What a batch holds of one prover.

    gates: words of statements by number of entries. lookups: bits of the outer index and words of draws of
    each, in order; alike for all provers.
    """

    gates: Counter[int] = field(default_factory=Counter)
    lookups: list[tuple[int, int]] = field(default_factory=list)

    @property
    def outer_bits(self) -> list[int]:
        """Of the lookups, each number once."""
        return sorted({outer for outer, _ in self.lookups})

    def largest(self, other: ProofSizes) -> ProofSizes:
        """Of each kind the larger of two."""
        return ProofSizes(self.gates | other.gates, max(self.lookups, other.lookups, key=len))

    def together(self, other: ProofSizes) -> ProofSizes:
        """Of both batches in one."""
        return ProofSizes(self.gates + other.gates, self.lookups + other.lookups)

    def first_parts(self, form: Form, variables: int) -> list[int]:
        """Elements of the parts of the prover's first message (`batch.FirstValues`)."""
        points, rows = int(3**variables), 1 << variables
        masked = 0 if form.in_stages else points
        of_lookups = [int(3**outer) - 1 for outer in self.outer_bits]
        return [form.segments * (points - rows), *of_lookups, masked, masked]

    def first_values(self, form: Form, variables: int) -> int:
        """Elements of the prover's first message."""
        return sum(self.first_parts(form, variables))

    def second_values(self, form: Form) -> int:
        """Elements of the prover's second message, in stages."""
        return int(3**form.halvings) + 1 if form.in_stages else 0

    def hidden_shapes(self, form: Form, variables: int) -> list[tuple[int, int, int]]:
        """Of each array of words that a right verifier opens under a mask, once for x and once for y."""
        rows = 1 << variables
        of_gates = [(rows, entries, form.width(words, rows)) for entries, words in sorted(self.gates.items())]
        return of_gates + [(rows, 1, words) for _, words in self.lookups]

    def form(self, variables: int, latency_bytes: int) -> Form:
        """The least rounds * latency_bytes + bytes, with EVALUATION_BYTES; products of matrices are proved
        alike in all.

        Of the largest of three provers, so that it is alike at all parties.
        """

        def cost(form: Form) -> int:
            elements = self.first_values(form, variables) + self.second_values(form)
            hidden = sum(8 * prod(shape) for shape in self.hidden_shapes(form, variables))
            sent = BLOCK * elements + 2 * hidden
            evaluations = int(3**form.halvings) + form.segments + 2
            return ROUNDS[form.in_stages] * latency_bytes + sent + EVALUATION_BYTES * evaluations

        staged = [Form(True, halvings) for halvings in range(MAX_HALVINGS + 1)]
        return min(staged if self.lookups else [Form(), *staged], key=cost)
