"""`ids --normalise RULE VALUE...`: what a rule of `[alignment] normalise` makes of identifiers, before two
owners rely on it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid, UsageError
from mpc_protocols.psu.identifiers.normalise import field_of

if TYPE_CHECKING:
    pass


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    for value in arguments.values:
        try:
            canonical = field_of(value, arguments.normalise)
        except StudyInvalid as error:
            raise UsageError(f"--normalise {arguments.normalise}: {error.sentence}") from None
        text = None if canonical is None else canonical.decode("utf-8")
        if arguments.json:
            print(json.dumps({"given": value, "identifier": text}), flush=True)
        else:
            print(f"{value} -> {'refused' if text is None else text}", flush=True)
