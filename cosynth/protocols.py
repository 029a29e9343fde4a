"""The protocols in a program of one's own: `from cosynth import protocols` ([how](docs/howto/protocols.md)).

def program(party, counts):
    total = party.shared_sum(counts, high=1000)                     # nobody sees another's counts
    return party.noisy(total, sigma2=50, sensitivity2=1).values     # opened with noise that nobody knows

protocols.in_one_process(program, [[north], [south], [west]], epsilon=1.0, delta=1e-9)      # three threads, to try it
protocols.as_party(program, north, me="north", parties={...}, purpose="..", cert=.., key=.., ca=.., epsilon=.., delta=..)
await protocols.beside_mpyc(mpc, program, north, epsilon=1.0, delta=1e-9)                   # among those of MPyC
"""

from __future__ import annotations

from cosynth import _load_ours

_load_ours()

from mpc_protocols.toolkit.shared_array import SharedArray  # noqa: E402 - the packages beside this one, whatever is on sys.path
from mpc_protocols.toolkit.three_parties import NoisyArray, Selection, ThreeParties, UnionRows  # noqa: E402
from runner.api.protocols import as_party, beside_mpyc, in_one_process  # noqa: E402

__all__ = [
    "NoisyArray",
    "Selection",
    "SharedArray",
    "ThreeParties",
    "UnionRows",
    "as_party",
    "beside_mpyc",
    "in_one_process",
]
