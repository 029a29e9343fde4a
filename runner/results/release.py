"""The released part of a run, as the leader hands it to every other party: table, model, measurements,
events.

All of it is a function of differentially private outputs. It arrives from another party, so nothing in it is
believed: the message is a canonical JSON header and raw integer arrays, every size is bounded by the study
before memory is taken, codes must lie in the domain, levels must be nested bins of its columns, measurements
and selections must be those of the events, and a computing party compares events with those of its own
accountant.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Event, Level
from mpc_protocols.public.cliques import MAX_LEVELS
from synth.algorithm import CHOICES, OWN_MODEL
from synth.budget.small.fallback import MAX_SHARE
from synth.mrf import Chains, storage
from synth.mrf.factor import varying
from synth.prior import Verdict
from synth.synthesis import Measured, without_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain

HEADER_LIMIT = 8 << 20
MODEL_LIMIT = 1 << 30
SEED_BITS = 64
MAX_NOISY_ROWS = 1 << 40
_KEYS = {
    "rows",
    "codes",
    "model",
    "levels",
    "measurements",
    "selections",
    "noisy_total",
    "decode_seed",
    "noise_share",
    "events",
    "left_out",
}
_MAX_PART_BITS = 1023  # bits of a rational's numerator or denominator: as a float it stays finite


@dataclass(frozen=True)
class Release:
    """What every party of a run ends up with.

    codes: (rows, columns) integer codes in domain order; model: the bytes of model.npz; decode_seed: public,
    so that all parties decode the same values; events: the leader's record of what was spent; selections,
    levels: as `synth.synthesis.Synthesis`; noise_share: set if the columns are independent because joint marginals
    were not worth their noise (`synth.budget.small.fallback`). left_out: parties whose counts are in nothing of it,
    since they turned out to be those of no table. prior: how what the run began from fared; None of a run
    that began from nothing.
    """

    codes: NDArray[np.integer[Any]]
    model: bytes
    measurements: tuple[Measured, ...]
    selections: tuple[Clique, ...]
    noisy_total: float
    decode_seed: int
    events: tuple[Event, ...]
    noise_share: float | None = None
    levels: tuple[Level, ...] = ()
    left_out: tuple[str, ...] = ()
    prior: Verdict | None = None

    @property
    def reported(self) -> bool:
        """Whether the measurements are owners' own, which no other party has opened."""
        return any(event.what == OWN_MODEL for event in self.events)

    @property
    def by_client(self) -> dict[int, tuple[Event, ...]] | None:
        """The events of each custodian, by number, where they are charged side by side; None where all are
        charged all."""
        named = [(event, clients_of(event)) for event in self.events]
        if not any("charged" in event.detail for event in self.events):
            return None
        return {
            client: tuple(event for event, clients in named if client in clients)
            for client in dict.fromkeys(client for _, clients in named for client in clients)
        }

    @property
    def charged(self) -> tuple[Event, ...]:
        """What any record can have been charged: all events, or those of the custodian that is charged most."""
        by_client = self.by_client
        if by_client is None:
            return self.events
        most = max(
            by_client.values(), key=lambda events: (sum(e.rho for e in events), len(events)), default=()
        )
        return tuple(most)

    @property
    def picked(self) -> tuple[Clique, ...]:
        """What was selected, as it was asked."""
        return tuple(clique for clique in self.selections if clique)

    @property
    def selected(self) -> tuple[Clique, ...]:
        """The columns of what was selected."""
        return tuple(without_levels(clique, self.levels) for clique in self.picked)

    def bins(self, clique: Clique) -> dict[str, int]:
        """How many bins a clique has of each column that it names by a level."""
        return {level.column: level.size for level in self.levels if level.name in clique}

    def tells(self, opened: Sequence[NDArray[np.int64]], events: Sequence[Event]) -> bool:
        """Whether it holds just what another computing party has opened, in order, and authorised."""
        told = () if self.reported else self.measurements
        return (
            len(opened) == len(told)
            and list(self.events) == list(events)
            and all(np.array_equal(own, m.values) for own, m in zip(opened, told, strict=True))
        )

    def tells_recorded(self, opened: Sequence[NDArray[np.int64]], events: Sequence[Event]) -> bool:
        """Whether it holds what another computing party has on record of an earlier attempt.

        opened: the result of every step, in order: of a measurement its marginals one after the other, else
        something else.
        """
        if [event_to_json(event) for event in self.events] != [event_to_json(event) for event in events]:
            return False
        results, told = iter(opened), iter(self.measurements)
        for event in self.events:
            if event.what == "measure":
                cliques = event.detail["cliques"]
                assert isinstance(cliques, list)
                values = np.concatenate([next(told).values for _ in cliques])
                if not any(np.array_equal(values, result) for result in results):
                    return False
        return True

    def code_bytes(self, domain: Domain) -> int:
        """Of `to_bytes`, what the rows take."""
        return len(self._packed(domain))

    def _packed(self, domain: Domain) -> bytes:
        return zlib.compress(np.ascontiguousarray(self.codes.T.astype(_code_dtype(domain))).tobytes(), 1)

    def to_bytes(self, domain: Domain) -> bytes:
        """Header length (4 bytes), header, compressed codes, model, measured values."""
        codes = self._packed(domain)
        values = b"".join(m.values.astype("<i8").tobytes() for m in self.measurements)
        header = json.dumps(
            {
                "rows": int(self.codes.shape[0]),
                "codes": len(codes),
                "model": len(self.model),
                "levels": [[level.name, level.column, list(level.bins)] for level in self.levels],
                "measurements": [
                    [list(m.clique), *m.sigma2.as_integer_ratio(), m.round, m.rows] for m in self.measurements
                ],
                "selections": [list(clique) for clique in self.selections],
                "noisy_total": self.noisy_total,
                "decode_seed": self.decode_seed,
                "noise_share": self.noise_share,
                "events": [event_to_json(event) for event in self.events],
                "left_out": list(self.left_out),
                **({} if self.prior is None else {"prior": self.prior.to_json()}),
            },
            sort_keys=True,
        ).encode()
        return b"".join((len(header).to_bytes(4, "big"), header, codes, self.model, values))


