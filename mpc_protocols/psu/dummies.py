"""Hiding set sizes and the intersection's size when who holds a record is private (adjacency "add-remove"; `psu.md` 3).

An alignment reveals both list lengths and u, hence k = n_a + n_b - u: without noise k is a membership oracle. Fake
identifiers, which begin with bytes that no real one has, give it noise that neither owner knows entirely:

    counted pools   2c public fakes per direction. The owner of a direction includes all of them, the other a uniform subset of
                    secret size K, P[K = t] ~ exp(-epsilon |t - c|), t = 0 .. 2c. So each owner sees k + K1 + K2 and knows one K
    padding         private dummies fill every list up to a length independent of K: pad_to + 4c, or, without pad_to,
                    n + L + 4c with L drawn like K: one more release about n

One person in or out of one set moves k, and n, by one, so each release is (epsilon, delta)-DP against the other owner, exactly
delta = P[K = 0] = exp(-epsilon c) / sum_t exp(-epsilon |t - c|); c is the least that reaches the study's size_delta. The law is
sampled exactly (Canonne, Kamath, Steinke 2020, algorithms 1 and 2: rational epsilon, uniform integers, no floating point);
truncation is by rejection. Sampling time depends on the draw; it is spent before the first message.

Threat model: semi-honest. A deviating owner may leave its full pool out and see k + K of its own direction only: then the other
direction's K, drawn by the honest owner over a pool that is not there, protects nothing.
Dummies carry no weight downstream: their rows belong to nobody, in membership and in counts.
Accounting: an event counts epsilon^2 / 2 of rho and delta as its distance from a pure epsilon-DP release.
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
from mpc_protocols.psu.normalise import REAL
from mpc_protocols.psu.randomness import Entropy, below, permutation, system

POOL, PRIVATE = b"\x01", b"\x02"
"""First bytes of public fakes and of private dummies."""
WIDEST = 1 << 20
"""Largest c."""
_BITS = 192


@dataclass(frozen=True)
class PartyList:
    """What one owner feeds into the protocol: its `real` identifiers first, then fakes."""

    entries: list[bytes] = field(repr=False)
    real: int = field(repr=False)


def delta_of(epsilon: Fraction, c: int) -> Fraction:
    """An upper bound, tight to 2^-150, of P[K = 0] = exp(-epsilon c) / (1 + 2 sum_{t=1..c} exp(-epsilon t))."""
    one = 1 << _BITS
    low = exp_minus(enclose(epsilon, _BITS), _BITS)[0]  # exp(-epsilon), from below
    edge_high = exp_minus(enclose(epsilon * c, _BITS), _BITS)[1]
    # sum_{t=1..c} r^t = r (1 - r^c) / (1 - r), increasing in r and decreasing in r^c
    total_low = one + 2 * (low * (one - edge_high) // (one - low))
    return Fraction(edge_high, total_low)


@lru_cache(maxsize=64)
def centre(epsilon: Fraction, delta: Fraction) -> int:
    """The least c with P[K = 0] <= delta. Raises `StudyInvalid` above 2^20."""
    low, high = 0, 1
    while delta_of(epsilon, high) > delta:
        low, high = high, 2 * high
        if high > WIDEST:
            raise StudyInvalid(f"[alignment] size_epsilon = {float(epsilon):g} would need more than {WIDEST} dummies; raise it")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(epsilon, middle) <= delta else (middle, high)
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


def assemble(entries: Sequence[bytes], spec: AlignmentSpec, sid: bytes, side: int, owner: str,
             entropy: Entropy = system) -> PartyList:
    """One owner's list with its fakes. Raises `DataRefused`: too few or too many identifiers, duplicates, more than pad_to."""
    check_list(entries, spec, owner)
    n = len(entries)
    if not all(entry.startswith(REAL) for entry in entries):
        raise ValueError("an identifier is not canonical: `normalise` makes them")
    if spec.adjacency == "replace":
        return PartyList(list(entries), n)
    c = centre(spec.size_epsilon, spec.size_delta)
    if spec.pad_to is None:
        target = n + draw(spec.size_epsilon, c, entropy)
    else:
        target = spec.pad_to[side]
        if n > target:
            raise DataRefused(f"Party {owner} has more identifiers than [alignment] pad_to = {target}; raise pad_to.")
    own, other = (pool(sid, direction, c) for direction in (side, 1 - side))
    subset = permutation(2 * c, entropy)[:draw(spec.size_epsilon, c, entropy)]
    fakes = own + [other[i] for i in subset]
    private = target + 4 * c - n - len(fakes)
    return PartyList([*entries, *fakes, *(PRIVATE + entropy(32) for _ in range(private))], n)


def pool(sid: bytes, direction: int, c: int) -> list[bytes]:
    """The 2c public fakes of a direction: owner `direction` includes them all."""
    return [POOL + sid + bytes([direction]) + i.to_bytes(4, "big") for i in range(2 * c)]


def longest_list(spec: AlignmentSpec) -> int:
    """The most entries an honest owner's list has, fakes included."""
    return spec.max_size + (0 if spec.adjacency == "replace" else 6 * centre(spec.size_epsilon, spec.size_delta))


def list_size(spec: AlignmentSpec, side: int) -> int | None:
    """The length of an owner's list where it is public in advance: with pad_to."""
    if spec.pad_to is None:
        return None
    return spec.pad_to[side] + 4 * centre(spec.size_epsilon, spec.size_delta)


def size_events(spec: AlignmentSpec, recipients: Sequence[str]) -> tuple[Event, ...]:
    """What an owner's sizes reveal to `recipients` in one run: nothing to charge when sizes are public by definition."""
    if spec.adjacency == "replace":
        return ()
    delta = delta_of(spec.size_epsilon, centre(spec.size_epsilon, spec.size_delta))
    return tuple(Event("alignment.size", spec.size_epsilon**2 / 2, delta,
                       {"of": of, "epsilon": float(spec.size_epsilon), "delta": float(delta), "recipients": list(recipients)})
                 for of in ("intersection", *(() if spec.pad_to else ("list",))))
