"""What every engine does alike whose numbers come from `Marginals`: it hands on what they say (`interface.Engine`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from mpc_protocols.engine.inputs.marginals import Marginals, S
from mpc_protocols.functionality import Clique, Level


class SourcedEngine(Generic[S]):
    """An engine's part about its inputs."""

    _marginals: Marginals[S]

    @property
    def public(self) -> bytes:
        """See `Engine`."""
        return self._marginals.public

    @property
    def source(self) -> Marginals[S]:
        """See `Engine`."""
        return self._marginals

    @property
    def sharing(self) -> bytes:
        """See `Engine`."""
        return self._marginals.sharing

    def leave_out(self, contributor: int) -> None:
        """See `Engine`."""
        self._marginals.leave_out(contributor)

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """See `Engine`."""
        return self._marginals.share(cliques, levels, inputs)
