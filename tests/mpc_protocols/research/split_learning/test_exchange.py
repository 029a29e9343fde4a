"""Tensors between two owners: exact sizes, finite numbers, a schedule that nobody chose alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import run_parties
from mpc_protocols.research.split_learning.exchange import Exchange
from mpc_protocols.wire import Wire
from tests.trio import Trio

CUT = 8


def exchange(wire: Wire) -> Exchange:
    return Exchange(wire.fork("train"), 1 - wire.me, ("north", "south")[1 - wire.me], CUT)


def against(raw: Callable[[Wire], object]) -> Callable[[Wire], object]:
    """A party that says what it likes on the same stream."""
    return lambda wire: raw(wire.fork("train"))


def test_a_tensor_arrives_as_it_was_sent() -> None:
    tensor = np.random.default_rng(1).normal(size=(5, CUT)).astype(np.float32)

    def north(wire: Wire) -> Any:
        link = exchange(wire)
        link.send(tensor)
        return link.receive(5), wire.traffic()

    def south(wire: Wire) -> Any:
        link = exchange(wire)
        got = link.receive(5)
        link.send(got * 2)
        return got, wire.traffic()

    (doubled, first), (got, second) = run_parties([north, south], 2)
    assert np.array_equal(got, tensor) and np.array_equal(doubled, tensor * 2)
    assert first.bytes_sent == second.bytes_sent == 4 * CUT * 5 and first.rounds == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_ends_the_run(bad: float) -> None:
    tensor = np.zeros((3, CUT), "<f4")
    tensor[1, 2] = bad
    with pytest.raises(
        ProtocolAborted, match="Party south sent a tensor with a value that is no finite number"
    ) as raised:
        run_parties(
            [lambda wire: exchange(wire).receive(3), against(lambda wire: wire.send(0, tensor.tobytes()))], 2
        )
    assert raised.value.exit_code == 40


@pytest.mark.parametrize("size", [0, 4 * CUT * 3 - 4, 4 * CUT * 3 + 1])
def test_a_tensor_of_another_size_ends_the_run(size: int) -> None:
    with pytest.raises(ProtocolAborted) as raised:
        run_parties(
            [lambda wire: exchange(wire).receive(3), against(lambda wire: wire.send(0, bytes(size)))], 2
        )
    assert raised.value.exit_code == 40


def test_a_tensor_of_another_width_is_not_sent() -> None:
    with pytest.raises(ValueError, match="8 columns"):
        run_parties(
            [lambda wire: exchange(wire).send(np.zeros((3, CUT + 1), np.float32)), lambda wire: None], 2
        )


def test_both_owners_make_the_seed() -> None:
    first = run_parties(
        [lambda wire: exchange(wire).common_seed(), lambda wire: exchange(wire).common_seed()], 2
    )
    second = run_parties(
        [lambda wire: exchange(wire).common_seed(), lambda wire: exchange(wire).common_seed()], 2
    )
    assert first[0] == first[1] != second[0] and len(first[0]) == 32


def test_who_opens_another_seed_is_named() -> None:
    def south(wire: Wire) -> None:
        stream = wire.fork("train")
        stream.send(0, hashlib.sha256(b"of something else").digest())
        stream.receive(0, 32)
        stream.send(0, bytes(32))

    with pytest.raises(ProtocolAborted, match="Party south opened another seed"):
        run_parties([lambda wire: exchange(wire).common_seed(), south], 2)


@pytest.mark.parametrize(("told", "works"), [(0, True), ((1 << 31) - 1, True), (1 << 31, False)])
def test_a_list_has_a_possible_length(told: int, works: bool) -> None:
    parties = [
        lambda wire: exchange(wire).announce(5),
        against(lambda wire: wire.send(0, told.to_bytes(8, "little"))),
    ]
    if works:
        assert run_parties(parties, 2)[0] == told
        return
    with pytest.raises(ProtocolAborted, match="impossible length"):
        run_parties(parties, 2)


def training(wire: Wire, number: int) -> Any:
    """A party's part of a training whose coins are known: two owners and a third party that idles."""
    from runner.review.audit.research import trainings
    from synth.research.florist.algorithm import ALGORITHM
    from synth.research.florist.config import FloristConfig

    if wire.me > 1:
        return None
    people = trainings.People.invented(600, 3)
    config = FloristConfig(
        label="label",
        label_rate=0.25,
        cut=16,
        batch=100,
        epochs=4,
        rate=0.01,
        labels="majority",
        features="sampling",
    )
    half = trainings.owner_part(wire, people, ALGORITHM, config, f"sockets {number}").half
    return dict(half.files)


def test_over_sockets_as_in_memory(trio: Trio) -> None:
    """More than 20 steps over TLS: the halves are the same, byte for byte in every array."""
    pytest.importorskip("torch")
    import io

    def arrays(files: dict[str, bytes]) -> dict[str, bytes]:
        name = next(file for file in files if file.endswith(".npz"))
        with np.load(io.BytesIO(files[name]), allow_pickle=False) as found:
            return {each: found[each].tobytes() for each in found.files}

    over_sockets = trio.run(training, 7)
    in_memory = run_parties([lambda wire: training(wire, 7)] * 2, 2, session_id=None)
    assert over_sockets[2] is None
    for sockets, memory in zip(over_sockets[:2], in_memory, strict=True):
        assert arrays(sockets) == arrays(memory)