def size_limit(domain: Domain, row_limit: int) -> int:
    """The most bytes a release of this study may take; a peer's message is refused above it."""
    return 4 + HEADER_LIMIT + 4 * row_limit * len(domain.names) + 1024 + 2 * MODEL_LIMIT


def parse(payload: memoryview, domain: Domain, row_limit: int, sender: str) -> Release:
    """Read a release received from `sender`. Raises `ProtocolAborted` on anything that the study does not
    allow."""
    try:
        return _parse(payload, domain, row_limit)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        zlib.error,
        RecursionError,
        ProtocolAborted,
    ):
        raise ProtocolAborted(
            f"Party {sender} sent a result that does not fit the study; ask its operator for the log of "
            "this run and repeat it with releases of one protocol version everywhere."
        ) from None


def _parse(payload: memoryview, domain: Domain, row_limit: int) -> Release:
    header_size = int.from_bytes(payload[:4], "big")
    if header_size > HEADER_LIMIT:
        raise ValueError("header")
    raw_header = bytes(payload[4 : 4 + header_size])
    header = json.loads(raw_header)
    if header.keys() - {"prior"} != _KEYS or json.dumps(header, sort_keys=True).encode() != raw_header:
        raise ValueError("header")  # also a key that comes twice
    at = 4 + header_size
    rows, width, columns = _whole(header["rows"], row_limit), _code_dtype(domain), len(domain.names)
    expected = rows * columns * width.itemsize
    inflate = zlib.decompressobj()
    packed = _whole(header["codes"], len(payload))
    raw = inflate.decompress(bytes(payload[at : at + packed]), max_length=expected + 1)
    if len(raw) != expected or not inflate.eof:
        raise ValueError("codes")
    codes = np.frombuffer(raw, width).reshape(columns, rows).T
    for j, name in enumerate(domain.names):
        if rows and int(codes[:, j].max()) >= domain.sizes[name]:
            raise ValueError("code outside the domain")
    for names, zero in domain.impossible.items():
        if zero[tuple(codes[:, domain.names.index(name)] for name in names)].any():
            raise ValueError("row that breaks a constraint")
    at += packed
    model = bytes(payload[at : at + _whole(header["model"], MODEL_LIMIT)])
    at += len(model)
    levels = _levels(header["levels"], domain)
    sizes, _, _, used, zeros = storage.from_bytes(model)
    if list(sizes.items()) != list(domain.sizes.items()):
        raise ValueError("model of other columns")
    if any(levels.get(name) != level for name, level in used.items()):
        raise ValueError("model of other levels")
    known = varying(domain.impossible)
    if zeros.keys() != known.keys() or any(not np.array_equal(zeros[names], known[names]) for names in known):
        raise ValueError("model of other constraints")
    selections = tuple(_clique(names, domain, levels) if names else () for names in header["selections"])
    picked, named = [clique for clique in selections if clique], set[str]()
    measurements = []
    for names, numerator, denominator, number, counted in header["measurements"]:
        clique = _clique(names, domain, levels)
        named.update(clique)
        cells = math.prod(levels[name].size if name in levels else domain.sizes[name] for name in clique)
        values = np.frombuffer(payload[at : at + 8 * cells], "<i8").astype(np.int64)
        if len(values) != cells:
            raise ValueError("values")
        at += 8 * cells
        sigma2 = _rational([numerator, denominator])
        if sigma2 == 0:
            raise ValueError("sigma2")
        step = _whole(number, len(picked) + 1)
        if 1 <= step <= len(picked) and clique != picked[step - 1]:
            raise ValueError("a measurement of what was not selected")
        coarse = tuple(levels[name] for name in clique if name in levels)
        about = None if counted is None else _signed(counted)
        measurements.append(Measured(clique, sigma2, step, values, coarse, about))
    inherited = used if "prior" in header else {}
    if not named.union(*picked, inherited) >= levels.keys():
        raise ValueError("a level that nothing names")
    if at != len(payload):
        raise ValueError("length")
    noisy_total = header["noisy_total"]
    if type(noisy_total) is not float or not math.isfinite(noisy_total):
        raise ValueError("noisy_total")
    events = tuple(event_from_json(form) for form in header["events"])
    _check_events(events, measurements, selections)
    return Release(
        codes,
        model,
        tuple(measurements),
        selections,
        noisy_total,
        _whole(header["decode_seed"], (1 << SEED_BITS) - 1),
        events,
        _share(header["noise_share"]),
        tuple(levels.values()),
        _names(header["left_out"]),
        _verdict(header["prior"], domain) if "prior" in header else None,
    )


