"""The [contributors] table of a study: who may leave a bundle, to whom it is sealed, when the collection
closes (`docs/reference/study-file.md`, `docs/design/federated.md` 3).

Files stand beside the study and are part of its digest: `keys`, one line "NAME ed25519:KEY" for each
contributor, `receivers`, a JSON object with the public keys of the three computing parties, and maybe
`registered`. Standard library only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.backends.bundles.sealing import SIGNING_BYTES, ReceiverKey
from mpc_protocols.process.installation import program
from parties.inbox.close import Close
from runner.failures import reason
from runner.study.declared.keys import MAX_CONTRIBUTORS, SCHEDULES, ContributorKeys
from runner.study.declared.table import Table, nearest
from runner.study.model import Party
from runner.study.sections.closes import public_form, read_closes
from runner.study.sections.parties import NAME
from runner.study.sections.receivers import RECEIVERS, key_bytes, read_receivers
from runner.study.sections.registered import Registered, read_registered
from runner.study.sections.waves import EarlierWave, public_keys, read_waves

if TYPE_CHECKING:
    from runner.study.declared.tables import Privacy
    from synth.domain import Domain

KEY_PREFIX = "ed25519:"
COLLECT, ARRIVING = SCHEDULES


@dataclass(frozen=True)
class Contributors:
    """keys: Ed25519 public key of each contributor, 32 bytes, in the file's order. receivers: of the
    computing parties.

    minimum: bundles below which nothing is opened. closes: when lists of bundles are fixed; one, but with the
    schedule "arriving" one for each round. again: with that schedule, whether single columns are measured
    once more at the end. registered: single columns of everybody who is enrolled, from an earlier run. after:
    the earlier waves of the table.
    """

    keys: Mapping[str, bytes]
    receivers: Mapping[str, ReceiverKey] = field(repr=False)
    expected_rows: int
    minimum: int
    closes: tuple[Close, ...]
    schedule: str = COLLECT
    again: bool = False
    registered: Registered | None = None
    after: tuple[EarlierWave, ...] = ()

    @property
    def arriving(self) -> bool:
        """Whether selections are made while contributors arrive."""
        return self.schedule == ARRIVING

    @property
    def earlier(self) -> frozenset[str]:
        """Those of the list who were in an earlier wave, by their name or their key: nobody takes part in
        two."""
        names = {name for wave in self.after for name in wave.everybody}
        keys = {key for wave in self.after for key in wave.keys}
        return frozenset(
            name
            for name, key in self.keys.items()
            if name.casefold() in names or hashlib.sha256(key).hexdigest() in keys
        )

    def public(self) -> dict[str, Any]:
        """JSON-able form, with the content of both files: for the digest and run.json."""
        closes = [public_form(close) for close in self.closes]
        return {
            "keys": [[name, key.hex()] for name, key in self.keys.items()],
            "receivers": public_keys(self.receivers),
            "expected_rows": self.expected_rows,
            "min": self.minimum,
            "close": closes if self.arriving else closes[0],
            "schedule": self.schedule,
            **({"again": True} if self.again else {}),
            **({} if self.registered is None else {"registered": self.registered.digest.hex()}),
            **({"after": [wave.public() for wave in self.after]} if self.after else {}),
        }


def read_contributors(
    raw: object,
    path: Path,
    problems: list[str],
    backend: Backend | None,
    partition: str,
    privacy: Privacy,
    parties: tuple[Party, ...],
    domain: Domain | None,
) -> Contributors | None:
    """The table; every problem is noted, and None returned if there is one."""
    before = len(problems)
    table = Table(raw, str(path), "[contributors]", ContributorKeys, problems)
    given = table.options(ContributorKeys)
    if backend is not None and not backend.bundles:
        others = [f'"{other.name}"' for other in BACKENDS if other.bundles and not other.ideal]
        table.problem(
            f'has no meaning with backend = "{backend.name}", which takes no bundles; use {" or ".join(others)}'
        )
    if partition == "vertical":
        table.problem(
            'has no meaning with partition = "vertical": contributors have rows of their own with all columns'
        )
    schedule = given.schedule
    if given.again and schedule != ARRIVING:
        table.problem(f'has no meaning without schedule = "{ARRIVING}"; remove it', "again")
    computing = [party.name for party in parties if party.compute]
    if parties and len(computing) != RECEIVERS and (backend is None or backend.bundles):
        table.problem(
            f"needs exactly three computing parties, which receive the bundles, and the study has {len(computing)}"
        )
    for party in parties:
        if not party.compute:
            table.problem(
                f"lets contributors leave bundles, so [[party]] {party.name}, which does not compute, must be one of them: list "
                "it in keys, or let it compute"
            )
    keys = _keys(table, path.parent / given.keys, [party.name for party in parties])
    receivers = _receivers(table, path.parent / given.receivers, computing)
    minimum = given.min
    closes = read_closes(table, schedule == ARRIVING, minimum, MAX_CONTRIBUTORS)
    if keys and minimum > len(keys):
        table.problem(
            f"= {minimum} is more than the {len(keys)} contributors of keys: the study could never run", "min"
        )
    for bundles in [close.bundles for close in closes if close.bundles is not None]:
        if bundles < minimum:
            table.problem(
                f"bundles = {bundles} is less than min = {minimum}, below which nothing is opened", "close"
            )
        if keys and bundles > len(keys):
            table.problem(f"bundles = {bundles} is more than the {len(keys)} contributors of keys", "close")
    most = len(keys) + len(parties)
    if keys and most * privacy.max_rows >= 1 << 31:
        problems.append(
            f"{path}: [privacy] max_rows = {privacy.max_rows:,} is too large for {len(keys):,} contributors and {len(parties)} "
            f"parties: all rows together must stay below 2^31; lower it to at most {((1 << 31) - 1) // most:,}, well above any "
            "contributor's table."
        )
    registered = (
        None
        if domain is None or given.registered is None
        else _registered(table, path.parent / given.registered, domain)
    )
    after: tuple[EarlierWave, ...] = ()
    if "after" in table and schedule == ARRIVING:
        table.problem(
            f'has no meaning with schedule = "{ARRIVING}", which selects; a later wave does not', "after"
        )
    if "after" in table and (own := [party.name for party in parties if party.data is not None]):
        table.problem(
            f"names an earlier wave, in which the table of {', '.join(own)} may be already: let [[party]] entries bring none",
            "after",
        )
    if "after" in table and domain is not None and len(problems) == before:
        known = "" if registered is None else registered.digest.hex()
        after = read_waves(table, path.parent, domain, privacy, known)
    if len(problems) > before:
        return None
    found = Contributors(
        keys, receivers, given.expected_rows, minimum, closes, schedule, given.again, registered, after
    )
    _check_newcomers(table, found)
    return found if len(problems) == before else None


def key_line(name: str, key: bytes) -> str:
    """A contributor's line in `keys`."""
    return f"{name} {KEY_PREFIX}{base64.b64encode(key).decode()}"


