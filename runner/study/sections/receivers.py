"""The public keys of the computing parties, to which contributors seal their bundles, as the study's file lists them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path

from mpc_protocols.backends.bundles.sealing import SEALING_BYTES, SIGNING_BYTES, ReceiverKey
from runner.study.sections.public_files import read_public

RECEIVERS = 3


def read_receivers(file: Path) -> dict[str, ReceiverKey]:
    """The computing parties' public keys. Raises OSError, ValueError with the reason."""
    form = json.loads(read_public(file).decode("utf-8"))
    if not isinstance(form, dict):
        raise ValueError("it must be an object with a key for each computing party")
    found = {}
    for name, key in form.items():
        if not isinstance(key, dict) or key.keys() != {"seal", "sign"}:
            raise ValueError(f'the entry of {name!r:.40} must have "seal" and "sign"')
        found[name] = ReceiverKey(
            key_bytes(key["seal"], SEALING_BYTES, name), key_bytes(key["sign"], SIGNING_BYTES, name)
        )
    return found


def receivers_text(receivers: Mapping[str, ReceiverKey]) -> str:
    """What `read_receivers` reads."""
    form = {
        name: {"seal": base64.b64encode(key.sealing).decode(), "sign": base64.b64encode(key.signing).decode()}
        for name, key in receivers.items()
    }
    return json.dumps(form, indent=1) + "\n"


def key_bytes(text: object, size: int, name: str) -> bytes:
    """A key of `name`, of `size` bytes in base64. Raises ValueError with the reason."""
    try:
        decoded = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != size:
        raise ValueError(f"a key of {name} is not {size} bytes in base64")
    return decoded