def _verdict(form: Any, domain: Domain) -> Verdict:
    verdict = Verdict.from_json(form)
    for known in verdict.known:
        if len(set(known.columns)) < len(known.columns) or not all(name in domain for name in known.columns):
            raise ValueError("columns of what was inherited")
    return verdict


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("names")
    return tuple(value)


def _check_events(
    events: Sequence[Event], measurements: Sequence[Measured], selections: Sequence[Clique]
) -> None:
    """Raise `ValueError` unless what was charged is what is told: as many selections, the same marginals with
    the same noise.

    What clients chose by themselves is told as far as it was measured.
    """
    if any(event.what == CHOICES for event in events):
        if [m.round for m in measurements if m.round] != list(range(1, len(selections) + 1)):
            raise ValueError("a choice without its measurement")
    elif len(selections) != sum(event.what == "select" for event in events):
        raise ValueError("selections")
    check_measured(events, measurements)


def check_measured(events: Sequence[Event], measurements: Sequence[Measured]) -> None:
    """Raise `ValueError`, `KeyError` or `TypeError` unless the marginals are those of the events, with the
    same noise.

    An owner's own model is charged as a whole: what is told of it are marginals of its own columns.
    """
    own = [event.detail["columns"] for event in events if event.what == OWN_MODEL]
    if own:
        owned = [set(columns) for columns in own if isinstance(columns, list)]
        if not all(any(columns.issuperset(m.clique) for columns in owned) for m in measurements):
            raise ValueError("a marginal of nobody's own columns")
        return
    charged = []
    for event in events:
        clients_of(event)
        if event.what in ("measure", "sum"):
            cliques, noise = event.detail["cliques"], event.detail["sigma2"]
            if not isinstance(cliques, list):
                raise ValueError("cliques")
            each = noise if isinstance(noise, list) else [noise] * len(cliques)
            charged += list(zip(cliques, each, strict=True))
    told = [[list(m.clique), f"{m.sigma2.numerator}/{m.sigma2.denominator}"] for m in measurements]
    if [list(pair) for pair in charged] != told:  # texts: a rational's could stand for any number of digits
        raise ValueError("measurements")


