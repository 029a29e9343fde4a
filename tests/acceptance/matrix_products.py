"""What the proof of matrix products costs (`docs/design/malicious.md` 4.8). Not a test: figures.

    OPENBLAS_NUM_THREADS=1 python -m tests.acceptance.matrix_products [--rows 45222] [--columns 80] [--products 3]

Three parties in one process, each a thread, multiply random shares and prove it: CPU seconds of the busiest
one and bytes of each.
"""

from __future__ import annotations

import argparse
import time

from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING
from mpc_protocols.backends.replicated.proof.matrix_products.multiplication import ProductSum, reshare_sums
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire

BLOCK = 4096
"""Rows of a block."""


def main() -> None:
    parser = argparse.ArgumentParser(description="What the proof of matrix products costs.")
    parser.add_argument("--rows", type=int, default=45_222)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--products", type=int, default=3)
    chosen = parser.parse_args()

    def party(wire: Wire) -> tuple[float, float, int]:
        return cost(wire, chosen.rows, chosen.columns, chosen.products)

    found = MemoryNetwork(3).run([party] * 3)
    multiplied, proved, sent = (max(of) for of in zip(*found, strict=True))
    print(f"CPU {multiplied:.2f} s to multiply, {proved:.2f} s to prove; {sent / 1e6:.2f} MB of proof")


def cost(wire: Wire, rows: int, columns: int, products: int) -> tuple[float, float, int]:
    """CPU seconds of this party's products and of their proof, and the bytes that it sends for the proof."""
    trio, transcript = Trio(wire), Transcript()
    sums = [ProductSum((columns, columns)) for _ in range(products)]
    begun = time.thread_time()
    for of in sums:
        for start in range(0, rows, BLOCK):
            of.add(*(_random(trio, (min(BLOCK, rows - start), columns)) for _ in range(2)))
    reshare_sums(trio, transcript, sums)
    sent, multiplied = wire.traffic().bytes_sent, time.thread_time()
    prove(trio, transcript)
    return multiplied - begun, time.thread_time() - multiplied, wire.traffic().bytes_sent - sent


def _random(trio: Trio, shape: tuple[int, int]) -> RingShare:
    operation = trio.operation()
    return RingShare(trio.own_mask(shape, RING, operation), trio.next_mask(shape, RING, operation))


if __name__ == "__main__":
    main()
