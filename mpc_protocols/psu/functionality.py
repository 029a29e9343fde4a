"""What an alignment computes and what it reveals: specification, result, and the ideal functionality.

Every owner i holds a set X_i of canonical identifiers. Everybody obtains the number of rows u = |X_1 ∪ .. ∪
X_m| of a common table and a public order of its rows that depends on nothing but fresh randomness; owner i
learns the row of each of its own identifiers. Nobody learns which of its identifiers another owner holds. Who
learns what by which method, and if it deviates: the table of `docs/design/psu.md` 6.

In the two-owner protocols other computing parties are told u by the owners, and nothing else; sizes of lists
are announced to the parties that run the protocol. With two owners the size of the intersection follows from
sizes and u; with more only the number of repetitions sum n_i - u does. With adjacency "add-remove", sizes and
u carry noise (`dummies`); each released size is an event. Row order and names of rows live for one run only:
fresh keys each time, so that runs cannot be linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency, Event
from mpc_protocols.psu.groups.group import Group, Operations
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.method import METHODS
from mpc_protocols.psu.randomness import Entropy, permutation, system
from mpc_protocols.vertical.partition import MAX_OWNERS

VERSION = b"cosynth psu 2"
MAX_IDENTIFIERS: Final = 1 << 28
"""The longest list of an alignment."""
Security = Literal["semi-honest", "proofs"]
Own = Identifiers | int | None
"""What a party brings: an owner's identifiers, or the number of its rows where they are aligned; None without data."""


@dataclass(frozen=True)
class AlignmentSpec:
    """Public parameters of an alignment; equal at all parties.

    min_size: an owner with fewer identifiers refuses. max_size: longest list of one owner, dummies included.
    size_epsilon, size_delta: what each announced size may reveal (add-remove only). pad_to: public sizes to
    which the owners' identifiers are padded, one per owner in the owners' order (add-remove only); None:
    padded by a noisy number. security: "proofs" (`dh2`) has the answers proven that matching rests on, so
    that none can be spoilt unnoticed. method: "row-order" takes the tables as aligned already (`row_order`);
    the others are private set unions. malicious: a computing party may deviate, with any owners that do not
    compute; for methods without `weakness` only.
    """

    method: str
    security: Security = "semi-honest"
    adjacency: Adjacency = "replace"
    min_size: int = 1000
    max_size: int = 1 << 24
    size_epsilon: Fraction = Fraction(1, 10)
    size_delta: Fraction = Fraction(1, 10**9)
    pad_to: tuple[int, ...] | None = None
    malicious: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise StudyInvalid(f"[alignment] via = {self.method!r} is not one of {', '.join(METHODS.names)}.")
        if self.security == "proofs" and not METHODS[self.method].proofs:
            raise StudyInvalid(f'[alignment] security = "proofs" is not offered by via = "{self.method}".')
        if self.malicious and (weakness := METHODS[self.method].weakness(self.adjacency)):
            raise StudyInvalid(
                f"An alignment by {self.method} does not stand against a party that deviates: {weakness}."
            )
        if not 0 <= self.min_size <= self.max_size <= MAX_IDENTIFIERS:
            raise StudyInvalid(
                f"[alignment] min_size = {self.min_size} must lie between 0 and the largest list, {self.max_size}."
            )
        if self.adjacency == "replace" and self.pad_to is not None:
            raise StudyInvalid(
                '[alignment] pad_to has a meaning only with adjacency = "add-remove": sizes are public otherwise.'
            )
        if not METHODS[self.method].psu and self.pad_to is not None:
            raise StudyInvalid(
                "[alignment] pad_to pads lists of identifiers; with this method there are none."
            )
        if self.adjacency == "add-remove" and not (
            0 < self.size_epsilon <= 20 and 0 < self.size_delta < Fraction(1, 2)
        ):
            raise StudyInvalid("[alignment] size_epsilon must lie in (0, 20] and size_delta in (0, 1/2).")
        if self.pad_to is not None and not all(
            self.min_size <= size <= self.max_size for size in self.pad_to
        ):
            raise StudyInvalid(f"[alignment] pad_to must lie between {self.min_size} and {self.max_size}.")

    def to_bytes(self) -> bytes:
        """Canonical encoding, for the run's salt."""
        return repr(
            (
                self.method,
                self.security,
                self.adjacency,
                self.min_size,
                self.max_size,
                str(self.size_epsilon),
                str(self.size_delta),
                self.pad_to,
                self.malicious,
            )
        ).encode("ascii")


@dataclass(frozen=True)
class Member:
    """A party of an alignment: its name, what proves its identity (certificate fingerprint), its number on
    the wire."""

    name: str
    identity: bytes
    number: int


