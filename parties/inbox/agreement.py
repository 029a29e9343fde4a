"""The three parties agree on the bundles of their run: the intersection of what they hold, or the list that
is fixed already.

    standing   each to both others: hash of the list that it has fixed for the study, or zeros                     1 round
    agree      hash of its own list, 32 bytes; when it has theirs, the list: 32 bytes a bundle, ascending           2 rounds
    confirm    hash of the list that it has on disk and is about to fix                                            1 round

`agree` only if nobody has fixed a list. A party commits itself to its list before it sees another's, so
nobody chooses whom to leave out by who is there. A party can leave out whom it likes in advance. With one
list that harms nobody's privacy (who takes part is public, a bundle runs once, and a sum is of the minimum at
least). With a list for each round it could make one contributor the difference of two sums, so the lists of
two rounds are the same or differ by the minimum at least (`grown`). A party fixes a list only after
`confirm`: then all three have that list on disk, whatever a crash leaves fixed, and the next meeting takes it
(`docs/design/federated.md` 3 and 6).

While a round of arrivals is open, `looks` (1 round, 32 bytes) shows each party that all are ready, and that
something has changed since they last tried: a random mark, drawn anew by whoever has other bundles than
before.

Who learns what: which bundles the others hold. Nothing of their content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from parties.inbox.store import AgreedList

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire

HASH = 32


_NONE, _YES = bytes(HASH), bytes([1]) * HASH


def standing(wire: Wire, fixed: bytes | None, names: Collection[str]) -> bytes | None:
    """Hash of the list that this or another computing party has fixed. Blocks. Raises `BudgetRefused` if
    there are two."""
    told = _exchange(wire, fixed or _NONE)
    found = {value for value in told.values() if value != _NONE}
    if len(found) > 1:
        who = [name for number, name in enumerate(names) if told[number] != _NONE]
        raise BudgetRefused(
            f"Parties {', '.join(who)} have fixed different lists of bundles for this study, and contributors are charged for "
            "one list only; collect for a new study."
        )
    return next(iter(found), None)


def confirm(wire: Wire, agreed: AgreedList, names: Collection[str]) -> None:
    """Return if all three are about to fix this list. Blocks. Raises `ProtocolAborted`; then nobody fixes it."""
    for number, value in _exchange(wire, agreed.hash).items():
        if value != agreed.hash:
            raise ProtocolAborted(
                f"Party {list(names)[number]} is about to fix another list of bundles than this party; nothing is fixed."
            )


def all_say(wire: Wire, yes: bool) -> bool:
    """Whether all three parties do. 1 round. Blocks."""
    return all(value == _YES for value in _exchange(wire, _YES if yes else _NONE).values())


def looks(wire: Wire, mark: bytes | None) -> tuple[bytes, ...] | None:
    """The marks of all three parties, in their order; None unless each has one. 1 round. Blocks.

    mark: 32 bytes, not all zero.
    """
    told = _exchange(wire, mark or _NONE)
    return None if _NONE in told.values() else tuple(told[number] for number in sorted(told))


def grown(before: AgreedList, common: AgreedList, minimum: int) -> AgreedList:
    """A later round's list. before: of the round before. common: what all three hold, which contains it.

    Fewer newcomers than the minimum wait for a later round: what is opened about two rounds differs by
    nobody, or by so many.
    """
    newcomers = len(common.entries) - len(before.entries)
    return common if newcomers >= minimum else before


def _exchange(wire: Wire, value: bytes) -> dict[int, bytes]:
    """32 bytes of each computing party, its own included. 1 round."""
    others = [peer for peer in range(wire.computing) if peer != wire.me]
    for peer in others:
        wire.send(peer, value)
    return {wire.me: value} | {peer: bytes(wire.receive(peer, HASH)) for peer in others}


def agree(wire: Wire, held: Mapping[bytes, str], enrolled: int, names: Collection[str]) -> AgreedList:
    """The bundles that all computing parties hold. Blocks.

    held: this party's, hash and contributor. enrolled: the most bundles there can be. names: of the computing
    parties, in order. Raises `ProtocolAborted` for a list that is none, or not the one announced.
    """
    others = [peer for peer in range(wire.computing) if peer != wire.me]
    own = b"".join(sorted(held))
    for peer in others:
        wire.send(peer, binding(b"inbox", own))
    announced = {peer: bytes(wire.receive(peer, HASH)) for peer in others}
    for peer in others:
        wire.send(peer, own)
    common = set(held)
    for peer in others:
        told = bytes(wire.receive_up_to(peer, HASH * enrolled))
        entries = [told[at : at + HASH] for at in range(0, len(told), HASH)]
        if len(told) % HASH or entries != sorted(set(entries)) or binding(b"inbox", told) != announced[peer]:
            raise ProtocolAborted(
                f"Party {list(names)[peer]} sent a list of bundles that is not the one it announced; nothing is added up."
            )
        common &= set(entries)
    return AgreedList({name: held[name] for name in sorted(common)})
