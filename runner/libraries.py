"""pandas and NetworkX, each loaded when it is first used (`mpc_protocols.process.later`): no party of a run needs
either, and they take longer to load than the rest of a party together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
else:
    nx, pd = map(Later, ("networkx", "pandas"))

__all__ = ["nx", "pd"]