def clients_of(event: Event) -> Sequence[int]:
    """The numbers of the custodians that an event charges; none of an event that charges all."""
    clients = event.detail.get("charged", [])
    if not isinstance(clients, list) or not all(type(client) is int and client >= 0 for client in clients):
        raise ValueError("charged")
    return clients


def event_to_json(event: Event) -> dict[str, Any]:
    """Exact form of an event for the wire."""
    return {
        "what": event.what,
        "rho": list(event.rho.as_integer_ratio()),
        "beta": list(event.beta.as_integer_ratio()),
        "detail": dict(event.detail),
    }


def event_from_json(form: dict[str, Any]) -> Event:
    """Inverse of `event_to_json`; raises ValueError, KeyError or TypeError on anything else, a negative cost
    included."""
    detail = form["detail"]
    if (
        not isinstance(form["what"], str)
        or not isinstance(detail, dict)
        or not detail.keys().isdisjoint(form)
    ):
        raise ValueError("event")
    return Event(form["what"], _rational(form["rho"]), _rational(form["beta"]), detail)


def _whole(value: object, most: int) -> int:
    """An integer from 0 to `most`, and no bool."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("integer")
    return value


def _signed(value: object) -> int:
    """A noisy number of rows, and no bool."""
    if type(value) is not int or abs(value) > MAX_NOISY_ROWS:
        raise ValueError("rows")
    return value


def _rational(form: Sequence[object]) -> Fraction:
    """A rational of at least 0 from [numerator, denominator]."""
    numerator, denominator = form
    longest = (1 << _MAX_PART_BITS) - 1
    if not _whole(denominator, longest):
        raise ValueError("denominator")
    return Fraction(_whole(numerator, longest), _whole(denominator, longest))


def _clique(names: object, domain: Domain, levels: Mapping[str, Level]) -> Clique:
    """Columns, each once, or levels of them."""
    if not isinstance(names, list) or not all(
        isinstance(name, str) and (name in levels or name in domain) for name in names
    ):
        raise ValueError("clique")
    if len(set(without_levels(tuple(names), levels.values()))) != len(names):
        raise ValueError("a column twice")
    return tuple(names)


def _share(form: object) -> float | None:
    """A float from 0 to `MAX_SHARE`, or None."""
    if form is not None and not (type(form) is float and 0 <= form <= MAX_SHARE):
        raise ValueError("noise share")
    return form


def _levels(forms: Sequence[Sequence[Any]], domain: Domain) -> dict[str, Level]:
    """Levels by name: nested bins of columns, under names that are no column's."""
    found: dict[str, Level] = {}
    of_column = Counter[str]()
    for name, column, bins in forms:
        if not isinstance(name, str) or len(name) > storage.MAX_NAME or name in found or name in domain:
            raise ValueError("level")
        if not isinstance(bins, list) or len(bins) != domain.sizes[column]:
            raise ValueError("bins")
        of_column[column] += 1
        if of_column[column] > MAX_LEVELS:
            raise ValueError("levels")
        found[name] = Level(name, column, tuple(_whole(bin, len(bins) - 1) for bin in bins))
    Chains(domain.sizes, found).check()
    return found


def _code_dtype(domain: Domain) -> np.dtype[Any]:
    """The smallest unsigned type that holds every code of the domain."""
    return np.dtype(np.min_scalar_type(max(domain.sizes.values()) - 1)).newbyteorder("<")
