"""The compiled kernel of a proof: what NumPy computes, bit for bit, on every kind of processor; and NumPy
where there is none."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products import basis, grid
from mpc_protocols.backends.replicated.proof.bit_products.basis import challenge, plus_times
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.grid import Grid
from mpc_protocols.backends.replicated.proof.field import multiply, read
from mpc_protocols.backends.replicated.proof.kernel.library import WORTH_COMPILING, Kernel, kernel
from mpc_protocols.engine.prg import KeyStream
from tests.mpc_protocols.backends.replicated.proof.cheating import outcomes, proved

SHAPES = [(1, 1), (1, 2), (1, 8), (1, 33), (3, 31), (2, 64), (129, 1)]


@pytest.fixture(scope="module")
def compiled() -> Kernel:
    llvm = pytest.importorskip("llvmlite.binding", reason="make kernel")
    if not llvm.get_host_cpu_features().get("pclmul"):
        pytest.skip("This processor has no carry-less products.")
    found = kernel(WORTH_COMPILING)
    assert found is not None
    return found


@pytest.fixture(scope="module", params=[128, 256, 512])
def width(request: pytest.FixtureRequest, compiled: Kernel) -> Kernel:
    """The kernel for processors whose carry-less products are so wide."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    lacking = [
        name
        for name, least in (("vpclmulqdq", 256), ("avx2", 256), ("avx512f", 512))
        if request.param >= least and not features.get(name)
    ]
    if lacking:
        pytest.skip(f"This processor has no {lacking[0]}.")
    return Kernel(
        {"pclmul": True, "vpclmulqdq": request.param > 128, "avx2": True, "avx512f": request.param > 256}
    )


def use(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    """found: the kernel that any call gets, or None."""
    for module in (grid, basis):
        monkeypatch.setattr(module, "kernel", lambda words: found)


def rows_of(kind: str, entries: int, words: int, rng: np.random.Generator) -> list[Any]:
    """Two batches of 64 rows; `strided`: parts of longer rows."""
    if kind == "ones":
        return list(np.full((2, 64, entries, words), 2**64 - 1, np.uint64))
    longer = rng.integers(0, 2**64 - 1, (2, 64, entries, words + 3), dtype=np.uint64, endpoint=True)
    part = longer[..., 2 : words + 2]
    return list(part if kind == "strided" else np.ascontiguousarray(part))


@pytest.mark.parametrize("kind", ["random", "strided", "ones"])
def test_products_and_rows_times_an_element_are_those_of_numpy(
    kind: str, width: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    point = challenge(KeyStream(bytes(16)).reader(2), 6)
    for place, (entries, words) in enumerate(SHAPES):
        x, y = rows_of(kind, entries, words, rng)
        found = []
        for used in (width, None):
            use(monkeypatch, used)
            values = np.full((729, 16), 5, np.uint8)
            Grid(6, entries, words).add_products(x, y, Functional(bytes(32), place, words), values)
            found.append((values, plus_times(x, point.times_factor, y)))
        for fast, slow in zip(*found, strict=True):
            assert (fast == slow).all(), (entries, words)


def test_a_hash_of_the_standard(width: Kernel) -> None:
    """NIST SP 800-38D's GHASH, with the values of AES-GCM's test case 2: a block of ciphertext and the block
    of lengths."""
    point = bytes.fromhex("66e94bd4ef8a2c3b884cfa59ca342b2e")
    block = bytes.fromhex("0388dace60b6a392f328c2b971b2fe78")
    lengths = bytes.fromhex("00000000000000000000000000000080")
    x, y = np.zeros((64, 1, 2), np.uint64), np.full((64, 1, 2), 2**64 - 1, np.uint64)
    x[0] = np.frombuffer(block, np.uint64)
    values = np.zeros((729, 16), np.uint8)
    width.add_products(x, y, width.powers(point, 2), values)
    hashed = read(values[0].tobytes()) ^ multiply(read(lengths), read(point))
    assert hashed == read(bytes.fromhex("f38cbb1ad69223dcc3457ae5b6b0f885"))


def test_parties_with_and_without_it_prove_to_one_another(
    compiled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is computed next, by any of the three, is computed by the other of the two."""
    number = count()
    for module in (grid, basis):
        monkeypatch.setattr(module, "kernel", lambda words: compiled if next(number) % 2 else None)
    assert outcomes(proved([(70, 1), (3, 4), (130, 1)], 6)) == ["proved"] * 3
    assert next(number) > 20


@pytest.mark.parametrize("reason", ["no such instruction", "other results"])
def test_numpy_computes_where_there_is_no_kernel(
    reason: str, compiled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llvmlite.binding as llvm

    if reason == "no such instruction":
        monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"neon": True})
    else:
        times = Kernel.add_times
        monkeypatch.setattr(
            Kernel, "add_times", lambda self, rows, matrix, into: times(self, rows, matrix.T, into)
        )
    assert kernel.compiled() is None
