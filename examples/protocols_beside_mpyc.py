"""An MPyC program of three parties that calls these protocols among its own: python
examples/protocols_beside_mpyc.py -M3

What is MPyC's stays MPyC's: secure types, `mpc.output`, its arguments (-M3, --ssl, ..), its connections.
"""

from __future__ import annotations

import numpy as np
from mpyc.runtime import mpc

from cosynth import protocols


def program(party: protocols.ThreeParties, counts: list[int]) -> tuple[int, list[int]]:
    """Noise that nobody knows and a choice by the exponential mechanism, which MPyC does not have."""
    total = party.shared_sum(np.array(counts), high=1000)
    chosen = party.arg_max(total, sensitivity=1, epsilon=1.0)
    return chosen.position, party.noisy(total, sigma2=25, sensitivity2=1).values.tolist()


async def main() -> None:
    """MPyC's sum before, our protocols, MPyC's sum after."""
    await mpc.start()
    secure = mpc.SecInt(32)
    before = await mpc.output(mpc.sum(mpc.input(secure(10 + mpc.pid))))
    chosen, noisy = await protocols.beside_mpyc(mpc, program, [40 + mpc.pid, 3, 12], epsilon=4.0, delta=1e-9)
    after = await mpc.output(mpc.sum(mpc.input(secure(chosen))))
    print(f"MPyC {before} {after}; chosen {chosen}; noisy {noisy}", flush=True)
    await mpc.shutdown()


if __name__ == "__main__":
    mpc.run(main())
