"""Who did not follow the protocol, as far as an honest party can tell: itself it knows to be honest."""

from __future__ import annotations

import re
from collections.abc import Iterable


def one_of(suspects: Iterable[int], me: int) -> str:
    """The beginning of a sentence. suspects: one of these did it, if `me`, who may be among them, did not."""
    match sorted({*suspects} - {me}):
        case [party]:
            return f"Party {party} did not follow the protocol"
        case [first, second]:
            return f"One of these two did not follow the protocol: party {first}, party {second}"
        case others:
            raise ValueError(f"One or two parties can be blamed, not {others}.")


def suspects_of(sentence: str) -> frozenset[int]:
    """Whom a sentence that begins with `one_of` names: one of these did it. Empty for any other sentence."""
    alone = re.match(r"Party (\d+) did not follow the protocol", sentence)
    both = re.match(r"One of these two did not follow the protocol: party (\d+), party (\d+)", sentence)
    found = both or alone
    return frozenset() if found is None else frozenset(map(int, found.groups()))
