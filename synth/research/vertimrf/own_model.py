"""What an owner learns of its own columns: the noisy marginals of a run of PrivMRF on its own table, and how
they travel.

The owner is the trusted curator of its own table, so its questions go to an oracle of its own, which holds it
to its part of the budget. What is sent are the noisy marginals; the structure that was found is in which they
are.

    header length (4 bytes), header, values (8 bytes a cell)        header: [[columns, [numerator, denominator]], ..]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from mpc_protocols.functionality import Guard, MarginalOracle
from synth.algorithms.privmrf import loop
from synth.algorithms.privmrf.plan import PrivMrfPlan
from synth.budget.accounting import Accountant
from synth.synthesis import Measured

MAX_HEADER = 1 << 20
MAX_BITS = 1023


def own_marginals(plan: PrivMrfPlan, own_oracle: Callable[[Guard], MarginalOracle]) -> bytes:
    """Run PrivMRF on the owner's own table; the noisy marginals, packed. Raises what an oracle raises."""
    measured = loop.run(own_oracle(Accountant(plan.budget)), plan).measurements
    header = json.dumps([[list(m.clique), list(m.sigma2.as_integer_ratio())] for m in measured]).encode()
    values = b"".join(m.values.astype("<i8").tobytes() for m in measured)
    return len(header).to_bytes(4, "big") + header + values


def limit(plan: PrivMrfPlan) -> int:
    """The most bytes of them."""
    widest = max([*plan.domain.sizes.values(), *plan.candidates.values()])
    return 4 + MAX_HEADER + 8 * widest * (3 * len(plan.domain) + plan.rounds[1])


def usual_length(plan: PrivMrfPlan) -> int:
    """About how many there will be: the columns, and as many marginals as are selected, of the median size."""
    cells = sorted(plan.candidates.values()) or [0]
    joint = plan.rounds[1] + len(plan.domain)
    return 60 * joint + 8 * (sum(plan.domain.sizes.values()) + joint * cells[len(cells) // 2])


def unpacked(payload: bytes, sizes: Mapping[str, int]) -> tuple[list[Measured], int]:
    """The marginals and where they end. sizes: of the sender's columns. Raises ValueError, TypeError,
    LookupError."""
    length = int.from_bytes(payload[:4], "big")
    if length > MAX_HEADER:
        raise ValueError("The header of a report is too long.")
    at, found = 4 + length, list[Measured]()
    for columns, noise in json.loads(payload[4:at]):
        clique = _clique(columns, sizes)
        cells = math.prod(sizes[name] for name in clique)
        values = np.frombuffer(payload[at : at + 8 * cells], "<i8")
        if len(values) != cells:
            raise ValueError("A report ends in the middle of a marginal.")
        at += 8 * cells
        found.append(Measured(clique, _variance(noise), 0, values.astype(np.int64)))
    return found, at


def _clique(columns: object, sizes: Mapping[str, int]) -> tuple[str, ...]:
    if not isinstance(columns, list) or not columns or len(set(columns)) != len(columns):
        raise ValueError("A report names no columns, or one twice.")
    if not all(isinstance(name, str) and name in sizes for name in columns):
        raise ValueError("A report names columns that its sender does not own.")
    return tuple(columns)


def _variance(form: Sequence[object]) -> Fraction:
    numerator, denominator = form
    for part in (numerator, denominator):
        if type(part) is not int or not 0 < part < 1 << MAX_BITS:
            raise ValueError("A report gives a noise that is no positive rational.")
    assert isinstance(numerator, int) and isinstance(denominator, int)
    return Fraction(numerator, denominator)
