"""`python -m runner` that also writes down the secrets it makes, for a test that looks for them where they
must not be.

They go to the ledger's path with ".secrets" behind it, one hexadecimal line each: every random string that a
protocol or the session draws, every key that two parties share, every key derived from one.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from typing import Any, NoReturn

SUFFIX = ".secrets"
DRAWN_BY = ("mpc_protocols.", "parties.session.admission.keys")
MIN_BYTES = 16


def main() -> NoReturn:
    """Run the command line."""
    descriptor = os.open(os.environ["COSYNTH_LEDGER"] + SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(secret: bytes) -> bytes:
        if len(secret) >= MIN_BYTES:
            os.write(descriptor, secret.hex().encode() + b"\n")
        return secret

    draw = secrets.token_bytes

    def token_bytes(count: int | None = None) -> bytes:
        drawn = draw(count)
        return note(drawn) if sys._getframe(1).f_globals["__name__"].startswith(DRAWN_BY) else drawn

    secrets.token_bytes = token_bytes  # type: ignore[assignment]

    def noted(function: Callable[..., bytes]) -> Callable[..., bytes]:
        return lambda *given, **named: note(function(*given, **named))

    from parties.session import party
    from parties.session.admission.keys import SharedKeys

    shared: Any = SharedKeys
    shared._key = noted(shared._key)
    party.hkdf = noted(party.hkdf)
    from runner.__main__ import program

    program()


if __name__ == "__main__":
    main()
