"""CrypTen as it ships, for comparison: sum |x| over gloo with its own third party. Not a test: figures.

    python -m tests.acceptance.crypten_own [--cells 100000] [--repeats 7]

Three processes on this machine: two parties and CrypTen's trusted third party, its transport, provider and
random numbers, which protect nothing (`docs/design/additive.md` 4). Prints the medians of CPU seconds of each
party in whole, and bytes a cell and rounds by CrypTen's own counters. The same sums by `backend =
"additive"`:

    cosynth bench scores --backend additive --parties 3 --cells 100000 --bits 18 --tls on --no-baseline
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROLES = ("party 0", "party 1", "third party")


def main() -> int:
    """Start the three, or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        party(int(os.environ["RANK"]), arguments.cells, arguments.repeats)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        plain = {"WORLD_SIZE": "2", "RENDEZVOUS": f"file://{directory}/meet", "DISTRIBUTED_BACKEND": "gloo"}
        command = [sys.executable, "-m", "tests.acceptance.crypten_own", *sys.argv[1:]]
        running = [
            subprocess.Popen(
                command, env={**os.environ, **plain, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
            )
            for rank in range(len(ROLES))
        ]
        said = [process.communicate()[0] for process in running]
    for role, line in zip(ROLES, said, strict=True):
        print(role, line.strip())
    return max(process.returncode for process in running)


def party(rank: int, cells: int, repeats: int) -> None:
    """One process."""
    moved = importlib.import_module("torch.onnx._internal.torchscript_exporter.registration")
    sys.modules.setdefault("torch.onnx._internal.registration", moved)
    torch, crypten = importlib.import_module("torch"), importlib.import_module("crypten")
    torch.set_num_threads(1)
    crypten.config.cfg.mpc.provider = "TTP"
    crypten.config.cfg.communicator.verbose = True
    begun = time.process_time()
    if rank == 2:
        crypten.mpc.provider.TTPServer()
        print(json.dumps({"cpu_s_of_all": round(time.process_time() - begun, 3)}))
        return
    crypten.init()
    crypten.config.cfg.encoder.precision_bits = 0
    x = torch.arange(cells) % 1001 - 500
    secret = crypten.cryptensor(x, precision=0)
    spent, sent, rounds = [], 0, 0
    for _ in range(repeats + 1):
        crypten.reset_communication_stats()
        begun = time.process_time()
        total = secret.abs().sum()
        spent.append(time.process_time() - begun)
        of_run = crypten.communicator.get().get_communication_stats()
        sent, rounds = of_run["bytes"] / 2 / cells, of_run["rounds"]
        assert int(total.get_plain_text()) == int(x.abs().sum())
    crypten.uninit()
    print(
        json.dumps(
            {"cpu_s": round(statistics.median(spent[1:]), 4), "bytes_a_cell": round(sent), "rounds": rounds}
        )
    )


if __name__ == "__main__":
    sys.exit(main())
