"""Does each contributor's input count the rows of one table? One bit of each is opened
(`docs/design/inputs.md`).

Problem: false counts of a contributor, huge or negative ones, break the bounds on which signs and scores rest
(`docs/design/mechanisms.md` 5): what a choice of marginal tells about SOMEBODY ELSE's record is then more
than is charged. A test of the sums would let a liar learn about the others, so each contributor's own cells
are tested, before they are used:

    1. everybody has what contributors sent; a public seed that all computing parties contributed to (`Engine.seed`)    2 rounds
    2. `conditions` on each contributor's shared cells: linear, local
    3. signs of all these numbers; CHECKS sums of random subsets of the sign bits of each contributor: linear, local
    4. which contributors' sums are all zero is opened: `BitGates.zero_rows`

A contributor is found to be bad with probability 1 - 2^-62 or more if its cells are not consistent counts of
at most max_rows rows; one whose cells are is never. In a run that is gone on with, the number of rows is
linked with the one on which its results rest.

Who learns what: the computing parties one bit about each contributor, a function of its own input alone,
which is the same for all consistent inputs. A simulator that knows it gives the openings. Threat model:
contributors are arbitrary, also together with as many computing parties as the backend allows to be
corrupted; computing parties are semi-honest. The seed is drawn when all have received all contributions, so
that no input can depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import B, on_parts
from mpc_protocols.engine.bitwise.bitslice import Elements, to_bits
from mpc_protocols.engine.inputs.check.conditions import WORD_CELLS, Conditions
from mpc_protocols.engine.inputs.marginals import Marginals
from mpc_protocols.engine.interface import Engine, N
from mpc_protocols.engine.prg import KeyStream, derive
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.public.cliques import CliqueRegister
from mpc_protocols.public.history import History

CHECKS: Final = 64
"""Random sums of a contributor's sign bits: if one of these is 1, all sums are 0 with probability 2^-64."""
TESTED: Final = 1 << 18
"""Numbers whose signs are computed together, a whole number of words: bounds the memory at some 100 MB."""
_ROWS: Final[Clique] = ()
"""The marginal of no column: the number of rows, as an earlier attempt at the run has shared it."""
_CONDITIONS, _SIGNS = b"input conditions", b"input signs"


