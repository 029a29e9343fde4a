"""The coins of tests: alike in each run, different for each test and party, and the system's where they have
to be."""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any

import numpy as np

from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.launch import ports
from tests import coins


def everything() -> list[Any]:
    """What is drawn by this thread in each way, and by the three parties of a network."""

    def party(wire: Wire) -> tuple[bytes, bytes]:
        return wire.key((wire.me + 1) % 3), secrets.token_bytes(8)

    return [
        secrets.token_bytes(16),
        secrets.randbits(64),
        secrets.randbelow(10**9),
        np.random.default_rng().bytes(8),
        *MemoryNetwork(3).run([party] * 3),
    ]


def test_a_name_gives_the_same_coins_again_and_another_name_others() -> None:
    drawn = []
    for name in ("one", "one", "other"):
        with coins.fixed(name):
            drawn.append([everything(), everything()])
    assert drawn[0] == drawn[1]
    kinds = list(zip(*(each for pair in drawn[1:] for each in pair), strict=True))
    assert all(len(set(kind)) == 4 for kind in kinds), kinds


def test_after_the_block_the_coins_of_before_go_on() -> None:
    """Those of this test: the block inside draws from them no more and no less."""
    with coins.fixed("outer"):
        whole = [secrets.token_bytes(4) for _ in range(2)]
    with coins.fixed("outer"):
        first = secrets.token_bytes(4)
        with coins.fixed("inner"):
            assert secrets.token_bytes(4) not in whole
        assert [first, secrets.token_bytes(4)] == whole


def test_threads_of_nobody_forked_processes_and_ports_keep_the_systems_coins() -> None:
    """16 bytes twice alike by chance: 2^-128."""

    def elsewhere() -> bytes:
        drawn: list[bytes] = []
        thread = threading.Thread(target=lambda: drawn.append(secrets.token_bytes(16)), name="a pool's")
        thread.start()
        thread.join()
        return drawn[0]

    def forked() -> bytes:
        ours, childs = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(childs, secrets.token_bytes(16))
            os._exit(0)
        os.waitpid(child, 0)
        drawn = os.read(ours, 16)
        for end in (ours, childs):
            os.close(end)
        return drawn

    for draw in (elsewhere, forked, lambda: vars(ports)["secrets"].randbelow(1 << 128)):
        drawn = []
        for _ in range(2):
            with coins.fixed("one"):
                drawn.append(draw())
        assert drawn[0] != drawn[1]
