"""Descriptor of `encoder = "fm"`: sketches as printed, which reveal whole rows (`sketches`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mpc_protocols.process.later import Later
from synth.algorithm import NO_CLAIM
from synth.research.vertimrf.encoded import OwnersEncoding

if TYPE_CHECKING:
    from synth.research.vertimrf import sketches
    from synth.research.vertimrf.plan import EncodedPlan
else:
    sketches = Later("synth.research.vertimrf.sketches")

SKETCHES: Final = "fm"


class SketchesEncoding(OwnersEncoding):
    """Flajolet-Martin sketches of the rows with each value."""

    name = SKETCHES
    rank = 1
    claim = f"{NO_CLAIM}: the leader can read whole rows off the owners' sketches, and owners know the hash of every row"
    sound = False
    views = (
        (
            "The leader, and whoever sees the sketches",
            "Whole rows, read off the owners' sketches: values of all columns of real people.",
            "Nothing is promised.",
        ),
        (
            "Each owner",
            "The hash of every row under every key: of any sketch it sees, which rows are not in it.",
            "Nothing is promised.",
        ),
        (
            "Recipients of the results",
            "The table and the model, which are made of sketches that reveal rows.",
            "Nothing is promised.",
        ),
    )
    sends = "sketches of the rows with each value"

    def expects(self, plan: EncodedPlan, rows: int) -> str:
        readable = self.encoder(plan).readable_rows(rows)
        return (
            f"whoever holds the sketches can read about {readable:,.0f} of {rows:,} rows off them exactly, less some 5 to 20 % "
            "in which a maximum is tied"
        )

    def encoder(self, plan: EncodedPlan) -> sketches.Sketches:
        return sketches.Sketches(plan)


ENCODING = SketchesEncoding()