@dataclass(frozen=True)
class Context:
    """Identity of a run: the study's digest (32 bytes) and the parties' identities.

    owners: two to eight, in the study's order; the first is FLORIST's active party, otherwise the order says
    nothing. helper: the third party of `helper`. computing: the computing parties in the order of their
    numbers, owners among them; `merge3` needs all three, and in the two-owner protocols those that own
    nothing are told u. group: of the Diffie-Hellman protocols; None: ristretto255 on all cores.
    """

    study: bytes
    owners: tuple[Member, ...]
    helper: Member | None = None
    computing: tuple[Member, ...] = ()
    group: Group | None = None

    def __post_init__(self) -> None:
        if len(self.study) != 32:
            raise ValueError("An alignment has a study digest of 32 bytes.")
        if not 2 <= len(self.owners) <= MAX_OWNERS:
            raise StudyInvalid(
                f"An alignment joins the columns of 2 to {MAX_OWNERS} parties, the study has {len(self.owners)} "
                "with columns of their own."
            )
        members = self.members
        if (
            len({m.number for m in members}) != len(members)
            or len({m.identity for m in members}) != len(members)
            or len(set(self.owners)) != len(self.owners)
            or self.helper in self.owners
        ):
            raise StudyInvalid(
                "The parties of an alignment must be different ones; give each its own certificate."
            )

    @property
    def members(self) -> tuple[Member, ...]:
        """Everybody who takes part, each once."""
        return tuple(dict.fromkeys([*self.owners, *([self.helper] if self.helper else []), *self.computing]))

    def side(self, number: int) -> int | None:
        """An owner's place among the owners by its number on the wire; None for a party without data."""
        numbers = [owner.number for owner in self.owners]
        return numbers.index(number) if number in numbers else None

    def name(self, number: int) -> str:
        """A party's name by its number on the wire."""
        return next(member.name for member in self.members if member.number == number)

    def check(self, spec: AlignmentSpec) -> None:
        """Raises `StudyInvalid` unless these parties can run the study's method."""
        owners, via = self.owners, f"[alignment] via = {spec.method!r}"
        if spec.pad_to is not None and len(spec.pad_to) != len(owners):
            raise StudyInvalid(
                f"[alignment] pad_to names {len(spec.pad_to)} sizes for {len(owners)} owners; give one for each."
            )
        method = METHODS[spec.method]
        if method.helper and self.helper is None:
            raise StudyInvalid(f"{via} needs a third computing party that owns no columns.")
        refused = method.refusal([owner.name for owner in owners], [member.name for member in self.computing])
        if refused is not None or [m.number for m in self.computing] != list(range(len(self.computing))):
            raise StudyInvalid(f"{refused or f'{via} needs computing parties numbered from 0'}.")

    def salt(self, spec: AlignmentSpec, session_id: bytes) -> bytes:
        """sid: 32 bytes that name this run; session_id holds fresh nonces of all parties."""
        roles = [(b"owner", m) for m in self.owners] + [(b"computing", m) for m in self.computing]
        if self.helper is not None:
            roles.append((b"helper", self.helper))
        parts = [
            part
            for role, m in roles
            for part in (role, m.name.encode(), m.identity, m.number.to_bytes(4, "big"))
        ]
        return digest(b"psu salt", VERSION, spec.to_bytes(), self.study, session_id, *parts)


@dataclass(frozen=True)
class Alignment:
    """One party's result.

    n_rows: u, the rows of the common table. rows: (n,) int64, the row of each of the owner's identifiers in
    the order given, pairwise different; empty at a party without data. digest: 32 bytes, equal at two parties
    exactly if their common tables are. operations: what this party's group computed. events: what the run
    charges (empty when sizes are public). listed: entries of the owner's list, dummies included, as it was
    announced.
    """

    n_rows: int
    rows: NDArray[np.int64] = field(repr=False)
    digest: bytes = field(repr=False)
    operations: Operations = field(default_factory=Operations)
    events: tuple[Event, ...] = ()
    listed: int = 0

    @property
    def membership(self) -> NDArray[np.bool_]:
        """(n_rows,): whether the owner holds the row. Secret: the rows of dummies are False like those of
        others."""
        held = np.zeros(self.n_rows, np.bool_)
        held[self.rows] = True
        return held


def check_list(entries: Sequence[bytes], spec: AlignmentSpec, owner: str) -> None:
    """One owner's own list before anything is sent. Raises `DataRefused`: too short, too long, not distinct."""
    if len(entries) < spec.min_size:
        raise DataRefused(
            f"Party {owner} has fewer identifiers than the study's [alignment] min_size = {spec.min_size}; "
            "an alignment of so few would reveal who is in it."
        )
    if len(entries) > spec.max_size:
        raise DataRefused(
            f"Party {owner} has more than {spec.max_size} identifiers, the largest list of an alignment."
        )
    if len(set(entries)) != len(entries):
        raise DataRefused(
            f"Party {owner} has duplicate identifiers; one identifier is one row, so remove the duplicates or "
            'set [alignment] duplicates = "first".'
        )


def ideal_align(
    lists: Sequence[Sequence[bytes]], spec: AlignmentSpec, entropy: Entropy = system
) -> list[Alignment]:
    """The functionality in the clear, for any number of owners: what the protocols are tested against.
    Protects nothing.

    lists: the canonical identifiers of each owner. Rows are in uniformly random order. Raises `DataRefused`
    as the owners do.
    """
    for number, entries in enumerate(lists):
        check_list(entries, spec, str(number))
    union = sorted(set().union(*lists))
    place = permutation(len(union), entropy)
    row_of = dict(zip(union, place.tolist(), strict=True))
    table = digest(b"psu ideal", *sorted(entropy(16) for _ in union))
    return [
        Alignment(len(union), np.array([row_of[e] for e in entries], np.int64), table) for entries in lists
    ]
