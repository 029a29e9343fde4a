"""Values as the bytes that everybody makes of them: what is hashed, compared and signed."""

from __future__ import annotations

import json


def canonical(value: object) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8, shortest decimal form of floats; NaN and infinity are
    refused."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")
