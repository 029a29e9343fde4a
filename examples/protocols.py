"""Three hospitals without a study: counts added up, the commonest diagnosis chosen, two lists joined, all by
protocols.

python examples/protocols.py                           three threads of this process, which protects nobody from it
python examples/protocols.py NAME ADDRESS,ADDRESS,..   be NAME, one of three processes on this machine, without TLS
python examples/protocols.py NAME ADDRESS,.. CERTS     the same with NAME.crt, NAME.key and ca.crt of a folder
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from cosynth import protocols

NAMES = ("north", "south", "west")
COUNTS = {"north": [40, 3, 12], "south": [35, 9, 11], "west": [50, 2, 30]}
PATIENTS: dict[str, Sequence[str]] = {"north": ["Ada", "Ben", "Cy"], "south": ["Cy", "Dee"]}
BUDGET = {"epsilon": 4.0, "delta": 1e-9}


def program(party: protocols.ThreeParties, name: str) -> dict[str, object]:
    """What each of the three runs; no party sees another's counts or names."""
    total = party.shared_sum(np.array(COUNTS[name]), high=1000)
    noisy = party.noisy(total, sigma2=25, sensitivity2=1)
    commonest = party.arg_max(total, sensitivity=1, epsilon=1.0)
    union = party.union(PATIENTS.get(name), owners=(0, 1))
    smokers, married = np.zeros((union.size, 1), int), np.zeros((union.size, 2), int)
    smokers[union.rows[:1]] = 1
    married[union.rows, np.arange(len(union.rows)) % 2] = 1
    own = {"north": smokers, "south": married}.get(name)
    both = party.transposed_product(own, owners=(0, 1), rows=union.size, columns=(1, 2))
    table = party.noisy(both, sigma2=25, sensitivity2=1)
    return {
        "noisy counts": noisy.values.tolist(),
        "commonest": commonest.position,
        "people": union.size,
        "noisy table": table.values.tolist(),
        "rho": float(noisy.rho + commonest.rho + table.rho),
    }


def main(arguments: Sequence[str]) -> None:
    """Start the program as asked, and print what it returned."""
    if not arguments:
        print(protocols.in_one_process(program, [[name] for name in NAMES], **BUDGET)[0])
        return
    name, addresses, *certificates = arguments
    folder = certificates[0] if certificates else None
    mine = {"cert": f"{folder}/{name}.crt", "key": f"{folder}/{name}.key", "ca": f"{folder}/ca.crt"}
    print(
        protocols.as_party(
            program,
            name,
            me=name,
            parties=dict(zip(NAMES, addresses.split(","), strict=True)),
            purpose="diagnoses of three hospitals",
            **(mine if folder else {"insecure_loopback": True}),
            **BUDGET,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
