"""Private set union: owners' lists of identifiers to rows of a common table, from hashing to the last check.

Every owner holds as many identifiers, a share of which all have in common. The first three owners compute,
the others contribute; protocols of two owners run between the first two, `helper` with the third party's
help.
"""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import CosynthError
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.psu.align import align
from mpc_protocols.psu.forecast import forecast
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.groups.residues import Residues
from mpc_protocols.psu.identifiers.normalise import REAL, Identifiers
from mpc_protocols.psu.method import METHODS
from mpc_protocols.wire import Wire
from runner.bench.parameters import PROOFS, Parameter, Params
from runner.bench.registry import Kernel, Predicted, Task
from runner.bench.running.repeat import JobWire
from runner.bench.tables.inputs import expect

IDENTIFIERS = Parameter("identifiers", "identifiers of each owner", (10**5,), 1, 2**24)
OWNERS = Parameter("owners", "parties with identifiers, of which up to three compute", (2,), 2, 8)
COMMON = Parameter(
    "common", "share of every owner's identifiers that all owners have", (0.5,), 0, 1, whole=False
)
VIA = Parameter(
    "via",
    "protocol; all but merge3 are for two owners",
    ("merge3",),
    choices=tuple(method.name for method in METHODS if method.psu),
)
GROUP = Parameter(
    "group",
    "group of florist: ristretto255, or the paper's, squares modulo a prime of 2,048 bits (slow)",
    ("ristretto255",),
    choices=("ristretto255", "residues"),
)


class PrivateSetUnion(Kernel):
    """One whole alignment, keys and local sorting included. An identifier is an entry of one owner's list."""

    name, purpose, counts = (
        "psu",
        "private set union: who is the same, without learning who is known to whom",
        "identifiers",
    )
    parameters = (IDENTIFIERS, OWNERS, COMMON, VIA, GROUP, PROOFS)

    def amount(self, params: Params) -> float:
        return float(params["identifiers"]) * float(params["owners"])

    def problem(self, params: Params) -> str | None:
        method = METHODS[str(params["via"])]
        if params["group"] != "ristretto255" and not method.groups:
            return f"--group {params['group']} is for --via florist, got {params['via']}"
        if params[PROOFS.name] and (weakness := method.weakness("replace")):
            return f"--proofs on is not for --via {params['via']}: {weakness}"
        several = method.two_owners and int(params["owners"]) != 2
        return f"--via {params['via']} joins two owners, got {params['owners']}" if several else None

    def processes(self, params: Params) -> int:
        return max(3, int(params["owners"]))

    def predicted(self, params: Params) -> Predicted | None:
        if params["group"] != "ristretto255":
            return None
        spec, context = self._setting(params)
        lists = [_people(params, owner) for owner in range(int(params["owners"]))]
        union = len(np.unique(np.concatenate(lists)))
        told = forecast(spec, context, [len(own) for own in lists], union)
        return Predicted(told.rounds, tuple(told.sent.get(n, 0) for n in range(self.processes(params))))

    def _setting(self, params: Params) -> tuple[AlignmentSpec, Context]:
        spec = AlignmentSpec(str(params["via"]), min_size=0, malicious=bool(params[PROOFS.name]))
        members = [
            Member(f"party {number}", bytes([number]) * 32, number)
            for number in range(self.processes(params))
        ]
        owners = tuple(members[: int(params["owners"])])
        helper = members[2] if METHODS[spec.method].helper else None
        return spec, Context(bytes(32), owners, helper, tuple(members[:3]))

    def prepare(self, wire: Wire, params: Params) -> Task:
        spec, context = self._setting(params)
        side, owners = context.side(wire.me), context.owners
        own = None
        if side is not None:
            entries = [REAL + b"person %d" % person for person in _people(params, side).tolist()]
            own = Identifiers(entries, np.arange(len(entries)), ("text",))
        group = Residues() if params["group"] == "residues" else None
        runs = itertools.count()

        def check(result: Alignment) -> None:
            everybody = np.concatenate([_people(params, owner) for owner in range(len(owners))])
            expect(self.name, np.array([result.n_rows]), np.array([len(np.unique(everybody))]))
            expect(self.name, np.unique(result.rows), np.sort(result.rows))
            same = hashlib.sha256(result.digest + result.rows[: _common(params)].tobytes()).digest()
            if wire.me and side is not None:
                wire.send(0, same)
            for owner in owners[1:] if wire.me == 0 else ():
                if bytes(wire.receive(owner.number, 32)) != same:
                    raise CosynthError(
                        "The benchmark psu came to a wrong result: two owners place the same people in other "
                        "rows; its figures mean nothing, please report it."
                    )

        return Task(lambda: align(JobWire(wire, next(runs)), own, spec, context, AllowAll(), group), check)

    def floor(self, params: Params) -> Task:
        lists = [_people(params, owner) for owner in range(int(params["owners"]))]
        return Task(lambda: np.unique(np.concatenate(lists), return_inverse=True))


def _common(params: Params) -> int:
    return round(Fraction(str(params["common"])) * int(params["identifiers"]))


def _people(params: Params, owner: int) -> NDArray[np.int64]:
    """An owner's people: first the common ones, then its own."""
    common, count = _common(params), int(params["identifiers"])
    return np.concatenate([np.arange(common), np.arange(common, count) + owner * count])


BENCH = PrivateSetUnion()
