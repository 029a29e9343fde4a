"""`bench utility --federated`: splits, likelihood, methods, and a whole command on a table of a few hundred
rows."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import UsageError
from runner.bench.benches.utility import BENCH
from runner.bench.research.federated import gan
from runner.bench.research.federated.methods import METHODS, Row
from runner.bench.research.federated.printed import printed
from runner.bench.research.federated.runs import scores
from runner.bench.research.federated.splits import Split, clusters, heterogeneity, synth_fs
from runner.bench.research.federated.world import World, arrivals
from runner.bench.utility.tables import Table
from synth.domain import Codes, Domain
from synth.judgement.metrics.likelihood import mean_nll
from synth.mrf import Measurement, fit
from synth.mrf.raking import rake

DOMAIN = Domain(("a", "b", "c"), (Codes(3), Codes(3), Codes(2)))


@pytest.fixture
def table() -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 900)
    codes = np.stack([a, (a + (rng.random(900) < 0.2)) % 3, rng.integers(0, 2, 900)], axis=1)
    return Table("tiny", DOMAIN, codes, codes[:50], "c")


@pytest.fixture
def folder(tmp_path: Path, table: Table) -> Path:
    lines = ["a,b,c", *(",".join(map(str, row)) for row in table.codes.tolist())]
    (tmp_path / "tiny.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tiny-domain.json").write_text('{"a": 3, "b": 3, "c": 2}')
    return tmp_path


def world(table: Table, seed: int = 0, clients: int = 9) -> World:
    rng = np.random.default_rng(seed)
    places = Split.parse("iid").places(table, clients, rng)
    return World(table, places, clients, arrivals(clients, 0.6, 3, rng), 20.0, 1e-5, seed)


def test_every_row_has_one_client_and_skew_grows_as_it_should(table: Table) -> None:
    rng = np.random.default_rng(1)
    found = {}
    for text in ("iid", "label:100", "label:0.1", "cluster"):
        places = Split.parse(text).places(table, 10, rng)
        assert places.shape == (900,)
        assert 0 <= places.min() <= places.max() < 10
        found[text] = heterogeneity(table, places)
    assert found["iid"] < found["label:0.1"]
    assert found["label:100"] < found["label:0.1"]
    assert found["iid"] < found["cluster"]


def test_clusters_are_those_of_the_nearest_centre() -> None:
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(x, 0.01, (40, 2)) for x in (0.0, 5.0, 10.0)])
    places = clusters(points, 3, np.random.default_rng(4))
    centres = np.stack([points[places == k].mean(axis=0) for k in np.unique(places)])
    distances = np.square(points[:, None] - centres[None]).sum(axis=2)
    assert np.array_equal(np.unique(places)[distances.argmin(axis=1)], places)


def test_synthetic_skew_of_features() -> None:
    found = {beta: synth_fs(beta, 20, np.random.default_rng(3)) for beta in (1.0, 4.0)}
    spread = {
        beta: np.std([table.codes[places == k].mean(axis=0) for k in range(20)], axis=0).mean()
        for beta, (table, places) in found.items()
    }
    assert spread[4.0] < spread[1.0]
    table, places = found[1.0]
    assert len(table.domain) == 10
    assert len(places) == len(table.codes)
    assert table.test is not None
    assert len(table.codes) + len(table.test) == 50_000


@pytest.mark.parametrize(
    "text", ["clusters", "label", "label:0", "label:-1", "label:x", "cluster:3", "iid:2"]
)
def test_splits_that_there_are_not(text: str) -> None:
    with pytest.raises(UsageError, match="no split"):
        Split.parse(text)


def test_a_label_is_needed_to_split_by(table: Table) -> None:
    bare = Table(table.name, table.domain, table.codes)
    with pytest.raises(UsageError, match="has no label"):
        Split.parse("label:0.8").places(bare, 4, np.random.default_rng(0))


def test_the_likelihood_is_that_of_the_models_distribution() -> None:
    rng = np.random.default_rng(5)
    measured = [
        Measurement(("a", "b"), rng.integers(1, 50, 9).astype(float), 1.0),
        Measurement(("b", "c"), rng.integers(1, 50, 6).astype(float), 1.0),
    ]
    model = fit(DOMAIN.sizes, measured)
    whole = model.marginal(DOMAIN.names) / model.total
    rows = np.array(list(itertools.product(range(3), range(3), range(2))))
    assert mean_nll(model, rows) == pytest.approx(-np.log(whole).mean(), rel=1e-9)
    with pytest.raises(ValueError, match="at least one row"):
        mean_nll(model, rows[:0])


def test_raking_keeps_dependences_and_takes_the_columns() -> None:
    joint = np.array([40.0, 10.0, 10.0, 10.0, 40.0, 10.0, 10.0, 10.0, 40.0])
    model = fit(DOMAIN.sizes, [Measurement(("a", "b"), joint, 1.0)])
    given = {"a": np.array([50.0, 100.0, 150.0]), "b": np.array([100.0, 100.0, 100.0])}
    raked = rake(model, [Measurement((name,), of, 1.0) for name, of in given.items()])
    for name, of in given.items():
        assert np.allclose(raked.marginal((name,)), of, atol=0.5)
    expected = np.log(joint.reshape(3, 3))
    found = np.log(raked.marginal(("a", "b")).reshape(3, 3))
    for kind in (expected, found):  # odds ratios are what raking keeps
        kind -= kind.mean(axis=0, keepdims=True)
        kind -= kind.mean(axis=1, keepdims=True)
    assert np.allclose(expected, found, atol=0.02)


def test_every_round_has_somebody_and_newcomers_come_once() -> None:
    there = arrivals(5, 0.05, 40, np.random.default_rng(6))
    assert len(there) == 40
    assert min(map(len, there)) == 1
    empty = Table("none", DOMAIN, np.zeros((0, 3), np.int64))
    found = World(empty, np.zeros(0, np.int64), 5, there, 1.0, 0.1, 0).newcomers
    assert sorted(k for of in found for k in of) == sorted({k for of in there for k in of})


GANS = ("dp-ctgan", "fed-dp-ctgan")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in GANS])
def test_every_method_runs_repeats_and_charges_rho_at_most(table: Table, name: str) -> None:
    outcomes = [Row.parse(name).run(world(table)) for _ in range(2)]
    first, second = outcomes
    assert first.model is not None
    assert second.model is not None
    assert first.model.to_bytes() == second.model.to_bytes()  # by its seed alone
    if name == "oracle":
        assert first.rho_share is None
    else:
        assert first.rho_share is not None
        assert 0.5 < first.rho_share <= 1
    real = np.bincount(table.codes[:, 0], minlength=3) / 900
    assert np.abs(first.model.marginal(("a",)) / first.model.total - real).sum() < 0.25


@pytest.mark.parametrize("text", ["best", "", "private:colour=3", "arriving:later=1"])
def test_rows_that_there_are_not(table: Table, text: str) -> None:
    with pytest.raises(UsageError, match="federated method"):
        Row.parse(text).run(world(table))


def test_the_papers_figures_stand_where_they_belong() -> None:
    assert printed("private", "adult", "cluster", 1, "err") == 0.43
    assert printed("central", "marketing", "cluster", 1, "nll") == 20.87
    assert printed("random", "adult", "cluster", 5, "nll") == 83.9
    assert printed("private", "adult", "iid", 1, "err") is None
    assert printed("light", "adult", "cluster", 1, "err") is None


def test_a_whole_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"--federated --data {folder} --tables tiny,absent --splits iid,cluster --clients 8 --chance 0.8,0.5 --rounds 2"
    lines, page = tmp_path / "runs.jsonl", tmp_path / "page.html"
    options = [
        "--epsilon",
        "8",
        "--seeds",
        "2",
        "--partitions",
        "1",
        "--methods",
        "collect:rounds=2,private:group=2",
    ]
    BENCH.command([*arguments.split(), *options, "--json", str(lines), "--html", str(page)])
    said = capsys.readouterr().out
    assert "absent is not there and left out" in said
    assert "tiny cluster" in said
    assert "err of tiny iid against chance of being there: 0.5, 0.8" in said
    runs = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(runs) == 2 * 2 * 2 * 2  # methods, splits, chances, seeds
    assert all(0 <= run["err"] <= 2 and run["rho_share"] <= 1 for run in runs)
    html = page.read_text()
    assert "AugFLAIM (Private)" in html
    assert "<svg" in html


@pytest.mark.parametrize(
    "wrong",
    [
        "--chance 1.5",
        "--chance x",
        "--rounds 0",
        "--epsilon -1",
        "--seeds 0",
        "--clients 0",
        "--delta 2",
        "--tables absent",
    ],
)
def test_bad_values_are_refused(folder: Path, wrong: str) -> None:
    with pytest.raises(UsageError):
        BENCH.command(["--federated", "--data", str(folder), "--tables", "tiny", *wrong.split(" ", 1)])


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("dp_accounting")
    found = pytest.importorskip("torch")
    found.set_num_threads(1)
    return found


def test_clipped_sums_are_those_of_single_records(torch: Any, table: Table) -> None:
    """Ghost norms against a gradient for each record by itself."""
    pair = gan._Pair(world(table))
    pair._critic[4].data *= 40  # so that some records are clipped and some are not
    expected, norms = [torch.zeros_like(part) for part in pair._critic], []
    for row in table.codes[:30]:
        loss = torch.nn.functional.softplus(-pair._judge(pair._one_hot(row[None]))[0]).sum()
        gradients = torch.autograd.grad(loss, pair._critic)
        norms.append(float(torch.sqrt(sum(part.square().sum() for part in gradients))))
        for total, part in zip(expected, gradients, strict=True):
            total += part * min(1.0, gan.CLIP / norms[-1])
    found = pair.clipped_sum(table.codes[:30])
    assert min(norms) < gan.CLIP < max(norms) or min(norms) > gan.CLIP
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
    assert [part.shape for part in found] == [part.shape for part in pair._critic]


def test_the_discriminators_noise_buys_the_promise(torch: Any) -> None:
    """As other accountants have it: 400 steps of 512 in 43,958 at (1, 1e-5) need 1.29 clips (Opacus 1.6,
    RDP)."""
    assert gan.noise_multiplier(1.0, 1e-5, 512 / 43_958, 400) == pytest.approx(1.29, abs=0.01)
    assert gan.noise_multiplier(1.0, 1e-5, 1.0, 1) > gan.noise_multiplier(2.0, 1e-5, 1.0, 1)


@pytest.mark.parametrize("name", GANS)
def test_networks_draw_a_table_by_their_seed_alone(torch: Any, table: Table, name: str) -> None:
    options = ":steps=3" if name == GANS[0] else ""
    first, second = (Row.parse(name + options).run(world(table)) for _ in range(2))
    assert first.model is None
    assert first.codes is not None
    assert second.codes is not None
    assert np.array_equal(first.codes, second.codes)
    assert first.codes.shape == (first.rows, 3)
    assert 0 <= scores(first, world(table), predicts=False)["err"] <= 2


def test_without_pytorch_the_networks_say_how_to_get_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install 'torch"):
        Row.parse("dp-ctgan").run(world(table))
