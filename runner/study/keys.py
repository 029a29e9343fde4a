"""The keys of each table of a study file, for its reader and for its JSON Schema (`schema.py`). Standard library only.

Algorithms and backends declare their own tables (`mpc_protocols/options.py`), kinds of column theirs (`synth/domain/kinds.py`).
"""

from __future__ import annotations

STUDY = ("name", "algorithm", "backend", "partition", "security", "research")
MAX_EPSILON = 1e6
"""Far above what protects anybody; the accountant can still count with it."""
PRIVACY = ("epsilon", "delta", "adjacency", "max_rows", "unit", "accept_delta")
UNIT = ("id", "max_rows", "max_custodians")
SESSION = ("connect_s", "silence_s", "tls", "bad_input", "answer_s", "deadline_factor", "deadline_floor_s")
PARTY = ("name", "address", "data", "compute", "fingerprint", "columns")
DATA = ("url", "table", "push_down")
TALLIES = ("tallies", "parts", "partitioned_by")
DASK = ("dask", "ca", "cert", "key", "url", "partitioned_by")
PARTITIONED_BY = ("id",)
CLOSE = ("at", "bundles")
WAVE = ("run", "receivers")
CONSTRAINT = ("if", "then", "order")
CONDITION = ("missing", "at_least", "below")
