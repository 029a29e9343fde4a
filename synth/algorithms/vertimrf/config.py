"""The `[vertimrf]` table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mpc_protocols.options import option
from synth.algorithms.privmrf.config import PrivMrfConfig
from synth.algorithms.vertimrf.encoding import ENCODINGS

ON_SHARES: Final = "mpc"


@dataclass(frozen=True)
class VertiMrfConfig(PrivMrfConfig):
    """The `[vertimrf]` table of a study. encoder: how marginals across owners are counted."""

    encoder: str = option(
        ON_SHARES,
        "word",
        "across owners: counts on shares; research: randomised responses, sketches",
        words=(ON_SHARES, *ENCODINGS.names),
        meaning='marginals across owners are counted on shares. Research, with `method = "row-order"` and `adjacency '
        '= "replace"`: `"fo"`, every code a randomised response; `"fm"`, sketches, without any privacy claim '
        "([algorithms](../design/algorithms.md) 11)",
    )
