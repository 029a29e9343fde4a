"""What a result says and is signed for: read, and written, by whoever knows the format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.process.canonical_json import canonical
from mpc_protocols.public.rationals import rational
from runner.contributors import statement

if TYPE_CHECKING:
    pass


KIND, FORMAT = "result", "cosynth-result-2"


@dataclass(frozen=True)
class Result:
    """study, run, list, model: hex of hashes. contributors: who took part. events: what was released, with
    what each costs.

    For a study that comes after this one (`runner.study.sections.waves`): keys: SHA-256 of each contributor's
    key, hex. custodians: computing parties whose own tables were in it. measurements: SHA-256 of
    measurements.json, hex. promise: `promise_of`. registered, after: digests of registered columns and of
    earlier waves' studies.
    """

    study: str
    run: str
    list: str
    model: str
    contributors: tuple[str, ...]
    events: tuple[Event, ...]
    keys: tuple[str, ...] = ()
    custodians: tuple[str, ...] = ()
    measurements: str = ""
    promise: Mapping[str, Any] = field(default_factory=dict)
    registered: str = ""
    after: tuple[str, ...] = ()

    def to_form(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "format": FORMAT,
            "study": self.study,
            "run": self.run,
            "list": self.list,
            "model": self.model,
            "contributors": list(self.contributors),
            "keys": list(self.keys),
            "custodians": list(self.custodians),
            "measurements": self.measurements,
            "promise": dict(self.promise),
            "registered": self.registered,
            "after": list(self.after),
            "events": [
                {
                    "what": event.what,
                    "rho": str(event.rho),
                    "beta": str(event.beta),
                    "detail": dict(event.detail),
                }
                for event in self.events
            ],
        }

    @property
    def signed(self) -> bytes:
        """What signatures are over."""
        return signed(canonical(self.to_form()))

    def to_bytes(self, signatures: Mapping[str, bytes]) -> bytes:
        """The file's content (`runner.contributors.statement`)."""
        return statement.to_bytes(KIND, canonical(self.to_form()), signatures)


def signed(content: bytes) -> bytes:
    """What signatures of a result's canonical JSON are over."""
    return FORMAT.encode() + content


def parse(path: Path, content: bytes) -> Result:
    """The result whose canonical JSON this is. Call it once the signatures are verified. path: its file, for
    the sentence.

    Raises `UsageError`.
    """
    try:
        told = json.loads(content)
        if told["format"] != FORMAT:
            raise ValueError
        return Result(
            str(told["study"]),
            str(told["run"]),
            str(told["list"]),
            str(told["model"]),
            tuple(map(str, told["contributors"])),
            tuple(
                Event(str(each["what"]), rational(each["rho"]), rational(each["beta"]), dict(each["detail"]))
                for each in told["events"]
            ),
            tuple(map(str, told["keys"])),
            tuple(map(str, told["custodians"])),
            str(told["measurements"]),
            dict(told["promise"]),
            str(told["registered"]),
            tuple(map(str, told["after"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise UsageError(f"{path} is signed and still no result that this version can read.") from None
