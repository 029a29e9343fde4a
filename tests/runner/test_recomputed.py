"""What `verify` recomputes of run.json where the forgeries of a deployment (`test_verify.py`) do not go."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS
from runner.review.verification.account import Account, close
from runner.review.verification.recomputed import Statements, alike
from synth.synthesis import Measured


def statements(soundness: object, security: str = "malicious") -> Statements:
    study: Any = SimpleNamespace(descriptor=BACKENDS["replicated"].secured(security))
    run: Any = SimpleNamespace(facts={"soundness": soundness}, events=[None] * 3)
    return Statements(study, run, None, None)


@pytest.mark.parametrize(
    ("soundness", "holds"),
    [
        ({"proofs": 12, "lg_chance": -52.83}, True),
        ({"proofs": 12, "lg_chance": -56.42}, False),  # the chance of one batch
        ({"proofs": 2, "lg_chance": -55.42}, False),  # fewer than openings
        ({"proofs": True, "lg_chance": -56.42}, False),
    ],
)
def test_the_chance_that_a_deviation_passes_is_that_of_the_proofs(soundness: object, holds: bool) -> None:
    assert statements(soundness)._soundness() == holds


def test_nobody_has_proved_anything_where_parties_follow_the_protocol() -> None:
    assert not statements({"proofs": 12, "lg_chance": -52.83}, "semi-honest")._soundness()


def account(**changes: Any) -> Account:
    """Of two custodians that are charged side by side, the second more."""
    study: Any = SimpleNamespace(
        numbered=[SimpleNamespace(name="north"), SimpleNamespace(name="south")],
        domain=SimpleNamespace(sizes={"a": 2}),
        privacy=SimpleNamespace(adjacency="add-remove", unit=SimpleNamespace(rows=1)),
    )
    both = {"what": "choices", "rho": 0.1, "charged": [0, 1]}
    south = {"what": "choices", "rho": 0.2, "charged": [1]}
    privacy = {
        "events": [both, south],
        "all_events": [{**both, "of": ["north", "south"]}, {**south, "of": ["south"]}],
        "clients": [
            {"name": "north", "rho_spent": 0.1, "beta": 0.0},
            {"name": "south", "rho_spent": 0.1 + 0.2, "beta": 0.0},
        ],
        "rho_spent": 0.1 + 0.2,
        "noisy_total": 5.0,
        "beta": 0.0,
        **changes,
    }
    return Account(study, None, privacy, (), 5.0, False)


def test_the_events_are_those_of_the_custodian_that_is_charged_most() -> None:
    assert list(account().differing()) == []
    both, south = account().privacy["events"]
    cut: list[dict[str, Any]] = [
        {"events": [both], "rho_spent": 0.1},  # the other one's
        {"all_events": [{**both, "of": ["north"]}, {**south, "of": ["south"]}]},
        {"clients": [{"name": "north", "rho_spent": 0.1, "beta": 0.0}]},
        {
            "clients": [
                {"name": "north", "rho_spent": 0.1, "beta": 0.0},
                {"name": "south", "rho_spent": 0.1, "beta": 0.0},
            ]
        },
    ]
    for changes in cut:
        assert list(account(**changes).differing()) == ["events"], changes


def test_the_noisy_number_of_rows_is_the_mean_of_the_first_batch() -> None:
    """Two marginals of 2 cells with variances 1 and 4: sums 10 and 20, weights 4 to 1."""
    sigma2 = [Fraction(1), Fraction(4)]
    measured = [
        Measured(("a",), of, 0, np.array(values))
        for of, values in zip(sigma2, ([4, 6], [9, 11]), strict=True)
    ]
    event = {"what": "measure", "rho": 0.625, "cliques": [["a"], ["a"]], "sigma2": ["1/1", "4/1"]}
    privacy = {"events": [event], "rho_spent": 0.625, "noisy_total": 12.0, "beta": 0.0}
    found = Account(account().study, None, privacy, measured, 12.0, False)
    assert list(found.differing()) == ["beta"]  # a bound that is fixed is charged
    assert list(
        Account(found.study, None, {**privacy, "noisy_total": 11.0}, measured, 11.0, False).differing()
    ) == ["noisy_total", "beta"]


def test_numbers_are_compared_up_to_their_last_digits() -> None:
    assert close(1.0 + 1e-12, 1.0) and not close(1.001, 1.0) and not close(True, 1.0) and not close("1", 1.0)
    verdict = {"sentence": "a", "share": 0.333, "lost": [{"columns": ["a"], "kept": 0.1}]}
    assert alike({**verdict, "share": 0.334}, verdict)
    assert not alike({**verdict, "share": 0.34}, verdict)
    assert not alike({**verdict, "sentence": "b"}, verdict) and not alike({"share": 0.333}, verdict)
    assert not alike({**verdict, "lost": []}, verdict) and not alike(None, verdict)
