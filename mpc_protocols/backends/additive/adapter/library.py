"""CrypTen, cut off from everything but our links: the one file that imports it, and PyTorch.

CrypTen as it ships opens sockets of its own (PyTorch's gloo, without TLS), sends sizes and requests as
pickles, and draws shares and triples from Mersenne Twisters (`docs/design/additive.md` 4). Three functions
are replaced, for good and in this process:

    communicator.get                  who the parties are and how they open values: `communicator`, of the calling thread
    mpc.get_default_provider          where correlations come from: `provider`, of the calling thread
    generate_random_ring_element,     what every sharing of CrypTen's own draws from: refused. Shares are made by our code and
    generate_kbit_random_tensor       masks drawn by `provider`, from AES-CTR

A thread acts for the party that it names (`acting`), so that several may live in one process.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, NoReturn

from mpc_protocols.errors import StudyInvalid


class Library(NamedTuple):
    """What the operations use of it."""

    torch: Any
    beaver: Any
    arithmetic: Any
    binary: Any


_acting = threading.local()
_loading = threading.Lock()


def load() -> Library:
    """CrypTen with our functions in place; 2 seconds the first time. Raises `StudyInvalid` if it is not
    installed."""
    with _loading:
        return _load()


@contextmanager
def acting(communicator: Any, provider: Any) -> Iterator[None]:
    """Let CrypTen, in this thread and block, speak through this communicator and ask this provider."""
    before = getattr(_acting, "party", None)
    _acting.party = communicator, provider
    try:
        yield
    finally:
        _acting.party = before


@cache
def _load() -> Library:
    try:
        torch = importlib.import_module("torch")
        # CrypTen 0.4.1 asks for a module that PyTorch has moved
        moved = importlib.import_module("torch.onnx._internal.torchscript_exporter.registration")
        sys.modules.setdefault("torch.onnx._internal.registration", moved)
        crypten = importlib.import_module("crypten")
    except ImportError:
        raise StudyInvalid(
            'backend = "additive" needs PyTorch and CrypTen, which cannot be loaded here; run `make crypten` at every party.'
        ) from None
    torch.set_num_threads(1)  # parties share machines in tests, and kernels here are short
    primitives = crypten.mpc.primitives
    crypten.communicator.get = lambda: _party()[0]
    crypten.mpc.get_default_provider = lambda: _party()[1]
    for module in (primitives.arithmetic, primitives.binary, primitives.beaver):
        for name in ("generate_random_ring_element", "generate_kbit_random_tensor"):
            if hasattr(module, name):
                setattr(module, name, _no_draw)
    for streams in crypten.generators.values():
        streams[torch.device("cpu")] = None  # nothing to draw from
    return Library(torch, primitives.beaver, primitives.ArithmeticSharedTensor, primitives.BinarySharedTensor)


def _party() -> tuple[Any, Any]:
    party: tuple[Any, Any] | None = getattr(_acting, "party", None)
    if party is None:
        raise LookupError("CrypTen was called by a thread that acts for no party.")
    return party


def _no_draw(*sizes: object, **options: object) -> NoReturn:
    raise NotImplementedError(
        "CrypTen must not draw shares of its own: only AES-CTR streams may mask anything."
    )
