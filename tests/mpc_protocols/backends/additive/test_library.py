"""CrypTen is cut off: it opens no socket, draws from no Twister, reads and writes no pickle, and asks only
what is dealt."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.adapter.library import Library, acting, load
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from tests.mpc_protocols.backends.additive.test_oracle import serve
from tests.worlds.questions import work
from tests.worlds.tables import PARTS, counter, facts


def forbidden(*arguments: object, **options: object) -> NoReturn:
    raise AssertionError("This must not be called.")


def test_a_run_opens_no_socket_and_draws_from_no_generator(
    crypten: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of question, with whatever could reach outside or draw patched to fail."""
    torch = crypten.torch
    for place, names in (
        (torch.distributed, ("init_process_group", "new_group", "broadcast", "isend", "irecv", "all_reduce")),
        (torch, ("Generator", "randint", "rand", "randn", "randperm", "manual_seed", "save", "load")),
        (socket, ("socket", "create_connection")),
        (pickle, ("loads", "dumps", "Unpickler", "Pickler")),
    ):
        for name in names:
            monkeypatch.setattr(place, name, forbidden)
    before = torch.default_generator.get_state()
    of, data = facts(), [counter(part) for part in PARTS[:3]]
    expected = work(IdealOracle(of, counter(np.concatenate(PARTS[:3])), AllowAll()))
    assert serve(work, data) == expected
    assert torch.equal(torch.default_generator.get_state(), before)


def test_what_nothing_is_dealt_for_is_refused(crypten: Library) -> None:
    """Squares, truncations and matrices; objects, gatherings and sizes of others; shares that CrypTen would
    draw itself."""
    wire = MemoryNetwork(3, 3).wire(0)
    operations = CrypTenOperations(Link(wire))
    communicator, provider = operations._communicator, operations._provider
    size = crypten.torch.Size([2])
    refused: list[Callable[[], Any]] = [
        lambda: provider.square(size),
        lambda: provider.wrap_rng(size),
        lambda: provider.generate_additive_triple(size, size, "matmul"),
        lambda: communicator.broadcast_obj({}, 0),
        lambda: communicator.gather(None, 0),
        lambda: communicator.reduce(None, 0),
        lambda: communicator.recv(None, 1),
        lambda: crypten.arithmetic(crypten.torch.zeros(2).long(), precision=0),
        lambda: crypten.binary(crypten.torch.zeros(2).long()),
    ]
    with acting(communicator, provider):
        for call in refused:
            with pytest.raises(NotImplementedError):
                call()
    assert wire.traffic().bytes_sent == 0


def test_a_thread_that_acts_for_nobody_reaches_nobody(crypten: Library) -> None:
    share = crypten.binary.from_shares(crypten.torch.zeros(2).long())
    with pytest.raises(LookupError, match="acts for no party"):
        _ = share & share


def test_it_is_loaded_once(crypten: Library) -> None:
    assert load() is crypten and crypten.torch.get_num_threads() == 1
