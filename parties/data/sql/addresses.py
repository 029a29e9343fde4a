"""Which databases an address of a private file or a study may name. Standard library only: the study's reader asks."""

from __future__ import annotations

from typing import Final

FILES: Final = ("duckdb", "sqlite")
"""Schemes whose address is a file of this machine."""
POSTGRES: Final = ("postgres", "postgresql")
SERVERS: Final = ("mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery")
"""Schemes of what is reached through SQLAlchemy (`products.py`)."""
SCHEMES: Final = (*POSTGRES, *FILES, *SERVERS)
