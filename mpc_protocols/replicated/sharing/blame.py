"""Who did not follow the protocol, as far as an honest party can tell: itself it knows to be honest."""

from __future__ import annotations

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
