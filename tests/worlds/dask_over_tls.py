"""A Dask cluster on this machine whose processes speak TLS, and counting by it. Needs Dask (`make engines`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

from parties.data.tallies.places import DaskCluster


@contextmanager
def dask_over_tls(folder: Path, workers: int) -> Iterator[tuple[DaskCluster, Any]]:
    """(where it is, with the table `part*.parquet` of the folder; the cluster). workers: processes of one
    thread each."""
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    ca = trustme.CA()
    own = ca.issue_cert("localhost")
    ca.cert_pem.write_to_path(folder / "ca.crt")
    own.cert_chain_pems[0].write_to_path(folder / "own.crt")
    own.private_key_pem.write_to_path(folder / "own.key")
    files = {
        f"tls_{role}_{what}": str(folder / f"own.{ending}")
        for role in ("scheduler", "worker", "client")
        for what, ending in (("cert", "crt"), ("key", "key"))
    }
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            protocol="tls://",
            security=Security(tls_ca_file=str(folder / "ca.crt"), require_encryption=True, **files),
            dashboard_address=None,
            env={"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"},
        ) as cluster,
    ):
        yield (
            DaskCluster(
                cluster.scheduler_address,
                folder / "ca.crt",
                folder / "own.crt",
                folder / "own.key",
                str(folder / "part*.parquet"),
            ),
            cluster,
        )
