"""Sums of streams and transpositions by compiled code: the words are NumPy's, to the bit; and NumPy's where there is
none."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.backends.pair.transfers import bit_matrix, ot_extension
from mpc_protocols.backends.pair.transfers.kernel import library
from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS, WIDTH
from mpc_protocols.backends.pair.transfers.kernel.library import WORTH_COMPILING, Kernel, kernel
from mpc_protocols.in_memory.memory_wire import run_parties
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Words, extended
from tests.mpc_protocols.backends.pair.test_ot_extension import Made, check, take
from tests.worlds.words import random_words


@pytest.fixture(scope="module")
def compiled() -> Kernel:
    pytest.importorskip("llvmlite", reason="make kernel")
    made = kernel(WORTH_COMPILING)
    assert made is not None
    return made


def answering(monkeypatch: pytest.MonkeyPatch, made: Kernel | None) -> list[int]:
    """The sizes for which a kernel is asked from now on; the answer is always this one."""
    asked: list[int] = []

    def answer(size: int) -> Kernel | None:
        asked.append(size)
        return made

    for module in (bit_matrix, ot_extension):
        monkeypatch.setattr(module, "kernel", answer)
    return asked


@given(st.integers(1, 3), st.sampled_from([1, 7, 8, 9, 63, 200]))
def test_streams_are_summed_as_by_numpy(compiled: Kernel, blocks: int, words: int) -> None:
    """Rows lie as the extension has them: every second word of one."""
    streams = random_words(blocks, 1 << LEVELS, words + WIDTH)[..., :words]
    both = []
    for made in (compiled, None):
        rows = np.moveaxis(np.zeros((blocks, LEVELS, words, 2), np.uint64), 3, 0)[1]
        with pytest.MonkeyPatch.context() as patch:
            answering(patch, made)
            both.append((ot_extension._fold(streams, rows), rows))
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(1, 1 << LEVELS, WIDTH - 1), (1, 1 << (LEVELS + 1), WIDTH)])
def test_what_it_has_no_code_for_is_numpys(compiled: Kernel, shape: tuple[int, int, int]) -> None:
    assert not compiled.folds(random_words(*shape))


@given(st.integers(1, 70))
def test_a_matrix_is_transposed_as_by_numpy(compiled: Kernel, words: int) -> None:
    matrix = random_words(bit_matrix.LANES, words)
    turned = [matrix.copy(), matrix.copy()]
    for one, made in zip(turned, (compiled, None), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            answering(patch, made)
            bit_matrix.transpose(one)
    np.testing.assert_array_equal(turned[0], turned[1])
    assert compiled.transpose(matrix) == words // WIDTH * WIDTH


def test_a_party_with_it_and_one_without_it_have_the_same_transfers(
    compiled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = threading.local()
    for module in (bit_matrix, ot_extension):
        monkeypatch.setattr(module, "kernel", lambda size: mine.kernel)

    def party(wire: Wire) -> Made:
        mine.kernel = compiled if wire.me == 0 else None
        return take(wire, 5000)

    check(run_parties([party] * 2, 2))


def test_it_is_asked_for_with_all_that_an_extension_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, None)

    def party(wire: Wire) -> None:
        _, choosing, offering = extended(wire)
        for words in (3, 5):
            for _ in choosing.extend(words):
                pass
            for _ in offering.extend(words):
                pass

    run_parties([party] * 2, 2)
    assert sorted(size for size in asked if size) == [3, 3, 3, 3, 8, 8, 8, 8]


@pytest.mark.parametrize("wrong", ["fold", "transpose"])
def test_code_that_computes_something_else_is_not_used(
    compiled: Kernel, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(compiled, wrong)

    def off(*arrays: Words) -> object:
        made = right(*arrays)
        arrays[-1][-1, 0] ^= np.uint64(1)
        return made

    assert library._agrees(compiled)
    monkeypatch.setattr(Kernel, wrong, lambda self, *arrays: off(*arrays))
    assert not library._agrees(Kernel())
