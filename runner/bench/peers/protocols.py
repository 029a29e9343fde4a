"""Which protocols of MP-SPDZ stand beside which backend of ours.

Each is compiled for by `compile.py -E NAME`, which is MP-SPDZ's own way to "enable all suitable optimizations and restrictions
for a particular protocol" (its doc/compilation.rst). Loops are unrolled as far as the compiler lets them be (`-b`): its
smaller default takes hundreds of times the rounds. Where several settings are documented, here stands the one that took the
least time (docs/benchmark.md).
"""

from __future__ import annotations

from dataclasses import dataclass

BATCHES = 5
"""Of triples or bits that a protocol makes ahead, for the cells of one step."""


@dataclass(frozen=True)
class PeerProtocol:
    """One protocol.

    name: of the executable, less `-party.x`. title: what it is, for the page. parties: how many compute. compiled_for: arguments
    of compile.py. started_with: further arguments of the executable. backend: ours that protects against the same parties.
    proofs: whether ours prove their products. cells: as many as its steps have if nobody says; what takes gigabytes has fewer.
    opens: whether its checks of what others did take place when something is opened, so that the timed step must open its sums.
    ahead: whether it makes triples or bits ahead, BATCHES of them a step at least: the first repetition then makes those of all,
    so figures are means of the two, and none is a warm-up.
    also: steps that it takes beside those of all.
    """

    name: str
    title: str
    parties: int
    compiled_for: tuple[str, ...]
    backend: str
    started_with: tuple[str, ...] = ()
    proofs: bool = False
    cells: int = 100_000
    opens: bool = False
    ahead: bool = True
    also: tuple[str, ...] = ()

    @property
    def executable(self) -> str:
        """The file in MP-SPDZ's tree."""
        return f"{self.name}-party.x"


PROTOCOLS = (
    PeerProtocol(
        "replicated-ring",
        "three semi-honest parties, replicated shares",
        3,
        ("-E", "ring", "-R", "64"),
        "replicated",
        cells=1_000_000,
        ahead=False,
        also=("multiply", "rounds"),
    ),
    PeerProtocol(
        "shamir",
        "three semi-honest parties, Shamir's shares",
        3,
        ("-E", "shamir", "-F", "32", "-Y"),
        "shamir",
    ),
    PeerProtocol(
        "atlas",
        "three semi-honest parties, Shamir's shares, products by ATLAS",
        3,
        ("-E", "atlas", "-F", "32", "-Y"),
        "shamir",
    ),
    PeerProtocol(
        "semi2k",
        "two semi-honest parties, oblivious transfer",
        2,
        ("-E", "semi2k", "-R", "64"),
        "pair",
        ("-e",),
    ),
    PeerProtocol(
        "ps-rep-ring",
        "three parties of whom one may deviate, products checked after they are used",
        3,
        ("-E", "ps-rep-ring", "-R", "64"),
        "replicated",
        proofs=True,
        opens=True,
    ),
    PeerProtocol(
        "malicious-rep-ring",
        "three parties of whom one may deviate, triples checked before they are used",
        3,
        ("-E", "malicious-rep-ring", "-R", "64", "-Y"),
        "replicated",
        proofs=True,
        opens=True,
    ),
    PeerProtocol(
        "sy-rep-ring",
        "three parties of whom one may deviate, authenticated replicated shares",
        3,
        ("-E", "sy-rep-ring", "-R", "64"),
        "replicated",
        proofs=True,
        opens=True,
    ),
)
