"""Descriptor of `replicated`: three parties on replicated secret shares, no two of them working together.

Semi-honest (`semi_honest`), or with proofs against one that deviates (`proved.backend`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.backends.replicated.semi_honest import Replicated
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backend import Backend
    from mpc_protocols.backends.replicated.proved import backend
else:
    backend = Later("mpc_protocols.backends.replicated.proved.backend")


class ReplicatedBySecurity(Replicated):
    """Semi-honest, unless the study asks for proofs."""

    securities = ("semi-honest", "malicious")

    def secured(self, security: str) -> Backend:
        """With "malicious" the parties prove what they compute."""
        return backend.ReplicatedWithProofs() if security == "malicious" else self


BACKEND = ReplicatedBySecurity()
