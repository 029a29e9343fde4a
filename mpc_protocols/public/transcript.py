"""The running hash of all that is public in a run, compared by the parties before each release
(`docs/design/mechanisms.md` 4).

It starts from the study's facts and the Gumbel table; whatever is asked, planned or opened is added under a
label, its length before it, so that no two histories share a value but by a collision of SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.mechanisms import gumbel

if TYPE_CHECKING:
    from mpc_protocols.functionality import StudyFacts


def canonical(value: object) -> bytes:
    """JSON in the one form that is hashed: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


class Transcript:
    """One party's hash of what was public so far. value: 32 bytes."""

    def __init__(self, facts: StudyFacts) -> None:
        beginning: dict[str, object] = {
            "sizes": dict(facts.sizes),
            "adjacency": facts.adjacency,
            "unit_rows": facts.unit_rows,
            "row_cap": facts.row_cap,
            "session": facts.session.hex(),
            "gumbel": gumbel.SHA256,
        }
        if facts.leader != USUAL_LEADER:
            beginning["leader"] = facts.leader
        self.value = hashlib.sha256(b"cosynth public transcript\0" + canonical(beginning)).digest()

    def add(self, label: bytes, content: bytes) -> bytes:
        """Hash what was asked or opened into the transcript; returns the new value."""
        header = len(label).to_bytes(1, "big") + label + len(content).to_bytes(8, "big")
        self.value = hashlib.sha256(self.value + header + content).digest()
        return self.value