def _keys(table: Table, file: Path, parties: list[str]) -> dict[str, bytes]:
    if "keys" not in table:
        return {}
    found: dict[str, bytes] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not UTF-8"
        table.problem(f"names {file}, which cannot be read ({why})", "keys")
        return {}
    seen = {name.casefold() for name in parties}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, key = line.strip().partition(" ")
        try:
            if not NAME.fullmatch(name):
                raise ValueError(
                    'a name is letters, digits, "-", "_" or "." and begins with a letter or digit'
                )
            if not key.strip().startswith(KEY_PREFIX):
                raise ValueError(
                    f"a line is NAME {KEY_PREFIX}KEY, as `{program()} contribute --make-key` prints it"
                )
            if name.casefold() in seen:
                raise ValueError(f"the name {name} is taken by a party, or stands there twice")
            decoded = key_bytes(key.strip().removeprefix(KEY_PREFIX), SIGNING_BYTES, name)
            if decoded in found.values():
                raise ValueError(f"the key of {name} is another contributor's")
        except ValueError as error:
            table.problem(f"names {file}, whose line {number} cannot be used: {error}", "keys")
            return {}
        found[name] = decoded
        seen.add(name.casefold())
    if not found or len(found) > MAX_CONTRIBUTORS:
        table.problem(
            f"names {file}, which lists {len(found)} contributors; 1 to {MAX_CONTRIBUTORS:,} are possible",
            "keys",
        )
        return {}
    return found


def _receivers(table: Table, file: Path, computing: list[str]) -> dict[str, ReceiverKey]:
    if "receivers" not in table:
        return {}
    try:
        found = read_receivers(file)
    except OSError as error:
        table.problem(
            f"names {file}, which cannot be read ({reason(error)}); each computing party makes its keys with `{program()} "
            "inbox STUDY --party NAME --make-key`",
            "receivers",
        )
        return {}
    except (ValueError, RecursionError) as error:
        table.problem(f"names {file}, which cannot be used: {error}", "receivers")
        return {}
    for name in found:
        if name not in computing:
            table.problem(
                f'names {file}, which has a key of "{name}", no computing party{nearest(name, computing)}',
                "receivers",
            )
    for name in computing:
        if name not in found:
            table.problem(
                f"names {file}, which lacks the keys of party {name}; `{program()} inbox STUDY --party {name} --make-key` "
                "makes them",
                "receivers",
            )
    return {name: found[name] for name in computing if name in found}


def _registered(table: Table, file: Path, domain: Domain) -> Registered | None:
    try:
        return read_registered(file, domain)
    except OSError as error:
        table.problem(f"names {file}, which cannot be read ({reason(error)})", "registered")
    except (ValueError, RecursionError) as error:
        table.problem(f"names {file}, which cannot be used: {error}", "registered")
    return None


def _check_newcomers(table: Table, found: Contributors) -> None:
    """Whether enough of the list were in no earlier wave."""
    new = len(found.keys) - len(found.earlier)
    least = max(found.minimum, *(close.bundles or 0 for close in found.closes))
    if found.earlier and new < least:
        table.problem(
            f"lists {len(found.keys)} contributors of whom {len(found.earlier)} were in an earlier wave: the {new} others are "
            f"fewer than the {least} bundles that the study needs",
            "keys",
        )
