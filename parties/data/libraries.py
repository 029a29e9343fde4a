"""What reads and counts tables, each loaded when it is first used (`mpc_protocols.process.later`): Arrow starts
a thread, pandas takes longer to load than all else that a party needs, SQLAlchemy is an extra, and who only reads a
study needs none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import sqlalchemy as sa
    from pyarrow import csv, ipc, parquet
    from sqlalchemy.dialects import mssql, mysql, postgresql
else:
    pa, pc, csv, ipc, parquet = map(
        Later, ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.ipc", "pyarrow.parquet")
    )
    duckdb, pd, sa = map(Later, ("duckdb", "pandas", "sqlalchemy"))
    mssql, mysql, postgresql = map(
        Later, ("sqlalchemy.dialects.mssql", "sqlalchemy.dialects.mysql", "sqlalchemy.dialects.postgresql")
    )

__all__ = ["csv", "duckdb", "ipc", "mssql", "mysql", "pa", "parquet", "pc", "pd", "postgresql", "sa"]
