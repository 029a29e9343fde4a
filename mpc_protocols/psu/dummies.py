"""Hiding set sizes and sizes of intersections when who holds a record is private (adjacency "add-remove";
`docs/design/psu.md` 3, with proofs).

Without noise the repetitions, sum of list lengths less u, are a membership oracle. Fake identifiers, which
begin with bytes that no real one has, give them noise that nobody knows entirely:

    pairs           `merge3`: owner i plants E_i private dummies TWICE each; inside the protocol a pair is a match like any other
    counted pools   two owners: 2c public fakes per direction. The owner of a direction includes all of them, the other a uniform
                    subset of secret size K, with the distribution of E. Each owner sees k + K1 + K2 and knows one K
    padding         private dummies fill every list up to a length independent of E or K, which may be one more release

E and K are drawn exactly (Canonne, Kamath, Steinke 2020, algorithms 1 and 2: rational epsilon, uniform
integers, no floating point); truncation is by rejection. Sampling time depends on the draw; it is spent
before the first message.

Views: the other parties' have one event for the repetitions and one for each noisy list that they see and
that is not their own (`view_events`); an owner's ledger charges what is about its own data (`size_events`).
An event counts epsilon^2 / 2 of rho and delta as its distance from a pure epsilon-DP release. Threat model:
semi-honest. Dummies carry no weight downstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms.interval import enclose, exp_minus
from mpc_protocols.psu.functionality import AlignmentSpec, check_list
from mpc_protocols.psu.identifiers.normalise import REAL
from mpc_protocols.psu.method import METHODS
from mpc_protocols.psu.randomness import Entropy, below, permutation, system

POOL, PRIVATE, TRAP = b"\x01", b"\x02", b"\x03"
"""First bytes of public fakes, of private dummies and of `dh2`'s traps."""
MAX_CENTRE = 1 << 20
"""Largest c."""
_BITS = 192


@dataclass(frozen=True)
class PartyList:
    """An owner's input to the protocol: its `real` identifiers first, then fakes."""

    entries: list[bytes] = field(repr=False)
    real: int = field(repr=False)


@dataclass(frozen=True)
class Noise:
    """The distribution of one count of dummies: P[t] ~ exp(-epsilon |t - c|), t = 0 .. 2c. It hides `shift`,
    up to delta."""

    epsilon: Fraction
    c: int
    shift: int = 1

    @property
    def delta(self) -> Fraction:
        """delta of a release that this noise protects, at shift * epsilon; an upper bound, tight to 2^-150."""
        return delta_of(self.epsilon, self.c, self.shift)


def overlap_noise(spec: AlignmentSpec, owners: int = 2) -> Noise:
    """Noise that hides the repetitions among so many owners: an identifier moves them by up to owners - 1."""
    shift = owners - 1
    return Noise(spec.size_epsilon / shift, centre(spec.size_epsilon / shift, spec.size_delta, shift), shift)


def list_noise(spec: AlignmentSpec) -> Noise:
    """Noise that hides a number that one identifier moves by one: the length of a list, the rows of aligned
    tables."""
    return Noise(spec.size_epsilon, centre(spec.size_epsilon, spec.size_delta))


