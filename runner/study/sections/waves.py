"""Earlier waves of a table: what `[contributors] after` names.

A study over contributors who came too late names what an earlier one has released (`docs/design/federated.md`
5): result.json, signed by the earlier study's three computing parties, and the measurements.json beside it,
whose hash is in what they signed. The signatures are verified with the keys of the earlier study's
receivers.json before anything of it is read; both are in this study's digest. Who was in an earlier wave
cannot be in a later one. Standard library only, but for the check of signatures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backends.bundles.sealing import ReceiverKey
from mpc_protocols.errors import CosynthError
from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2, MIN_SIGMA2
from mpc_protocols.process.canonical_json import canonical
from mpc_protocols.process.later import Later
from mpc_protocols.public.rationals import rational
from runner.study.declared.keys import WaveKeys
from runner.study.declared.table import Table, value_text
from runner.study.sections.public_files import read_public
from runner.study.sections.receivers import RECEIVERS, read_receivers

if TYPE_CHECKING:
    from runner.contributors import signed_result, statement
    from runner.study.declared.tables import Privacy
    from synth.domain import Domain
    from synth.prior import later_wave
    from synth.prior.later_wave import Wave
else:
    later_wave = Later("synth.prior.later_wave")
    signed_result = Later("runner.contributors.signed_result")
    statement = Later("runner.contributors.statement")

RESULT, MEASUREMENTS = "result.json", "measurements.json"
MAX_COUNT = 1 << 50
MAX_ROWS = 1 << 31
MAX_WAVES = 64


class _Unusable(Exception):
    """Why files are not those of an earlier wave: the rest of a sentence."""


@dataclass(frozen=True)
class EarlierWave:
    """One earlier wave. study: digest of its study, hex. names, keys: who was in it, and SHA-256 of each
    one's key, hex. custodians: computing parties whose own tables were in it. after: of the waves before it.
    registered: of the columns that its table was brought to, hex, or "". digest: SHA-256 of the signed
    result. receivers: by whose keys it was signed. wave: what it has measured."""

    study: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    custodians: tuple[str, ...]
    after: tuple[str, ...]
    registered: str
    digest: bytes
    receivers: Mapping[str, ReceiverKey]
    wave: Wave

    @property
    def everybody(self) -> frozenset[str]:
        """Names of all whose tables were in it, without capitals: a study's own names differ by more than
        capitals."""
        return frozenset(map(str.casefold, (*self.names, *self.custodians)))

    def public(self) -> dict[str, Any]:
        """What the digest of a later study says of it. JSON-able."""
        return {"result": self.digest.hex(), "receivers": public_keys(self.receivers)}


def public_keys(receivers: Mapping[str, ReceiverKey]) -> dict[str, Any]:
    """Keys of computing parties, hex."""
    return {name: {"seal": key.sealing.hex(), "sign": key.signing.hex()} for name, key in receivers.items()}


def together(waves: Sequence[EarlierWave]) -> Wave:
    """What all of them have measured; there is one at least."""
    return reduce(lambda some, more: some.plus(more), [each.wave for each in waves])


def promise_of(privacy: Privacy, domain: Domain) -> dict[str, object]:
    """What a wave promises whose rows are in it, and SHA-256 of the domain that they are counted in,
    constraints included: the same in all waves of a table."""
    return {
        "epsilon": float(privacy.epsilon),
        "delta": float(privacy.delta),
        "adjacency": privacy.adjacency,
        "unit": privacy.unit.words,
        "domain": hashlib.sha256(canonical(domain.to_spec())).hexdigest(),
    }


def read_waves(
    table: Table, folder: Path, domain: Domain, privacy: Privacy, registered: str
) -> tuple[EarlierWave, ...]:
    """The earlier waves; problems are noted in `table`. registered: digest of this study's own registered
    columns, or ""."""
    raw = table.raw["after"]
    entries = raw if isinstance(raw, list) else [raw]
    if not 1 <= len(entries) <= MAX_WAVES:
        table.problem(f"must name 1 to {MAX_WAVES} earlier waves, got {len(entries)}", "after")
        return ()
    waves = list[EarlierWave]()
    for entry in entries:
        if (
            not isinstance(entry, dict)
            or entry.keys() != WaveKeys.options().keys()
            or not all(isinstance(v, str) for v in entry.values())
        ):
            table.problem(
                'must be { run = "first/out", receivers = "first/receivers.json" }, the folder of an earlier run over bundles '
                f"and its study's receivers, or a list of these, got {value_text(entry)}",
                "after",
            )
            return ()
        run = folder / entry["run"]
        try:
            wave, promise = _read(run, folder / entry["receivers"], domain)
            _check(wave, waves)
            _check_promise(wave, promise, promise_of(privacy, domain), registered)
        except OSError as error:
            table.problem(
                f"names {run}, of which {error.filename} cannot be read ({error.strerror})", "after"
            )
            return ()
        except CosynthError as error:
            table.problem(f"names {run}, which cannot be used: {error.sentence.rstrip('.')}", "after")
            return ()
        except (_Unusable, ValueError, RecursionError) as error:
            table.problem(f"names {run}, which cannot be used: {error}", "after")
            return ()
        waves.append(wave)
    listed = {wave.study for wave in waves}
    if any(not listed.issuperset(wave.after) for wave in waves):
        table.problem(
            "must name all waves before: one of those named came after another wave itself", "after"
        )
        return ()
    return tuple(waves)


def _check(wave: EarlierWave, before: Sequence[EarlierWave]) -> None:
    if wave.study in {each.study for each in before}:
        raise _Unusable("it is the wave of a study that is named already")
    if before and wave.wave.known.keys() != before[0].wave.known.keys():
        raise _Unusable("it has measured other marginals than the wave before it")
    for each in before:
        if both := sorted(each.everybody & wave.everybody):
            raise _Unusable(f"{both[0]} was in it and in another wave that is named")
        if not set(each.keys).isdisjoint(wave.keys):
            raise _Unusable("a contributor's key was in it and in another wave that is named")


def _check_promise(
    wave: EarlierWave, promise: Mapping[str, Any], own: Mapping[str, Any], registered: str
) -> None:
    if promise.get("domain") != own["domain"]:
        raise _Unusable(
            "its domain has other columns, numbers of values, bins, labels, orders of values or constraints than this study's"
        )
    if promise != own:
        raise _Unusable(
            "it promised another epsilon, delta, adjacency or unit, and all waves of a table promise the same: with registered "
            "columns, what these have left of the budget"
        )
    if wave.registered != registered:
        raise _Unusable(
            "its table was brought to other registered columns than this study names, and all waves of a table name the same"
        )


def _read(run: Path, receivers: Path, domain: Domain) -> tuple[EarlierWave, Mapping[str, Any]]:
    """A wave and its promise. Raises OSError, `CosynthError`, `_Unusable`, ValueError."""
    keys: Mapping[str, ReceiverKey] = read_receivers(receivers)
    (run / RESULT).stat()
    if len(keys) != RECEIVERS:
        raise _Unusable(f"{receivers} has keys of {len(keys)} parties, and three have signed its result")
    _, content, signatures = statement.read([run / RESULT], {signed_result.KIND: signed_result.FORMAT})
    if (
        f'"format":"{signed_result.FORMAT}"'.encode() not in content
    ):  # else its signatures would seem to be missing
        raise _Unusable(f"its {RESULT} is that of another version of the program")
    statement.check_signatures(f"{run / RESULT}", signed_result.signed(content), signatures, keys)
    told = signed_result.parse(run / RESULT, content)
    measurements = read_public(run / MEASUREMENTS)
    if hashlib.sha256(measurements).hexdigest() != told.measurements:
        raise _Unusable(f"its {MEASUREMENTS} is not the one that its parties have signed")
    if len(told.keys) != len(told.contributors) or not told.contributors:
        raise _Unusable("its result does not tell the keys of those who were in it")
    return (
        EarlierWave(
            told.study,
            told.contributors,
            told.keys,
            told.custodians,
            told.after,
            told.registered,
            hashlib.sha256(content).digest(),
            keys,
            _wave(measurements, domain),
        ),
        told.promise,
    )


def _wave(content: bytes, domain: Domain) -> later_wave.Wave:
    """What a measurements.json holds. Raises `_Unusable`, ValueError."""
    form = json.loads(content.decode("utf-8"))
    try:
        if form["columns"] != dict(domain.sizes):
            raise _Unusable("it is of a study with other columns or other numbers of values")
        entries = [_marginal(entry, domain) for entry in form["measurements"]]
        total = float(form["noisy_total"])
    except (KeyError, TypeError, AttributeError):
        raise _Unusable(f"its {MEASUREMENTS} is not that of a run") from None
    if not entries:
        raise _Unusable("it has measured nothing")
    if not 0 <= total < MAX_ROWS:
        raise _Unusable(f"it says that it had {total:g} rows, and 0 to 2^31 are possible")
    return later_wave.Wave.of(entries, total)


def _marginal(entry: Mapping[str, Any], domain: Domain) -> tuple[tuple[str, ...], Sequence[int], Any]:
    clique, values = tuple(entry["clique"]), entry["values"]
    if "resolution" in entry:
        raise _Unusable("it has measured marginals over bins")
    if entry.get("rows") is not None:
        raise _Unusable(
            "its rounds were counted over different contributors, and a wave adds to one list of them"
        )
    if not clique or len(set(clique)) != len(clique) or any(name not in domain for name in clique):
        raise _Unusable("it has measured columns that this study does not have")
    if not isinstance(values, list) or len(values) != domain.cells(clique):
        raise _Unusable(f"its marginal of {', '.join(clique)} has another number of cells")
    if not all(type(value) is int and abs(value) < MAX_COUNT for value in values):
        raise _Unusable(f"its marginal of {', '.join(clique)} holds something that is no count")
    sigma2 = rational(entry["sigma2"].removesuffix("/1"))
    if not MIN_SIGMA2 <= sigma2 <= MAX_SIGMA2:
        raise _Unusable(f"the noise of its marginal of {', '.join(clique)} is out of range")
    return clique, values, sigma2
