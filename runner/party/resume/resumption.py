"""What the parties of a run that is resumed tell one another, and what follows from it: alike at all of them.

Each party that comes with `--resume` and holds the state of an interrupted run announces an `Offer`, public
facts only; the session sees to it that all have heard the same (`docs/design/session.md` 4). From the offers
follows a `Continuation`: which run this is, who lacks the last result and who gives it, whether the step
after it is finished from the shares that all hold, and whether the leader has the release already, so that
nothing is left but to hand it out (`docs/design/resume.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import ProtocolAborted

if TYPE_CHECKING:
    from parties.budget.run_state import RunState

HASH = 32
"""Bytes of ids and hashes."""
FACT = "resume"
"""The offer's key among a party's announced facts."""


@dataclass(frozen=True)
class Offer:
    """What a party holds of a run.

    opened: how many steps it knows the result of; digest, before: hashes of them, and of all but the last;
    held: step, inputs and session of the shares it holds; may_be_open: whether it has seen that all held
    those of the step after what is opened; released: it holds what the leader hands out; finished: it has its
    results, or has heard that the leader holds them.
    """

    run: bytes
    opened: int
    digest: bytes
    before: bytes
    held: tuple[int, bytes, bytes] | None = None
    may_be_open: bool = False
    released: bool = False
    finished: bool = False

    @classmethod
    def of(cls, state: RunState, finished: bool) -> Offer:
        """A party's own. finished: whether its results are in place."""
        digests, held = state.digests, state.last_held
        return cls(
            state.run,
            len(digests) - 1,
            digests[-1],
            digests[max(0, len(digests) - 2)],
            None if held is None else (held.number, held.inputs, held.session),
            state.may_be_open,
            state.release is not None,
            finished,
        )

    def to_facts(self) -> dict[str, object]:
        """JSON-able."""
        return {
            "run": self.run.hex(),
            "opened": self.opened,
            "digest": self.digest.hex(),
            "before": self.before.hex(),
            "held": None if self.held is None else [self.held[0], self.held[1].hex(), self.held[2].hex()],
            "may_be_open": self.may_be_open,
            "released": self.released,
            "finished": self.finished,
        }

    @classmethod
    def from_facts(cls, name: str, facts: object) -> Offer:
        """A peer's. Raises `ProtocolAborted` naming it."""
        try:
            assert isinstance(facts, dict)
            form: dict[str, Any] = facts
            held = form["held"]
            if type(form["opened"]) is not int or form["opened"] < 0:
                raise ValueError
            if held is not None and type(held[0]) is not int:
                raise ValueError
            hashes = [form["run"], form["digest"], form["before"], *([] if held is None else held[1:])]
            if any(len(bytes.fromhex(text)) != HASH for text in hashes):
                raise ValueError
            return cls(
                bytes.fromhex(form["run"]),
                form["opened"],
                bytes.fromhex(form["digest"]),
                bytes.fromhex(form["before"]),
                None if held is None else (held[0], bytes.fromhex(held[1]), bytes.fromhex(held[2])),
                form["may_be_open"] is True,
                form["released"] is True,
                form["finished"] is True,
            )
        except (KeyError, ValueError, TypeError, IndexError, AssertionError):
            raise ProtocolAborted(
                f"Party {name} announced an interrupted run that cannot be read; use releases of one protocol version everywhere."
            ) from None


@dataclass(frozen=True)
class Continuation:
    """run: its id. opened: steps whose results are known. giver, lacking: the party that gives the last
    result to those that lack it. finish_held: the next step is opened from the shares that all hold.
    released: the leader holds what it hands out."""

    run: bytes
    opened: int
    giver: str | None
    lacking: tuple[str, ...]
    finish_held: bool
    released: bool


def offers_of(announcements: Mapping[str, Mapping[str, object]]) -> dict[str, Offer]:
    """By party, of those that hold an interrupted run. Raises `ProtocolAborted`."""
    return {
        name: Offer.from_facts(name, facts[FACT]) for name, facts in announcements.items() if FACT in facts
    }


def continuation(offers: Mapping[str, Offer], computing: Sequence[str], leader: str) -> Continuation | None:
    """What follows from all parties' offers; None if this is a new run.

    computing: names of the computing parties. Raises `ProtocolAborted` if they do not fit together: then
    nothing is released.
    """
    held = {name: offers[name] for name in computing if name in offers}
    if not held:
        return None
    first = next(iter(held))
    run, opened = held[first].run, max(offer.opened for offer in held.values())
    for name, offer in held.items():
        if offer.run != run:
            raise ProtocolAborted(
                f"Parties {first} and {name} hold different interrupted runs; name the directories of one run with --out, or "
                "start anew with --replace at all parties."
            )
    lacking = [name for name in computing if name not in held]
    if lacking and any(offer.opened or offer.held or offer.released for offer in held.values()):
        raise ProtocolAborted(
            f"Party {lacking[0]} does not resume the run that party {first} holds: start it with --resume and the --out of "
            "that run, or start anew with --replace at all parties."
        )
    givers = [name for name in computing if name in held and held[name].opened == opened]
    known = held[givers[0]]
    for name, offer in held.items():
        expected = known.digest if offer.opened == opened else known.before
        if offer.opened < opened - 1 or offer.digest != expected:
            raise ProtocolAborted(
                f"Parties {givers[0]} and {name} have recorded different results of one run, so it cannot be resumed; start "
                "anew with --replace at all parties."
            )
    behind = tuple(name for name in computing if name in held and held[name].opened < opened)
    shares = {offer.held for offer in held.values()}
    finish_held = False
    if not lacking and len(shares) == 1:
        of = next(iter(shares))
        finish_held = of is not None and of[0] == opened
    told = [name for name, offer in held.items() if offer.may_be_open and offer.opened == opened]
    if told and not finish_held:
        raise ProtocolAborted(
            f"Party {told[0]} knows of a result that may have been opened, and not all parties hold their shares of it any more: "
            "it stays charged and cannot be repeated; start anew with --replace at all parties."
        )
    released = leader in held and held[leader].released
    ended = [name for name, offer in offers.items() if offer.finished and offer.run == run]
    if ended and not released:
        raise ProtocolAborted(
            f"Party {ended[0]} has the results of a run that party {leader} does not know to have ended; start anew with "
            "--replace at all parties."
        )
    return Continuation(run, opened, givers[0] if behind else None, behind, finish_held, released)
