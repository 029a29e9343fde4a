"""Descriptor of `encoder = "fo"`: randomised responses, with accounting that holds (`responses`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mpc_protocols.process.later import Later
from synth.research.vertimrf.encoded import OwnersEncoding

if TYPE_CHECKING:
    from synth.research.vertimrf import responses
    from synth.research.vertimrf.plan import EncodedPlan
else:
    responses = Later("synth.research.vertimrf.responses")

RESPONSES: Final = "fo"


class ResponsesEncoding(OwnersEncoding):
    """Every code of every row as a randomised response."""

    name = RESPONSES
    rank = 0
    claim = (
        "every owner's report, and so everything that was released, is together (epsilon, delta)-differentially private towards "
        "everybody, the leader and other owners included, for one record's values; who is in the data is public"
    )
    sound = True
    views = (
        (
            "The leader",
            "Each owner's noisy marginals, and every code of every row as a randomised response: what (epsilon, delta) covers; "
            "how many rows there are.",
            "Any true code. Who is in the data is public.",
        ),
        (
            "Owners and other parties",
            "The results, and how many rows there are.",
            "Another owner's columns, but for what (epsilon, delta) covers.",
        ),
        (
            "Recipients of the results",
            "The table, the model and this report: what (epsilon, delta) covers.",
            "Everything else but who is in the data, which is public.",
        ),
    )
    sends = "a randomised response for each code of each row"

    def encoder(self, plan: EncodedPlan) -> responses.Responses:
        return responses.Responses(plan)


ENCODING = ResponsesEncoding()
