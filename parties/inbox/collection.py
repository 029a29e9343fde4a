"""What is public about a study's collection of bundles, and what a bundle must be to be taken
(`docs/design/federated.md` 3).

The order of the checks decides only which sentence a bad bundle gets; all of them are made before anything of
it is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpc_protocols.backends.bundles.bundle import Bundle, Header, letters_of, part_bytes
from mpc_protocols.backends.bundles.layout import Layout
from mpc_protocols.backends.bundles.sealing import ReceiverKey, verifies
from mpc_protocols.errors import BudgetRefused, PeerIdentity, ProtocolAborted, StudiesDiffer
from parties.inbox.close import Close

MAX_AHEAD_S = 86_400
"""How far in the future a bundle may have been made, as the receiver's clock tells."""
MARGIN = timedelta(days=30)
"""How long a bundle must last after the collection's last day, or after it is taken in: no contributor
decides by an early end of its bundle what an interrupted closing finds when it is gone on with."""


@dataclass(frozen=True)
class Collection:
    """study: its digest. contributors: pinned Ed25519 keys by name, in the study's order. receivers: the
    three computing parties, P0 first. minimum: bundles below which nothing is opened. closes: of a study that
    selects while contributors arrive one for each round, else one; the collection is over with the last.
    earlier: those of the contributors who were in an earlier wave, and cannot be in this one."""

    study: bytes
    layout: Layout
    contributors: Mapping[str, bytes]
    receivers: Mapping[str, ReceiverKey]
    minimum: int
    closes: tuple[Close, ...]
    earlier: frozenset[str] = frozenset()

    def receivers_of(self, contributor: str) -> tuple[str, str]:
        """Who gets parts a and b of its bundle: parties j and j + 1, modulo 3, for the j-th contributor."""
        names, index = list(self.receivers), list(self.contributors).index(contributor)
        return names[index % len(names)], names[(index + 1) % len(names)]

    @property
    def close_at(self) -> datetime | None:
        """The date with which the collection is over at the latest."""
        return self.closes[-1].at

    @property
    def rounds(self) -> int:
        """How many lists are fixed, one after the other."""
        return len(self.closes)

    def lasts(self, now: datetime) -> datetime:
        """Until when a bundle that is taken in now must be usable at least."""
        return max(now, self.close_at or now) + MARGIN

    def check(self, bundle: Bundle, now: datetime) -> Header:
        """The header of a bundle that may be taken, as far as anybody can tell without opening a part.

        Raises `ProtocolAborted`, `StudiesDiffer`, `PeerIdentity` or `BudgetRefused`; the sentence begins with
        "It".
        """
        header = bundle.header
        if header.study != self.study:
            raise StudiesDiffer(
                "It was made for another study, or by another version of the program; its contributor must make it anew."
            )
        if (header.layout, header.cells) != (self.layout.hash, self.layout.cells):
            raise StudiesDiffer(
                "It holds other marginals than this study asks for; its contributor must make it with this version."
            )
        key = self.contributors.get(header.contributor)
        if key is None:
            raise PeerIdentity(
                f"It is by {header.contributor!a:.80}, whom the study does not list as a contributor."
            )
        if header.contributor in self.earlier:
            raise BudgetRefused(
                f"It is by {header.contributor}, who was in an earlier wave of this table and has spent its budget there."
            )
        if hashlib.sha256(key).digest() != header.key:
            raise PeerIdentity(
                f"It was made with another key than the study lists for {header.contributor}; use the key listed there."
            )
        if not verifies(key, bundle.signature, bundle.signed):
            raise PeerIdentity(
                f"It does not bear the signature of {header.contributor}: it was damaged or altered on its way; send it again."
            )
        if header.receivers != self.receivers_of(header.contributor):
            raise StudiesDiffer("Its parts are for other parties than the study's rule gives them to.")
        if header.runs != 1:
            raise BudgetRefused(f"It is for {header.runs} runs, and a bundle is for one.")
        if now >= header.expires:
            raise ProtocolAborted(
                f"It has expired at {header.expires:%Y-%m-%d %H:%M:%S} UTC; its contributor must make it anew."
            )
        if (header.created - now).total_seconds() > MAX_AHEAD_S:
            raise ProtocolAborted(
                "It was made in the future; set the clocks of its contributor and of this machine."
            )
        for letter, size in part_bytes(header.cells).items():
            if letter in bundle.parts and len(bundle.parts[letter]) != size:
                raise ProtocolAborted(
                    f"Its part {letter} has not the {size} bytes of a bundle of this study."
                )
        return header

    def check_new(self, bundle: Bundle, now: datetime) -> Header:
        """The same of one that is to be taken in now, and that it lasts long enough. Raises as `check`."""
        header, least = self.check(bundle, now), self.lasts(now)
        if header.expires < least:
            raise ProtocolAborted(
                f"It expires at {header.expires:%Y-%m-%d %H:%M:%S} UTC, and a bundle of this study must last until "
                f"{least:%Y-%m-%d %H:%M:%S} UTC at least; its contributor must make it anew."
            )
        return header

    def own_part(self, bundle: Bundle, receiver: str) -> Bundle:
        """What a computing party keeps of a bundle. Raises `ProtocolAborted` for a file that was meant for
        another party."""
        missing = [letter for letter in letters_of(bundle.header, receiver) if letter not in bundle.parts]
        if missing:
            raise ProtocolAborted(
                f"It lacks part {missing[0]}, which is for party {receiver}: it is another party's file; ask for the one for "
                f"{receiver}."
            )
        return bundle.for_receiver(receiver)
