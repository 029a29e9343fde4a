"""merge3 where one computing party may deviate as it likes, with any owners that do not compute
(`docs/design/malicious.md` 9.3).

Everything as in `protocol`, and

    salt       of the keys: a coin (`public.common_salt`)
    gates      every AND is proved (`proved.gates`), as is every message of a shuffle (`sorting.proved_shuffle`)
    order      each owner's list is in order, or the run ends with its name, before anything else is opened (`order`)
    delivery   with the hash of the second holder (`delivery`)

Cost: `counted`. 7 rounds for each proof of ANDs, 3 a shuffle and 7 for the proof of both, and those of the
lists' order.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.merge3.keys import Keys
from mpc_protocols.backends.replicated.merge3.order import in_order
from mpc_protocols.backends.replicated.merge3.protocol import ComputingParty
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.sharing.boolean import ALL, BitShare
from mpc_protocols.backends.replicated.sorting.proved_shuffle import ProvedShuffle
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.wire import Wire


class ProvedComputingParty(ComputingParty):
    """One of the three."""

    gates: ProvedGates

    def __init__(
        self, wire: Wire, own: Keys | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
    ) -> None:
        super().__init__(wire, own, kinds, spec, context)
        self.gates = ProvedGates(self.trio)
        self.shuffles = ProvedShuffle(self.trio)

    def share(self) -> list[BitShare]:
        self.gates.agreed = self.announced
        lists = super().share()
        self.ordered = in_order(self.gates, lists, self.spec.adjacency == "add-remove")
        return lists

    def shuffled(self, columns: Sequence[BitShare], first: int = 0) -> list[BitShare]:
        return self.shuffles.shuffle(columns, first)

    def judge(self) -> None:
        """Prove all products and shuffles; open whether the lists are in order."""
        self.gates.verify()
        self.shuffles.prove(self.announced)
        opened = self.gates.opened(self.ordered.own, self.ordered.next)
        for owner, good in zip(self.context.owners, (opened == ALL).tolist(), strict=True):
            if not good:
                raise ProtocolAborted(
                    f"Party {owner.name} shared identifiers that are not in order, or one too often; the alignment was stopped."
                )
