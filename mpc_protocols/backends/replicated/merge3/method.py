"""Descriptor of `merge3`: sorted, merged and compared as secret shares of the three computing parties; or, where two of
them own the lists, compared by the third as hashes under a key that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.psu.method import AlignmentMethod, Misfit

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.merge3 import counted, keys, part, tags
    from mpc_protocols.backends.replicated.proved import dry_run, gates
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu import forecast
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Own
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.wire import Wire
else:
    counted = Later("mpc_protocols.backends.replicated.merge3.counted")
    dry_run = Later("mpc_protocols.backends.replicated.proved.dry_run")
    forecast = Later("mpc_protocols.psu.forecast")
    gates = Later("mpc_protocols.backends.replicated.proved.gates")
    keys = Later("mpc_protocols.backends.replicated.merge3.keys")
    part = Later("mpc_protocols.backends.replicated.merge3.part")
    tags = Later("mpc_protocols.backends.replicated.merge3.tags")


UNPROVED_BYTES = 4
"""Of a product while it is noted and proved (measured)."""


class Merge3(AlignmentMethod):
    """Two to eight owners, computing or not; replicated shares of three computing parties."""

    name = "merge3"
    rank = 0
    hides_members = True
    automatic = True
    pairs = True
    way = "inside the three-party computation (merge3)"
    matched = (
        "{together}, inside the three-party computation (merge3): as secret shares, or as hashes under a key that the "
        "party which compares them lacks."
    )
    trust = "This rests on what everything after it rests on: no two of the three computing parties pool what they hold."
    owners = "2 to 8, computing or not"
    adversary = "two of the three computing parties together"
    speed = "two that compute, beside a third: a second, 50 B per identifier; else seconds, 1 kB"

    @property
    def claim(self) -> str:
        return (
            "nobody learns which of its records another owner holds, as long as no two of the three computing parties work "
            "together"
        )

    def misfit(self, owners: Sequence[str], computing: Sequence[str]) -> Misfit | None:
        if len(computing) != 3:
            return Misfit(
                f"needs exactly three computing parties, and {len(computing)} compute",
                "let three parties compute",
            )
        return None

    def weakness(self, adjacency: Adjacency) -> str:
        return ""

    def align(
        self, wire: Wire, own: Own, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        assert not isinstance(own, int)
        entries, kinds = (None, ()) if own is None else (own.entries, own.kinds)
        return part.align(wire, entries, kinds, spec, context)

    def forecast(
        self, spec: AlignmentSpec, context: Context, lengths: Sequence[int], union: int, columns: int
    ) -> forecast.Forecast:
        tally, products = counted.merge3_cost(context, spec, lengths, union, columns)
        local = dict(zip([owner.number for owner in context.owners], lengths, strict=True))
        seconds = {
            number: forecast.HASH_S * local.get(number, 0)
            + (dry_run.PRODUCT_S * products + forecast.WORD_S * tally.sent[number] if number < 3 else 0.0)
            for number in range(len(tally.sent))
        }
        labels = len(lengths) if tags.third_party(spec, context) is None else 1
        merges = float(keys.false_merges(sum(lengths), labels))
        beside = UNPROVED_BYTES * min(products, gates.MAX_UNPROVED)
        return forecast.Forecast(
            dict(enumerate(tally.sent)), seconds, tally.rounds, {}, merges, beside, tally.proofs
        )


METHOD = Merge3()
