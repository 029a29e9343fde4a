"""Every registered alignment method, and the toy, does what a method promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mpc_protocols.psu.dh2 import owner
from mpc_protocols.psu.dh2.cost import dh2_cost
from mpc_protocols.psu.dh2.method import METHOD, Dh2
from mpc_protocols.psu.dummies import overlap_noise
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.method import METHODS
from mpc_protocols.psu.randomness import Entropy
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.wire import Wire
from runner.review.conformance import Check, check_alignment
from tests.toys import open_method

TRAPS = 6


class FewTraps(Dh2):
    """dh2 with six traps instead of a thousand, which take two seconds: the same messages, and any peer could
    deviate."""

    name = "dh2 with few traps"

    def between(
        self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        return owner.align(wire, entries, spec, context, Ristretto255(threads=1), entropy, TRAPS)

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        pool = 0 if spec.adjacency == "replace" else 2 * overlap_noise(spec).c
        return dh2_cost(first, second, union, proofs=spec.security == "proofs", pool=pool, traps=TRAPS)


METHODS_TRIED = (*(method for method in METHODS if method is not METHOD), FewTraps(), open_method.METHOD)
CHECKS = [check for method in METHODS_TRIED for check in check_alignment(method)]
BRIEF = ("what it says of itself", "rows and costs are right (owners 0, 1 of 2 computing)", "with proofs")
CHECKS += [check for check in check_alignment(METHOD) if check.name in BRIEF]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_alignment(check: Check) -> None:
    check()


def test_dh2_is_tried_in_brief() -> None:
    assert len([check for check in CHECKS if check.subject == 'alignment "dh2"']) == len(BRIEF)