class InputCheck(Generic[B, N]):
    """One computing party's part in the checks of a run, one for each time that marginals are shared."""

    def __init__(self, engine: Engine[B, N], facts: StudyFacts, history: History) -> None:
        """engine: that keeps contributors' shares apart (`Marginals.apart`). facts: of a study that has
        inputs checked. history: of a run that is gone on with, the numbers of rows on which its results rest.

        Raises `UsageError` (what is kept of them cannot be read).
        """
        assert facts.inputs is not None
        self._engine, self._marginals, self._rows = engine, engine.source, facts.inputs.max_rows
        self._register = CliqueRegister(facts)
        kept = [sharing for sharing in history.sharings().values() if sharing.rows]
        self._resumed = kept[-1].session if kept else b""
        self._before: dict[int, Any] = self._unpacked(kept[-1].rows) if kept else {}
        self._agreed: list[Clique] = [_ROWS] if kept else []
        self.signs = self.rounds = self.bytes_sent = 0
        """Of all checks so far: numbers whose signs were computed; the longest chain of messages, and what
        this party sent."""

    @property
    def rows(self) -> bytes:
        """This party's shares of each contributor's number of rows, to be kept after the first sharing of a
        new run."""
        of = [self._marginals.rows_of(custodian) for custodian in self._marginals.apart]
        return self._marginals.pack(self._marginals.linear(_concatenated, *of))

    def _unpacked(self, rows: bytes) -> dict[int, Any]:
        """By contributor."""
        share = self._marginals.unpack(rows)
        return {
            contributor: self._marginals.linear(itemgetter(slice(place, place + 1)), share)
            for place, contributor in enumerate(self._engine.wire.contributors)
        }

    def inconsistent(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> list[int]:
        """Contributors whose shares of these cliques, the last that were shared, are not consistent with each
        other and with what they shared before. Opens one bit of each. levels: those that the cliques name.

        Raises `ProtocolAborted` if the parties have kept numbers of rows of different attempts."""
        self._register.declare(levels)
        conditions = Conditions.of(self._register, self._agreed, cliques, self._rows)
        self._agreed += cliques
        contributors = list(self._marginals.apart)
        if not contributors:
            return []
        before = self._engine.wire.traffic()
        seed = self._engine.seed(self._resumed)
        values = _Values(self._marginals, self._before, conditions, seed)
        self.signs += len(contributors) * conditions.size
        chosen = KeyStream(derive(seed, _SIGNS)).draw((conditions.size // WORD_CELLS, CHECKS), np.uint64, 0)
        sums: B | None = None
        for batch in batches(len(contributors), conditions.size):
            negative = self._negative(values, [(contributors[row], place) for row, place in batch])
            added = _sums(negative, batch, len(contributors), chosen)
            sums = added if sums is None else sums ^ added
        assert sums is not None
        consistent = self._engine.gates.zero_rows((len(contributors), 1), [(slice(0, 1), sums)])
        after = self._engine.wire.traffic()
        self.rounds += after.rounds - before.rounds
        self.bytes_sent += after.bytes_sent - before.bytes_sent
        return [number for number, fine in zip(contributors, consistent[:, 0], strict=True) if not fine]

    def _negative(self, values: _Values, pieces: Sequence[tuple[int, slice]]) -> B:
        """Signs of pieces of contributors' conditions, one after the other: words of shape (words,)."""
        shares = self._marginals.linear(
            _concatenated, *(values.of(contributor)[place] for contributor, place in pieces)
        )
        public = np.concatenate([values.conditions.offsets[place] for _, place in pieces])
        gates = self._engine.gates
        return gates.negative(gates.add_public(self._engine.numbers(shares), public))


class _Values:
    """Shares of contributors' conditions, one contributor's at a time."""

    def __init__(
        self, marginals: Marginals[Any], before: Mapping[int, Any], conditions: Conditions, seed: bytes
    ) -> None:
        """before: shares of contributors' numbers of rows of an earlier attempt."""
        self.conditions, self._before = conditions, before
        self._marginals, self._subsets = marginals, conditions.subsets(KeyStream(derive(seed, _CONDITIONS)))
        self._latest: tuple[int, Any] | None = None

    def of(self, contributor: int) -> Any:
        """The share of a contributor's."""
        if self._latest is None or self._latest[0] != contributor:
            shares = dict(self._marginals.apart[contributor])
            if contributor in self._before:
                shares[_ROWS] = self._before[contributor]
            cliques = list(shares)

            def values(*cells: Elements) -> Elements:
                return self.conditions.values(dict(zip(cliques, cells, strict=True)), self._subsets)

            self._latest = contributor, self._marginals.linear(values, *shares.values())
        return self._latest[1]


def _concatenated(*arrays: Elements) -> Elements:
    return np.concatenate(arrays)


def batches(contributors: int, size: int) -> Iterator[list[tuple[int, slice]]]:
    """Pieces (contributor, place in its numbers) that are computed with together: at most TESTED numbers."""
    batch: list[tuple[int, slice]] = []
    room = TESTED
    for contributor in range(contributors):
        start = 0
        while start < size:
            length = min(room, size - start)
            batch.append((contributor, slice(start, start + length)))
            start, room = start + length, room - length
            if not room:
                yield batch
                batch, room = [], TESTED
    if batch:
        yield batch


def _sums(
    negative: B, batch: Sequence[tuple[int, slice]], contributors: int, chosen: NDArray[np.uint64]
) -> B:
    """Random sums of the signs of a batch: single bits (contributors, 1, CHECKS). Local.

    chosen: which signs of a contributor are in each sum, words (signs / 64, CHECKS).
    """

    def sums(plane: NDArray[Any]) -> NDArray[Any]:
        found, start = np.zeros((contributors, 1, CHECKS), np.uint8), 0
        cells = sum(place.stop - place.start for _, place in batch)
        words = np.packbits(to_bits(plane, cells, np.uint8)).view(np.uint64)  # cells in their order
        for row, place in batch:
            subset = chosen[place.start // WORD_CELLS : place.stop // WORD_CELLS]
            piece = words[start : start + len(subset), np.newaxis]
            together = np.bitwise_xor.reduce(piece & subset, axis=0)
            found[row, 0] ^= np.bitwise_count(together) & np.uint8(1)
            start += len(subset)
        return found

    return on_parts(sums, negative)
