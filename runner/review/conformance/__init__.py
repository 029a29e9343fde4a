"""Conformance suites: what every backend, alignment method and algorithm must do, whoever wrote it.

    from runner.review.conformance import Check, check_oracle

    @pytest.mark.parametrize("check", check_oracle(BACKEND), ids=str)
    def test_my_backend(check: Check) -> None:
        check()

or, where no test stands around it, `cosynth conformance backend NAME` (`runner/commands/program/conformance.py`).

`check_oracle`, `check_alignment` and `check_algorithm` each return a list of `Check`: a name in words and a
body that raises `NonconformingError`, an AssertionError whose message says which promise is broken and how.
They need the descriptor and nothing else, and look only at what its kind promises
(`mpc_protocols/backend.py`, `mpc_protocols/psu/method.py`, `synth/algorithm.py`); what a version claims
beyond that (views, attacks, utility) has tests of its own.
"""

from runner.review.conformance.algorithm.suite import check_algorithm, check_arriving
from runner.review.conformance.alignment import check_alignment
from runner.review.conformance.checks import Check, NonconformingError
from runner.review.conformance.oracle.suite import check_oracle

__all__ = [
    "Check",
    "NonconformingError",
    "check_algorithm",
    "check_alignment",
    "check_arriving",
    "check_oracle",
]
