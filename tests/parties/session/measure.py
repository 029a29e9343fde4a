"""Measure the session: `python -m tests.parties.session.measure` prints latency and throughput with and
without TLS."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.parties.session.jobs import latency, transfer
from tests.trio import Trio


def main() -> None:
    """Print a table."""
    for tls in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            trio = Trio(Path(directory), insecure_loopback=not tls)
            label = "TLS 1.3" if tls else "plain"
            begin = time.perf_counter()
            trio.run(latency, 1, 1)
            print(f"{label}: first job after {time.perf_counter() - begin:.2f} s")
            rounds = [max(trio.run(latency, 500, 100)) * 1e3 for _ in range(5)]
            print(f"{label}: round of 100 bytes {statistics.median(rounds):.3f} ms (best {min(rounds):.3f})")
            for size, ring in ((64, False), (64, True), (8, True), (1, True)):
                runs = [trio.run(transfer, size << 20, ring) for _ in range(5)]
                walls = sorted(max(r[0] for r in run) for run in runs)
                cpu = statistics.median(max(r[1] for r in run) for run in runs)
                moved = size * (3 if ring else 1)
                print(
                    f"{label}: {size} MiB {'round the ring' if ring else 'one way'}: {walls[2]:.3f} s (best {walls[0]:.3f}), "
                    f"{moved / walls[0]:.0f} MiB/s best in all, CPU of the busiest party {cpu:.3f} s"
                )
            trio.close()


if __name__ == "__main__":
    main()
