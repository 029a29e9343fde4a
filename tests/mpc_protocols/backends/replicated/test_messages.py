"""Every message between parties is uniform, whatever the secrets are; inputs and maskings show nothing of the
counts.

Chi-square of all bytes that travel on a link in one protocol, with secrets that are all zero, all ones, or a
single one. False alarm: 1e-9 per link; about 200 links are tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mpc_protocols.backends.replicated.gates import TrioGates, argmax
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
from mpc_protocols.backends.replicated.sharing import boolean, conversion, ring, sign
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.noise import sampling
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.public.steps import EndStep, PrepareStep
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.trio_run import deal_ring, distances, run_trio


def assert_uniform(frames: list[Frame], opened: int = 0) -> None:
    """All bytes of each link, but for the last `opened` frames of each link, which reveal a result."""
    links: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for frame in frames:
        links[frame.sender, frame.receiver].append(frame.payload)
    for link, payloads in links.items():
        content = np.frombuffer(b"".join(payloads[: len(payloads) - opened]), np.uint8)
        if len(content) < 2000:
            continue
        assert stats.chisquare(np.bincount(content, minlength=256)).pvalue > 1e-9, link
        assert abs(np.unpackbits(content).mean() - 0.5) < 6.2 / (2 * (8 * len(content)) ** 0.5), link


SECRETS = {
    "zeros": lambda n: np.zeros(n, np.int64),
    "minus one": lambda n: np.full(n, -1),
    "one": lambda n: np.full(n, 1),
    "largest": lambda n: np.full(n, 2**20 - 1),
}


def degenerate(values: np.ndarray[Any, Any], holder: int) -> list[RingShare]:
    """A sharing without any randomness of its own: the value in one component, zeros in the others."""
    components = [values if i == holder else np.zeros_like(values) for i in range(3)]
    return [RingShare(components[i], components[(i + 1) % 3]) for i in range(3)]


PROTOCOLS: dict[str, Callable[[Trio, RingShare], object]] = {
    "share_own": lambda trio, x: ring.share_own(trio, x.own),
    "share_from": lambda trio, x: ring.share_from(trio, 1, x.own if trio.me == 1 else None, x.shape, x.dtype),
    "multiply": lambda trio, x: ring.multiply(trio, x, x),
    "signs": lambda trio, x: sign.signs(trio, x, 22, "ripple"),
    "signs by tree": lambda trio, x: sign.signs(trio, x, 22, "tree"),
    "absolute sums": lambda trio, x: distances(trio, x, np.ones(len(x), np.int64), 22, "ripple"),
    "absolute sums by tree": lambda trio, x: distances(trio, x, np.ones(len(x), np.int64), 23, "tree"),
    "bits": lambda trio, x: boolean.and_bits(
        trio,
        BitShare(x.own.view(np.uint64), x.next.view(np.uint64)),
        BitShare(x.own.view(np.uint64), x.next.view(np.uint64)),
    ),
    "lift": lambda trio, x: conversion.lift(trio, x),
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("holder", [0, 1, 2])
def test_messages_are_uniform(protocol: str, secret: str, holder: int) -> None:
    frames: list[Frame] = []
    shares = degenerate(SECRETS[secret](6400).astype(np.uint32), holder)
    run_trio(lambda trio: PROTOCOLS[protocol](trio, shares[trio.me]), tap=frames.append)
    assert frames
    assert_uniform(frames)


def test_noise_and_arg_max_messages_are_uniform() -> None:
    sampler = gaussian.sampler(Fraction(1))
    frames: list[Frame] = []
    for noise in (
        lambda trio, source: sampling.gaussian_noise(TrioGates(trio), source, sampler, 500, np.uint32),
        lambda trio, source: sampling.gumbel_noise(TrioGates(trio), source, 500, 3, np.uint32),
    ):
        run_trio(lambda trio, noise=noise: noise(trio, TrioGates(trio).release_bits(b"r")), tap=frames.append)  # type: ignore[misc]
    assert_uniform(frames)
    frames.clear()
    keys = degenerate(np.zeros(128, np.uint32), 0)
    run_trio(lambda trio: argmax(TrioGates(trio), keys[trio.me]), tap=frames.append)
    assert_uniform(
        [frame for frame in frames if frame.receiver == (frame.sender - 1) % 3 or frame.clock == 1]
    )


def test_the_uniformity_test_notices_a_plain_count() -> None:
    frames: list[Frame] = []
    run_trio(lambda trio: trio.send(trio.left, np.full(5000, 3, np.uint32)), tap=frames.append)
    with pytest.raises(AssertionError):
        assert_uniform(frames)
    rare = [Frame("", 0, 1, 1, bytes(np.random.default_rng(0).integers(0, 250, 20_000, dtype=np.uint8)))]
    with pytest.raises(AssertionError):
        assert_uniform(rare)


def test_a_run_shows_no_count_on_any_link() -> None:
    """The oracle with contributors, all counts zero but one cell of 999: shared, then measured; each link is
    uniform."""
    facts = StudyFacts({"a": 50, "b": 60}, "add-remove", 1, 10_000, b"s" * 32)
    frames: list[Frame] = []

    def counts(cliques: Any) -> list[Any]:
        assert cliques == [("a", "b")] or cliques == (("a", "b"),)
        cells = np.zeros(3000, np.int64)
        cells[7] = 999
        return [cells]

    def party(wire: Any) -> None:
        if wire.me == 1:
            with ReplicatedOracle(wire, facts, counts, Recorder()) as oracle:
                oracle.measure(oracle.prepare([("a", "b")]), Fraction(1, 4))
        elif wire.me < 3:
            follow(wire, facts, counts, Recorder())
        else:
            contribute(wire, facts, counts)

    MemoryNetwork(6, session_id=facts.session, tap=frames.append).run([party] * 6)
    public = {PrepareStep((("a", "b"),)).to_bytes(), EndStep().to_bytes()}
    secret = [
        f
        for f in frames
        if f.payload not in public and not f.payload.startswith(b"{") and len(f.payload) != 32
    ]
    assert {(f.sender, f.receiver) for f in secret if f.sender > 2} == {
        (3, 0),
        (3, 1),
        (4, 1),
        (4, 2),
        (5, 2),
        (5, 0),
    }
    assert sorted(len(f.payload) for f in secret if f.sender > 2) == [16, 16, 16, 12_000, 12_000, 12_000]
    assert_uniform(secret)
    plain = np.zeros(3000, "<u4")
    plain[7] = 999
    assert not any(plain.tobytes()[:40] in f.payload for f in frames)


def test_two_runs_share_no_message() -> None:
    """The same secrets again, with the same pairwise keys: no eight bytes of masked traffic occur twice."""
    shares = deal_ring(np.zeros(640, np.uint32), np.random.default_rng(0))
    first = MemoryNetwork(3)
    seen: list[set[bytes]] = []
    for _ in range(2):
        frames: list[Frame] = []
        network = MemoryNetwork(3, tap=frames.append)
        network.share_keys(first)
        run_trio(lambda trio: distances(trio, shares[trio.me], np.array([640]), 9), network=network)
        content = b"".join(frame.payload for frame in frames)
        seen.append({content[i : i + 8] for i in range(0, len(content), 4)})
    assert not seen[0] & seen[1]
