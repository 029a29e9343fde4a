"""A dry run on the very table of a run: the same transcript, and of every party the rounds, bytes and
messages, exactly.

Whatever is asked, in groups so small that candidates lie in several, and what is kept is dropped and shared
again. The oracle in the clear that a dry run asks gives the scores that the run must share, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.ideal import oracle as ideal
from mpc_protocols.backends.replicated.backend import BACKEND
from mpc_protocols.backends.replicated.engine import ReplicatedEngine
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.scores import bit_cache
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.engine import step
from mpc_protocols.engine.bitwise import argmax
from mpc_protocols.engine.blank import Blank
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.functionality import Clique, Level, MarginalOracle, StudyFacts, unobserved
from mpc_protocols.in_memory.engine_dry_run import EngineDryRun
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll, PresumedRun
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle
from mpc_protocols.public import answers
from mpc_protocols.wire import Wire
from synth.algorithm import ALGORITHMS
from synth.algorithms.mosaic.config import MosaicConfig
from synth.domain import Domain
from synth.workload import Workload
from tests.mpc_protocols.backends.replicated.trio_run import small_groups

SIZES = {"a": 9, "b": 1, "c": 14, "d": 4}
CLIQUES = [clique for degree in (1, 2, 3) for clique in combinations(SIZES, degree)]
QUESTIONS = [
    *("select", "select", "again", "again", "picks", "picks", "distances"),
    *("measure", "variances", "total", "prepare", "levels"),
]
SMALL = Fraction(1, 64)  # sigma = 1/8: the noise is 0 but for a chance of 3e-14 a cell
VARIANCES = [SMALL, Fraction(1, 60), Fraction(1, 55)]  # as quiet
Records = NDArray[np.int64]


class _Table:
    def __init__(self, records: Records) -> None:
        self._records = records

    def counts(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        names, found = list(SIZES), []
        for clique in cliques:
            shape = tuple(SIZES[column] for column in clique)
            flat = np.ravel_multi_index(
                tuple(self._records[:, names.index(column)] for column in clique), shape
            )
            found.append(np.bincount(flat, minlength=int(np.prod(shape))).astype(np.int64))
        return found


def _half(column: str) -> Level:
    """A level of half as many values."""
    return Level(f"{column}/half", column, tuple(value // 2 for value in range(SIZES[column])))


def _ask(oracle: MarginalOracle, cliques: Sequence[Clique], questions: Sequence[tuple[str, int]]) -> None:
    """Each question is drawn from its seed; `again` selects among the candidates of the selection before."""
    known = dict(zip(oracle.prepare(cliques), cliques, strict=True))
    asked: list[int] = []
    sizes: dict[Clique, int] = {}
    for kind, seed in questions:
        rng = np.random.default_rng(seed)
        some = [int(handle) for handle in rng.permutation(list(known))[: rng.integers(1, len(known) + 1)]]
        if kind == "measure":
            oracle.measure(some, SMALL)
        elif kind == "variances":
            oracle.measure(some, [VARIANCES[n % len(VARIANCES)] for n in rng.integers(0, 9, len(some))])
        elif kind == "levels":
            of = CLIQUES[rng.integers(len(CLIQUES))]
            levels = [_half(column) for column in of[: rng.integers(1, len(of) + 1)]]
            coarse = tuple(level.name for level in levels) + of[len(levels) :]
            oracle.prepare([coarse], levels)
            sizes[coarse] = int(
                np.prod([SIZES[c] for c in of[len(levels) :]] + [level.size for level in levels])
            )
            known[oracle.prepare([coarse])[0]] = coarse
        elif kind == "total":
            oracle.total(SMALL)
        elif kind == "prepare":
            clique = CLIQUES[rng.integers(len(CLIQUES))]
            known[oracle.prepare([clique])[0]] = clique
        else:
            asked = asked if asked and kind == "again" else some
            density, rows = rng.choice([0, 0.02, 0.3, 1]), rng.choice([1, 500, 10**5])
            answers = [rng.random(sizes.get(known[h]) or oracle.facts.cells(known[h])) for h in asked]
            answers = [rows * cells / cells.sum() * (rng.random(len(cells)) < density) for cells in answers]
            weights, penalties = [
                [Fraction(int(x)) for x in rng.integers(1, 9, len(asked))] for _ in range(2)
            ]
            if kind == "distances":
                if oracle.noisy_total is not None:
                    oracle.distances(asked, answers, SMALL)
            elif kind == "picks":
                pairs = [(p, q) for q in range(len(asked)) for p in range(q) if rng.random() < 0.2]
                oracle.select(
                    asked,
                    answers,
                    weights,
                    penalties,
                    Fraction(20),
                    int(rng.integers(1, len(asked) + 1)),
                    pairs,
                )
            else:
                oracle.select(asked, answers, weights, penalties, Fraction(20))


@st.composite
def _sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    span = draw(st.integers(1, 60))
    group = span + draw(st.integers(0, 150))
    return span, group, group + draw(st.sampled_from([0, 5, 60, 10**6]))


@given(
    sizes=_sizes(),
    cliques=st.lists(st.sampled_from(CLIQUES), min_size=1, max_size=8, unique=True),
    questions=st.lists(st.tuples(st.sampled_from(QUESTIONS), st.integers(0, 2**32)), min_size=1, max_size=7),
    split=st.sampled_from([3, 20, 1024]),
    few=st.sampled_from([0, 30, 8192]),
    sparse=st.sampled_from([1, 16]),
    cap=st.sampled_from([2000, 40_000_000]),
    contributors=st.integers(0, 1),
)
@example(
    sizes=(60, 10**6, 10**6),
    cliques=CLIQUES,
    questions=[("select", 0), ("measure", 1), ("again", 2), ("again", 3)],
    split=20,
    few=30,
    sparse=16,
    cap=40_000_000,
    contributors=0,
)  # the same groups, then narrower integers
@example(
    sizes=(60, 10**6, 10**6),
    cliques=CLIQUES,
    questions=[("total", 0), ("levels", 1), ("picks", 2), ("distances", 3), ("variances", 4), ("picks", 2)],
    split=20,
    few=30,
    sparse=16,
    cap=2000,
    contributors=1,
)  # whatever is asked at levels, several times or with several variances
@settings(max_examples=40, deadline=None)
def test_a_dry_run_of_the_same_table_counts_what_a_run_counts(
    sizes: tuple[int, int, int],
    cliques: list[Clique],
    questions: list[tuple[str, int]],
    split: int,
    few: int,
    sparse: int,
    cap: int,
    contributors: int,
) -> None:
    of, rng = StudyFacts(SIZES, "add-remove", 1, cap, b"s" * 32), np.random.default_rng(len(questions))
    records = [
        np.stack([rng.integers(0, size, 100) for size in SIZES.values()], 1) for _ in range(3 + contributors)
    ]
    shared: list[list[Parts]] = [[], [], []]
    wanted: list[list[int]] = []
    drawn: list[tuple[KeyStream, int]] = []

    def lead(wire: Wire, counts: Any) -> bytes:
        with ReplicatedOracle(wire, of, counts, AllowAll()) as oracle:
            _ask(oracle, cliques, questions)
            return oracle.state.transcript

    def take_part(wire: Wire) -> Any:
        counts = _Table(records[wire.me]).counts
        if wire.me == 1:
            return lead(wire, counts)
        return follow(wire, of, counts, AllowAll()) if wire.me < 3 else contribute(wire, of, counts)

    with small_groups(*sizes), pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (answers, "SPLIT", split),
            (bit_cache, "MAX_UNASKED", few),
            (bit_cache, "SPARSE", sparse),
        ):
            patch.setattr(module, name, value)
        patch.setattr(step, "latency_bytes_of", lambda delay_us: LATENCY_BYTES)  # what a plan reckons with
        _decide(patch, shared, wanted)
        dry_run = BACKEND.dry_run(PresumedRun(of, _Table(np.concatenate(records)).counts, 3, contributors))
        assert isinstance(dry_run, EngineDryRun)
        _ask(dry_run, cliques, questions)
        dry_run.close()
        _watch_streams(patch, drawn)
        network = MemoryNetwork(len(records), 3, session_id=of.session)
        transcript = network.run([take_part] * len(records))[1]
    assert transcript == dry_run._ideal.state.transcript
    for scores, *shares in zip(wanted, *shared, strict=True):
        keys = sum(share.own for share in shares)
        assert keys.tolist() == [score % (1 << 8 * keys.dtype.itemsize) for score in scores]
    assert len(set(drawn)) == len(drawn)  # no mask twice, also of bits that are shared again
    tally, traffic = dry_run.tally, [network.traffic(number) for number in range(len(records))]
    assert [each.rounds for each in traffic] == tally.clocks
    assert [each.bytes_sent for each in traffic] == tally.sent
    assert [each.messages_sent for each in traffic] == tally.messages


class _Quiet(RelayedOracle):
    """An oracle with variances so small that there is no noise, still several of them."""

    def __init__(self, oracle: MarginalOracle) -> None:
        super().__init__(oracle)
        self.selections, self.variances = list[tuple[int, int]](), set[int]()

    def select(self, *arguments: Any) -> list[int]:
        found = self.oracle.select(*arguments)
        self.selections.append((arguments[5], len(found)))
        return found

    def measure(
        self, handles: Sequence[int], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        asked = [sigma2] * len(handles) if isinstance(sigma2, Fraction) else list(sigma2)
        order = sorted(set(asked))
        self.variances.add(len(order))
        return self.oracle.measure(handles, [VARIANCES[order.index(of) % len(VARIANCES)] for of in asked])

    def distances(self, *arguments: Any) -> NDArray[np.int64]:
        raise AssertionError("nobody asks for distances here")

    def total(self, sigma2: Fraction) -> int:
        return self.oracle.total(SMALL)


@pytest.mark.parametrize("rounds", ["adaptive", 10])
def test_a_dry_run_of_mosaic_counts_what_its_run_counts(rounds: str | int) -> None:
    """The algorithm itself asks: bins, several picks on the same scores, a variance for each marginal."""
    rng = np.random.default_rng(3)
    sizes = {"a": 40, "b": 36, "c": 3, "d": 2}
    hidden = rng.random((3, 700, 1))
    records = [
        np.floor(np.where(rng.random((700, 4)) < 0.6, of, rng.random((700, 4))) ** 2 * list(sizes.values()))
        for of in hidden
    ]
    domain = Domain.from_spec({"file": sizes})
    config = MosaicConfig(rounds=rounds)
    plan = ALGORITHMS["mosaic"].plan(
        domain,
        Workload.from_spec({"degree": 2}, domain),
        config,
        epsilon=2.0,
        delta=1e-6,
        adjacency="add-remove",
    )
    of = StudyFacts(sizes, "add-remove", 1, 5000, b"s" * 32)

    def counter(table: NDArray[np.float64]) -> Any:
        return lambda cliques: [
            np.histogramdd(
                table[:, [list(sizes).index(name) for name in clique]],
                [np.arange(sizes[name] + 1) for name in clique],
            )[0]
            .ravel()
            .astype(np.int64)
            for clique in cliques
        ]

    def lead(wire: Wire) -> tuple[Any, bytes]:
        with ReplicatedOracle(wire, of, counter(records[1]), AllowAll()) as oracle:
            return ALGORITHMS["mosaic"].run(_Quiet(oracle), plan, unobserved), oracle.state.transcript

    def take_part(wire: Wire) -> Any:
        return lead(wire) if wire.me == 1 else follow(wire, of, counter(records[wire.me]), AllowAll())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "latency_bytes_of", lambda delay_us: LATENCY_BYTES)
        _decide(patch, [[], [], []], [], last=True)
        dry_run = BACKEND.dry_run(PresumedRun(of, counter(np.concatenate(records)), 3, 0))
        assert isinstance(dry_run, EngineDryRun)
        quiet = _Quiet(dry_run)
        expected = ALGORITHMS["mosaic"].run(quiet, plan, unobserved)
        dry_run.close()
        network = MemoryNetwork(3, 3, session_id=of.session)
        found, transcript = network.run([take_part] * 3)[1]
    assert transcript == dry_run._ideal.state.transcript and found.selections == expected.selections
    assert expected.levels and max(picks for picks, _ in quiet.selections) > 1 and max(quiet.variances) > 1
    traffic = [network.traffic(number) for number in range(3)]
    assert [each.rounds for each in traffic] == dry_run.tally.clocks
    assert [each.bytes_sent for each in traffic] == dry_run.tally.sent
    assert [each.messages_sent for each in traffic] == dry_run.tally.messages


def _decide(
    patch: pytest.MonkeyPatch, shared: list[list[Parts]], wanted: list[list[int]], last: bool = False
) -> None:
    """Note the scores of every selection, at the parties and in the clear; whichever wins, the first (or
    last) is selected."""
    weighted, largest = ReplicatedEngine.keys, ReplicatedEngine.largest

    def scored(engine: ReplicatedEngine, *rest: Any) -> Parts:
        keys = weighted(engine, *rest)
        if not isinstance(keys.own, Blank):  # of the run, not of its dry run
            shared[engine.wire.me].append(keys)
        return keys

    scores_of, winners = ideal.IdealOracle._scores, argmax._open_winners

    def in_the_clear(oracle: ideal.IdealOracle, *rest: Any) -> list[int]:
        scores = scores_of(oracle, *rest)
        if len(scores) > 1:
            wanted.append(scores)
        return scores

    patch.setattr(ReplicatedEngine, "keys", scored)

    def place(of: Any, count: int) -> Any:
        return 0 * of + (count - 1 if last else 0)

    patch.setattr(
        ReplicatedEngine, "largest", lambda engine, keys: place(largest(engine, keys), keys.shape[-1])
    )
    patch.setattr(argmax, "_open_winners", lambda *rest: place(winners(*rest), len(rest[2])))
    patch.setattr(ideal.IdealOracle, "_scores", in_the_clear)
    patch.setattr(ideal.IdealOracle, "_largest", lambda _, keys: place(0, len(keys)))


def _watch_streams(patch: pytest.MonkeyPatch, drawn: list[tuple[KeyStream, int]]) -> None:
    """Note which operation of which stream is drawn."""
    reader, draw = KeyStream.reader, KeyStream.draw

    def reading(stream: KeyStream, operation: int) -> Any:
        drawn.append((stream, operation))
        return reader(stream, operation)

    def drawing(stream: KeyStream, shape: Any, dtype: Any, operation: int) -> Any:
        drawn.append((stream, operation))
        return draw(stream, shape, dtype, operation)

    patch.setattr(KeyStream, "reader", reading)
    patch.setattr(KeyStream, "draw", drawing)
