"""Two owners (and a helper) in threads, for the tests of private set union; wires that falsify; the
comparison with the ideal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork, MemoryWire
from mpc_protocols.psu.dh2.owner import align
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.groups.group import Group
from mpc_protocols.psu.groups.residues import Residues
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.helper import protocol as helper
from mpc_protocols.research.florist import protocol as florist
from mpc_protocols.wire import Traffic, Wire

NORTH, SOUTH, EAST = (Member(name, bytes([i]) * 32, i) for i, name in enumerate(("north", "south", "east")))
CONTEXT = Context(bytes(range(32)), (NORTH, SOUTH), EAST)
TRAPS = 6
"""Of dh2's lists in tests that align small sets many times."""


@dataclass
class Run:
    """What a run of two owners left."""

    results: list[Alignment]
    traffic: list[Traffic]
    frames: list[Frame]
    session_id: bytes


def spec_of(method: str, **changes: Any) -> AlignmentSpec:
    """Small sets allowed. "dh2+proofs" is dh2 with proofs."""
    name, _, proofs = method.partition("+")
    return AlignmentSpec(
        name,
        security="proofs" if proofs else "semi-honest",
        **{"min_size": 0, "max_size": 100_000, **changes},
    )


def ids(numbers: Sequence[int] | range) -> list[bytes]:
    """Canonical identifiers."""
    return [b"\x00person %d" % n for n in numbers]


def owner(
    spec: AlignmentSpec, entries: Sequence[bytes], group: Callable[[], Group] = Ristretto255
) -> Callable[[Wire], Alignment]:
    """An honest owner's body."""

    def body(wire: Wire) -> Alignment:
        if spec.method == "helper":
            return helper.align(wire, entries, spec, CONTEXT)
        if spec.method == "florist":
            return florist.align(wire, entries, spec, CONTEXT, group())
        return align(wire, entries, spec, CONTEXT, group(), traps=TRAPS)

    return body


def run(
    spec: AlignmentSpec,
    first: Callable[[Wire], Any] | Sequence[bytes],
    second: Callable[[Wire], Any] | Sequence[bytes],
    group: Callable[[], Group] = Ristretto255,
    session_id: bytes | None = None,
) -> Run:
    """Both owners, given as lists of identifiers or as bodies, and the helper if the method has one."""
    frames: list[Frame] = []
    network = MemoryNetwork(3, session_id=session_id, tap=frames.append)
    bodies = [body if callable(body) else owner(spec, body, group) for body in (first, second)]
    third = (lambda wire: helper.serve(wire, spec, CONTEXT)) if spec.method == "helper" else (lambda wire: 0)
    results = network.run([*bodies, third])
    return Run(results[:2], [network.traffic(i) for i in range(3)], frames, network.session_id)


class Falsifying(MemoryWire):
    """A party's wire, or its fork, that changes some of the messages it sends to `receiver`, by number (from
    0)."""

    def __init__(
        self, wire: MemoryWire, changes: Mapping[int, Callable[[bytes], bytes]], receiver: int
    ) -> None:
        super().__init__(wire._network, wire._party, wire._stream)
        self._changes, self._receiver, self._count = changes, receiver, 0

    def fork(self, name: str) -> MemoryWire:
        return Falsifying(super().fork(name), self._changes, self._receiver)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        if peer == self._receiver:
            payload = self._changes.get(self._count, bytes)(bytes(payload))
            self._count += 1
        super().send(peer, payload)


def falsified(
    body: Callable[[Wire], Any], receiver: int, **changes: Callable[[bytes], bytes]
) -> Callable[[Wire], Any]:
    """The body with messages m0=..., m3=... changed on their way to `receiver`."""
    numbered = {int(name[1:]): change for name, change in changes.items()}

    def falsifying(wire: Wire) -> Any:
        assert isinstance(wire, MemoryWire)
        return body(Falsifying(wire, numbered, receiver))

    return falsifying


def assert_ideal(
    lists: Sequence[Sequence[bytes]], results: Sequence[Alignment], ideal: Sequence[Alignment]
) -> None:
    """The results are the ideal functionality's up to the order of rows: one bijection of rows maps each
    owner's map."""
    assert {r.n_rows for r in results} == {i.n_rows for i in ideal} == {len(set().union(*lists))}
    assert len({r.digest for r in results}) == 1
    renamed: dict[int, int] = {}
    for entries, got, want in zip(lists, results, ideal, strict=True):
        assert got.rows.shape == want.rows.shape == (len(entries),)
        for ours, theirs in zip(got.rows.tolist(), want.rows.tolist(), strict=True):
            assert 0 <= ours < got.n_rows
            assert renamed.setdefault(theirs, ours) == ours
    assert len(set(renamed.values())) == len(renamed) == results[0].n_rows


def small_residues() -> Group:
    """The paper's group, too small to protect anything and fast enough to test."""
    return Residues(SAFE_PRIME)


def safe_prime(bits: int) -> int:
    """The first safe prime above 2^bits (Fermat tests to several bases: public, for tests)."""
    candidate = (1 << bits) + 3
    while not all(pow(b, n - 1, n) == 1 for n in (candidate, candidate >> 1) for b in (2, 3, 5, 7, 11)):
        candidate += 4
    return candidate


SAFE_PRIME = (1 << 256) + 230_191
"""What safe_prime(256) takes seconds to find (that it is one: `test_group`)."""