def delta_of(epsilon: Fraction, c: int, shift: int = 1) -> Fraction:
    """An upper bound, tight to 2^-150, of P[K < shift]; 1 for a shift above c.

    P[K < shift] = sum_{t < shift} exp(-epsilon (c - t)) / (1 + 2 sum_{t=1..c} exp(-epsilon t)).
    """
    if shift > c:
        return Fraction(1)
    one = 1 << _BITS
    low = exp_minus(enclose(epsilon, _BITS), _BITS)[0]  # exp(-epsilon), from below
    edges = [exp_minus(enclose(epsilon * (c - t), _BITS), _BITS)[1] for t in range(shift)]
    edge_high = edges[0]
    # sum_{t=1..c} r^t = r (1 - r^c) / (1 - r), increasing in r and decreasing in r^c
    total_low = one + 2 * (low * (one - edge_high) // (one - low))
    return min(Fraction(1), Fraction(sum(edges), total_low))


@lru_cache(maxsize=64)
def centre(epsilon: Fraction, delta: Fraction, shift: int = 1) -> int:
    """The least c with P[K < shift] <= delta. Raises `StudyInvalid` above 2^20."""
    low, high = 0, 1
    while delta_of(epsilon, high, shift) > delta:
        low, high = high, 2 * high
        if high > MAX_CENTRE:
            raise StudyInvalid(
                f"[alignment] size_epsilon = {float(epsilon):g} would need more than {MAX_CENTRE} dummies; raise it."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(epsilon, middle, shift) <= delta else (middle, high)
    return high


def draw(epsilon: Fraction, c: int, entropy: Entropy = system) -> int:
    """K in 0 .. 2c with P[K = t] proportional to exp(-epsilon |t - c|), exactly."""
    while True:
        magnitude = 0
        while _bernoulli_exp(epsilon, entropy):
            magnitude += 1
        negative = below(2, entropy)
        if magnitude <= c and not (negative and magnitude == 0):
            return c - magnitude if negative else c + magnitude


def _bernoulli_exp(gamma: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(-gamma), gamma >= 0 rational."""
    while gamma > 1:
        if not _bernoulli_exp(Fraction(1), entropy):
            return False
        gamma -= 1
    trials = 1
    while below(gamma.denominator * trials, entropy) < gamma.numerator:
        trials += 1
    return trials % 2 == 1


def assemble(
    entries: Sequence[bytes],
    spec: AlignmentSpec,
    sid: bytes,
    side: int,
    owner: str,
    entropy: Entropy = system,
    owners: int = 2,
) -> PartyList:
    """One owner's list with its fakes; with `merge3` some of the fakes occur twice.

    Raises `DataRefused`: too few or too many identifiers, duplicates, more than pad_to.
    """
    check_list(entries, spec, owner)
    n = len(entries)
    if not all(entry.startswith(REAL) for entry in entries):
        raise ValueError("An identifier is not canonical: `normalise` makes them.")
    if spec.adjacency == "replace":
        return PartyList(list(entries), n)
    noise = overlap_noise(spec, owners)
    if spec.pad_to is None:
        lengths = list_noise(spec)
        target = n + draw(lengths.epsilon, lengths.c, entropy)
    else:
        target = spec.pad_to[side]
        if n > target:
            raise DataRefused(
                f"Party {owner} has more identifiers than [alignment] pad_to = {target}; raise pad_to."
            )
    drawn = draw(noise.epsilon, noise.c, entropy)
    if METHODS[spec.method].pairs:
        fakes = _private(drawn, entropy) * 2
    else:
        own, other = (full_pool(spec, sid, direction) for direction in (side, 1 - side))
        fakes = own + [other[i] for i in permutation(2 * noise.c, entropy)[:drawn]]
    return PartyList([*entries, *fakes, *_private(target + 4 * noise.c - n - len(fakes), entropy)], n)


def _private(count: int, entropy: Entropy) -> list[bytes]:
    return [PRIVATE + entropy(32) for _ in range(count)]


def pool(sid: bytes, direction: int, c: int) -> list[bytes]:
    """The 2c public fakes of a direction: owner `direction` includes them all."""
    return [POOL + sid + bytes([direction]) + i.to_bytes(4, "big") for i in range(2 * c)]


def full_pool(spec: AlignmentSpec, sid: bytes, direction: int) -> list[bytes]:
    """What owner `direction` of two includes in full; none when sizes are public."""
    return [] if spec.adjacency == "replace" else pool(sid, direction, overlap_noise(spec).c)


def longest_list(spec: AlignmentSpec, owners: int = 2) -> int:
    """The most entries an honest owner's list has, fakes included."""
    return spec.max_size + (
        0 if spec.adjacency == "replace" else 2 * list_noise(spec).c + 4 * overlap_noise(spec, owners).c
    )


def list_size(spec: AlignmentSpec, side: int, owners: int = 2) -> int | None:
    """The length of an owner's list where it is public in advance: with pad_to."""
    if spec.pad_to is None:
        return None
    return spec.pad_to[side] + 4 * overlap_noise(spec, owners).c


def size_events(
    spec: AlignmentSpec, recipients: Sequence[str], owners: int = 2, outside: Sequence[str] = ()
) -> tuple[Event, ...]:
    """What an owner's sizes reveal to `recipients`, for its own ledger: nothing when sizes are public by
    definition.

    outside: those of them that own nothing; where they hear u alone, no list is on record as revealed to
    them.
    """
    if spec.adjacency == "replace" or not recipients:
        return ()
    if not METHODS[spec.method].psu:
        return (_event(spec, "rows", list_noise(spec), recipients),)
    informed = [name for name in recipients if not METHODS[spec.method].union_only or name not in outside]
    lists = () if spec.pad_to else (_event(spec, "list", list_noise(spec), informed),)
    return (_event(spec, "intersection", overlap_noise(spec, owners), recipients), *lists)


def view_events(spec: AlignmentSpec, owners: Sequence[str], viewer: str) -> tuple[Event, ...]:
    """All that sizes reveal to one party of a private set union, for the report: on top of the study's
    (epsilon, delta).

    owners: their names. viewer: a party's name; an owner's own list tells it nothing.
    """
    if spec.adjacency == "replace":
        return ()
    if METHODS[spec.method].union_only and viewer not in owners:
        return (_event(spec, "union", overlap_noise(spec, len(owners)), [viewer]),)
    lists = (
        ()
        if spec.pad_to
        else tuple(
            _event(spec, f"list of {owner}", list_noise(spec), [viewer])
            for owner in owners
            if owner != viewer
        )
    )
    return (_event(spec, "intersection", overlap_noise(spec, len(owners)), [viewer]), *lists)


def _event(spec: AlignmentSpec, of: str, noise: Noise, recipients: Sequence[str]) -> Event:
    return Event(
        "alignment.size",
        spec.size_epsilon**2 / 2,
        noise.delta,
        {
            "of": of,
            "epsilon": float(spec.size_epsilon),
            "delta": float(noise.delta),
            "recipients": list(recipients),
        },
    )
