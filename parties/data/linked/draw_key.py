"""The secret by which a custodian draws one of a person's children (`docs/design/linked.md` 2).

32 bytes from `secrets`, made once and kept beside the custodian's ledger, so that a run that is resumed draws
alike; of each study another key is derived. It never leaves the custodian. Privacy does not rest on it; that
nobody foresees a draw does.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mpc_protocols.errors import DataRefused
from parties.budget.ledger_file import default_path
from parties.new_file import put_in_place

BYTES = 32
SUFFIX = ".draws"


@dataclass(frozen=True)
class DrawKey:
    """Where the secret of one study comes from. ledger: the custodian's file; None: the default one. study:
    the study's digest."""

    ledger: Path | None
    study: bytes = field(repr=False)

    def derive(self) -> bytes:
        """32 bytes, the same each time. Raises `DataRefused` if the secret can be neither read nor made."""
        ledger = default_path() if self.ledger is None else self.ledger
        return hashlib.blake2b(
            self.study, key=_secret(ledger.with_name(ledger.name + SUFFIX)), digest_size=BYTES
        ).digest()


def drawing_key(draws: DrawKey | None) -> bytes:
    """That of a study's draws; None: a fresh one. Raises `DataRefused`."""
    return secrets.token_bytes(BYTES) if draws is None else draws.derive()


def _secret(file: Path) -> bytes:
    """What the file holds; it is made, readable by its owner alone, if there is none."""
    with suppress(FileNotFoundError):
        return _read(file)
    part = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):  # another run of this custodian was first: its secret counts
            put_in_place(part, file)
        return _read(file)
    except OSError:
        raise _unusable(file) from None
    finally:
        part.unlink(missing_ok=True)


def _read(file: Path) -> bytes:
    try:
        secret = file.read_bytes()
    except FileNotFoundError:
        raise
    except OSError:
        raise _unusable(file) from None
    if len(secret) != BYTES:
        raise _unusable(file)
    return secret


def _unusable(file: Path) -> DataRefused:
    return DataRefused(
        f"{file}, the secret by which linked tables are unfolded, cannot be read or made ({BYTES} bytes); check the folder of "
        "the ledger, or remove the file (an interrupted run then draws anew)."
    )
