"""The same problems solved by `mbi` (Private-PGM's own library, JAX), an independent implementation of the
same inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from synth.mrf import Measurement, Model, fit, model_size_mb
from tests.synth.mrf.problems import cells, loss

SIZES = {"a": 7, "b": 4, "c": 5, "d": 3, "e": 6}
CLIQUES = [("a",), ("b", "c"), ("c", "d"), ("a", "d"), ("e",)]


@pytest.fixture(scope="module")
def mbi() -> Any:
    """The library, which loads JAX: a second that no process of tests but one need take."""
    library = pytest.importorskip("mbi")
    pytest.importorskip("mbi.estimation")
    pytest.importorskip("jax").config.update("jax_enable_x64", True)
    return library


def _measurements() -> list[Measurement]:
    rng = np.random.default_rng(12)
    table = rng.gamma(0.4, 1.0, tuple(SIZES.values()))
    table *= 2000 / table.sum()
    names = list(SIZES)
    result = []
    for number, clique in enumerate(CLIQUES):
        axes = tuple(i for i, name in enumerate(names) if name not in clique)
        exact = table.sum(axis=axes).reshape(-1)
        variance = 25.0 * (1 + number)
        result.append(Measurement(clique, exact + rng.normal(0, np.sqrt(variance), exact.size), variance))
    return result


@pytest.mark.slow
def test_the_fit_reaches_the_loss_and_the_marginals_of_mbi(mbi: Any) -> None:
    measurements = _measurements()
    ours = fit(SIZES, measurements, total=2000.0, iterations=3000, tolerance=0.0)
    domain = mbi.Domain.fromdict(SIZES)
    linear = [
        mbi.LinearMeasurement(m.values, m.clique, stddev=float(np.sqrt(m.variance))) for m in measurements
    ]
    theirs = mbi.estimation.MirrorDescent().estimate(domain, linear, known_total=2000.0, iters=8000)
    answers = [np.asarray(theirs.project(m.clique).datavector(), dtype=float) for m in measurements]
    pairs = zip(answers, measurements, strict=True)
    their_loss = sum(float(np.square(a - m.values).sum()) / (2 * m.variance) for a, m in pairs)
    assert loss(ours, measurements) <= their_loss * (1 + 1e-6)
    assert loss(ours, measurements) >= their_loss * 0.98 - 0.1
    for m, answer in zip(measurements, answers, strict=True):
        np.testing.assert_allclose(ours.marginal(m.clique), answer, atol=1.5)
    for query in [("a", "b"), ("e", "b", "d"), ("a", "c")]:
        expected = np.asarray(theirs.project(query).datavector(), dtype=float)
        np.testing.assert_allclose(ours.marginal(query), expected, atol=1.5)


@pytest.mark.slow
def test_marginals_of_the_same_potentials_agree_with_mbi(mbi: Any) -> None:
    rng = np.random.default_rng(3)
    cliques = [("b", "c"), ("c", "d"), ("a", "d"), ("a", "e")]
    potentials: dict[Clique, NDArray[np.float64]] = {
        clique: rng.normal(0, 2, cells(SIZES, clique)) for clique in cliques
    }
    ours = Model(SIZES, 100.0, potentials)
    domain, array = mbi.Domain.fromdict(SIZES), pytest.importorskip("jax.numpy").array
    tables = {
        clique: mbi.Factor(domain.project(clique), array(flat.reshape([SIZES[n] for n in clique])))
        for clique, flat in potentials.items()
    }
    vector = mbi.CliqueVector(domain, cliques, tables)
    beliefs = mbi.marginal_oracles.message_passing_stable(vector, 100.0)
    for clique in cliques:
        expected = np.asarray(beliefs.project(clique).datavector(), dtype=float)
        np.testing.assert_allclose(ours.marginal(clique), expected, rtol=1e-8, atol=1e-8)


def test_the_size_estimate_is_that_of_mbi_on_a_chordal_graph(mbi: Any) -> None:
    """Different elimination heuristics agree where no edge has to be added."""
    cliques = [("a", "b", "c"), ("c", "d"), ("d", "e")]
    theirs = mbi.junction_tree.hypothetical_model_size(mbi.Domain.fromdict(SIZES), cliques)
    assert model_size_mb(SIZES, cliques) == pytest.approx(float(theirs))
