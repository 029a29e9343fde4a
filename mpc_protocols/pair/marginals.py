"""The marginals that two parties hold in additive shares modulo 2^32, and those that are sums of them.

Only maximal cliques are shared (`PublicState`); every other marginal is a local sum of shared ones, made when it is first needed
and kept. Where shares come from:

    CountedMarginals    everybody's own counts: a computing party's share IS its own counts, plus what contributors send, of
                        whom each splits its counts between the two (`engine.contribution`); no message between them
    JoinedMarginals     two owners' columns (`two_owners`)

Sharing releases nothing: each party sees uniform bytes. `sharing` names the input sharing: noise is bound to it, so that data
read again never meets the same noise. Threat model: the two parties do not collude; contributors may with either.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mpc_protocols.engine.bitslice import Elements
from mpc_protocols.engine.contribution import Received, blocks, local_cells
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.pair.random_ot import Transfers
from mpc_protocols.pair.two_owners import check_owners, share_cliques
from mpc_protocols.partition import OwnRows, VerticalData
from mpc_protocols.public.state import PublicState
from mpc_protocols.wire import Wire


class PairMarginals(ABC):
    """One computing party's shares of marginals, however they come to be shared."""

    def __init__(self, session_id: bytes, public: bytes = b"") -> None:
        """public: what both must agree on besides the transcript."""
        self._shared: dict[Clique, Elements] = {}
        self._derived: dict[Handle, Elements] = {}
        self.public = public
        self.sharing = binding(b"input sharing", session_id)

    @abstractmethod
    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> dict[Clique, Elements]:
        """Shares of these marginals, modulo 2^32, cells in row-major order."""

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. `inputs` is the transcript that asked for it.

        levels: those that the cliques name. Raises `DataRefused` before anything is sent if the own data does not fit.
        """
        shared = self._input(cliques, levels)
        self._shared |= shared
        self.sharing = binding(b"input sharing", self.sharing, inputs)
        return sum(map(len, shared.values()))

    def marginal(self, state: PublicState, handle: Handle) -> Elements:
        """The share of a handle's marginal, (cells,). Local."""
        if handle not in self._derived:
            derivation = state.derivation(handle)
            self._derived[handle] = derivation.apply(self._shared[derivation.source])
        return self._derived[handle]

    def rows(self) -> Elements | None:
        """The share of the number of rows, (1,): the sum of any shared marginal; None if nothing is shared yet."""
        share = next(iter(self._shared.values()), None)
        return None if share is None else share.sum(dtype=share.dtype, keepdims=True)


class CountedMarginals(PairMarginals):
    """Of all custodians' rows together: the sums of their own counts (horizontal)."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(wire.session_id)
        self._wire, self._facts, self._counts = wire, facts, counts

    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> dict[Clique, Elements]:
        facts = self._facts.with_levels(levels)
        cells = local_cells(self._facts, self._counts, cliques, levels)
        received = Received(self._wire)
        shares: dict[Clique, Elements] = {}
        for block in blocks(facts, cliques):
            vector = np.concatenate(cells[block])
            received.add_block(vector)
            ends = np.cumsum([facts.cells(clique) for clique in cliques[block]])
            shares |= dict(zip(cliques[block], np.split(vector, ends[:-1]), strict=True))
        return shares


class JoinedMarginals(PairMarginals):
    """Of the common table's rows, whose columns the two computing parties own (vertical)."""

    def __init__(self, transfers: Transfers, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows. Raises `DataRefused`, `StudyInvalid` (other owners than the two)."""
        partition = data.partition
        check_owners(partition)
        public = [
            partition.owners,
            list(partition.columns.items()),
            partition.population,
            sorted(partition.missing.items()),
            partition.rows,
        ]
        super().__init__(transfers.link.wire.session_id, binding(b"vertical", json.dumps(public).encode()))
        if data.own is None:
            raise DataRefused("This party owns columns of the study, but brings no rows.")
        data.own.check(partition, transfers.link.me, facts.sizes)
        self._transfers, self._facts = transfers, facts
        self._partition, self._own = partition, data.own

    def _input(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> dict[Clique, Elements]:
        codes = dict(self._own.codes)
        for level in levels:
            if level.column in codes:
                codes[level.name] = np.array(level.bins, np.uint32)[codes[level.column]]
        return share_cliques(
            self._transfers,
            self._partition.with_levels(levels),
            OwnRows(self._own.rows, codes),
            self._facts.with_levels(levels).sizes,
            cliques,
        )
