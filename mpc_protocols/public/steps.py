"""The public steps of a run as messages: canonical bytes, strictly read.

Problem: the computing party that runs the synthesizer decides what is asked next; the others must learn
exactly the same public inputs, derive the same plan from them and hash them into the transcript
(`docs/design/engine.md` 5). So every step has one encoding: JSON with sorted keys, no whitespace, ASCII; a
rational is [numerator, denominator] in lowest terms; bytes are lower-case hexadecimal; a level is [name,
column, bins]. A field that has its default value is left out.

`parse` accepts what `to_bytes` writes and nothing else: after validation the step is encoded again and must
give the same bytes, which excludes duplicate keys, other spellings of a number, unknown keys and trailing
bytes. Sizes are limited before anything is allocated. A peer's message is data: nothing in it is evaluated.

All of it is public: cliques, weights, penalties, epsilon, sigma^2, hashes of the rounded answers. No count is
in a step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from operator import lt
from typing import Any, ClassVar, Final

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import MAX_MARGINALS, Clique, Handle, Level

MAX_BYTES: Final = 1 << 22
"""Length of an encoded step."""
MAX_ITEMS: Final = MAX_MARGINALS
"""Cliques or handles in one step, and handles in a run."""
MAX_COLUMNS: Final = 64
"""Columns of a clique."""
MAX_NAME: Final = 1024
"""Characters of a column's name."""
MAX_RATIONAL_BITS: Final = 2048
"""Bits of a numerator or denominator; holds every float64 below 2^1023 as a rational."""
_BEYOND_FLOATS: Final = 1 << 1023
"""Sentences and events show rationals as floats; half the largest float, so that none overflows by rounding."""
_MAX_KNOWN: Final = 64
"""Rationals of a message that are looked up: whoever sends it could choose many whose hashes are one."""
MAX_STEPS: Final = 1 << 32
MAX_SUM: Final = 1 << 62
MAX_KEYS: Final = 1 << 16
"""For which noise may be made ahead by one step."""
MAX_COUNTS: Final = 1 << 15
"""Of one variance, for which noise may be made ahead by one measurement, and a part more."""
MAX_EXPECTED: Final = 8
"""Variances of one measurement that may come."""


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _check_rational(x: object, what: str, *, positive: bool) -> None:
    if not isinstance(x, Fraction):
        raise ValueError(f"{what} must be a rational")
    top, bottom = (
        x.numerator,
        x.denominator,
    )  # integers: a step has hundreds of rationals, and comparing those takes its time
    if top.bit_length() > MAX_RATIONAL_BITS or bottom.bit_length() > MAX_RATIONAL_BITS:
        raise ValueError(f"{what} has too long a numerator or denominator")
    if top < 0 or (top == 0 and positive):
        raise ValueError(f"{what} must {'be positive' if positive else 'not be negative'}")
    if top >= _BEYOND_FLOATS and top >= _BEYOND_FLOATS * bottom:
        raise ValueError(f"{what} is too large a number")


def _different(values: tuple[object, ...]) -> Collection[object]:
    """Each object once: of thousands of candidates, many have the very same weight or penalty."""
    return {id(value): value for value in values}.values()


def _check_integers(values: Sequence[Any], what: str, limit: int) -> None:
    """`_check_integer` of each: the smallest and the largest decide, where all are integers."""
    if values and set(map(type, values)) == {int} and min(values) >= 0 and max(values) < limit:
        return
    for value in values:
        _check_integer(value, what, limit)


def _check_integer(x: object, what: str, limit: int) -> None:
    if (
        type(x) is not int or not 0 <= x < limit
    ):  # a step has many: no sentence is made for those that are right
        raise ValueError(f"{what} must be an integer of at least 0 and below {limit}")


@lru_cache(maxsize=2)  # the next selection has often the same candidates
def _check_ascending(conflicts: tuple[tuple[int, ...], ...]) -> None:
    if any(
        q >= later[0] or (len(later) > 1 and not all(map(lt, later, later[1:])))
        for q, later in enumerate(conflicts)
        if later
    ):
        raise ValueError("conflicts must be listed in ascending order with the first of each pair")


def _check_name(column: object) -> None:
    _require(
        isinstance(column, str) and 0 < len(column) <= MAX_NAME,
        "a column's name is empty, too long or no text",
    )


def _check_handles(handles: object) -> None:
    _require(
        isinstance(handles, tuple) and 0 < len(handles) <= MAX_ITEMS, f"a step needs 1 to {MAX_ITEMS} handles"
    )
    assert isinstance(handles, tuple)
    _check_integers(handles, "a handle", MAX_ITEMS)
    _require(len(set(handles)) == len(handles), "a step must not name a handle twice")


@dataclass(frozen=True)
class _Message:
    """A step: its `kind` on the wire and one encoding for all kinds. Fields are validated where a step is
    built."""

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        """Encoded once, however often it is sent, compared and hashed."""
        values = [(f, getattr(self, f.name)) for f in fields(self)]
        body = {f.name: _text(value) for f, value in values if f.default is MISSING or value != f.default}
        named = sorted({"step": _json(self.kind), **body}.items())
        return f"{{{','.join(f'{_json(name)}:{text}' for name, text in named)}}}".encode("ascii")


@dataclass(frozen=True)
class PrepareStep(_Message):
    """Make marginals available. Releases nothing, so it has no number. levels: those that are declared with
    this step."""

    kind: ClassVar[str] = "prepare"
    cliques: tuple[Clique, ...]
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        _require(
            isinstance(self.cliques, tuple) and 0 < len(self.cliques) <= MAX_ITEMS,
            f"needs 1 to {MAX_ITEMS} cliques",
        )
        for clique in self.cliques:
            _require(
                isinstance(clique, tuple) and 0 < len(clique) <= MAX_COLUMNS,
                f"a clique needs 1 to {MAX_COLUMNS} columns",
            )
            for column in clique:
                _check_name(column)
        _require(
            isinstance(self.levels, tuple) and len(self.levels) <= MAX_ITEMS,
            f"needs at most {MAX_ITEMS} levels",
        )
        for level in self.levels:
            _check_name(level.name)
            _check_name(level.column)
            for value in level.bins:
                _check_integer(value, "a bin", MAX_ITEMS)


@dataclass(frozen=True)
class SelectStep(_Message):
    """Choose `picks` of `handles`, one after the other.

    weights: positive. penalties: in counts, not negative. answer_sums: integers that the sums of the rounded
    answers do not exceed. answers_digests: for each group of the candidates that are kept, the hash of their
    rounded answers (`answers`). conflicts: for each candidate the later ones of which at most one of the two
    is picked, ascending; empty if there are none. expected: sigma2 of the measurement that is going to
    follow, if that is known. promised: the next step is the `MeasureStep` of what is picked, in that order,
    with this sigma2, and nobody sends it.
    """

    kind: ClassVar[str] = "select"
    number: int
    handles: tuple[Handle, ...]
    weights: tuple[Fraction, ...]
    penalties: tuple[Fraction, ...]
    epsilon: Fraction
    answer_sums: tuple[int, ...]
    answers_digests: tuple[bytes, ...]
    picks: int = 1
    conflicts: tuple[tuple[int, ...], ...] = ()
    expected: Fraction | None = None
    promised: bool = False

    def __post_init__(self) -> None:
        _check_integer(self.number, "a step's number", MAX_STEPS)
        _check_handles(self.handles)
        _check_integer(self.picks, "the number of picks", len(self.handles) + 1)
        _require(self.picks > 0, "a selection picks at least once")
        _require(
            isinstance(self.conflicts, tuple) and len(self.conflicts) in (0, len(self.handles)),
            "conflicts must be listed for every handle, or for none",
        )
        _check_integers(list(chain.from_iterable(self.conflicts)), "a position", len(self.handles))
        _check_ascending(self.conflicts)
        for values in (self.weights, self.penalties, self.answer_sums):
            _require(
                isinstance(values, tuple) and len(values) == len(self.handles),
                "weights, penalties and sums of answers must be as many as handles",
            )
        for weight in _different(self.weights):
            _check_rational(weight, "a weight", positive=True)
        for penalty in _different(self.penalties):
            _check_rational(penalty, "a penalty", positive=False)
        _check_rational(self.epsilon, "epsilon", positive=True)
        if self.expected is not None:
            _check_rational(self.expected, "the expected sigma2", positive=True)
        _require(
            self.promised is False or (self.promised is True and self.expected is not None),
            "only a measurement that is expected is promised",
        )
        _check_answers(self.answer_sums, self.answers_digests)


def _check_answers(sums: tuple[int, ...], digests: tuple[bytes, ...]) -> None:
    _check_integers(sums, "a sum of answers", MAX_SUM)
    _require(isinstance(digests, tuple) and 0 < len(digests) <= MAX_ITEMS, "answers need a hash")
    for digest in digests:
        _require(isinstance(digest, bytes) and len(digest) == 32, "a hash of answers has 32 bytes")


def _check_keys(keys: int) -> None:
    _check_integer(keys, "the number of keys that are expected", MAX_KEYS + 1)


@dataclass(frozen=True)
class MeasureStep(_Message):
    """Release the marginals of `handles`, each cell with discrete Gaussian noise of parameter sigma2, or of
    its handle's. keys: of the selections that are going to follow, about; 0 if that is not known. expected: sigma2
    of the measurement after the next selection, and about how many counts it has at most; several if it may have one of
    several, the likeliest first; none if that is not known."""

    kind: ClassVar[str] = "measure"
    number: int
    handles: tuple[Handle, ...]
    sigma2: Fraction | tuple[Fraction, ...]
    keys: int = 0
    expected: tuple[tuple[Fraction, int], ...] = ()

    def __post_init__(self) -> None:
        _check_keys(self.keys)
        _check_integer(self.number, "a step's number", MAX_STEPS)
        _check_handles(self.handles)
        if isinstance(self.sigma2, tuple):
            _require(
                len(self.sigma2) == len(self.handles) and len(set(self.sigma2)) > 1,
                "a step has one sigma2 for all handles, or different ones, as many as handles",
            )
        for sigma2 in self.variances:
            _check_rational(sigma2, "sigma2", positive=True)
        self._check_expected()

    def _check_expected(self) -> None:
        several = isinstance(self.expected, tuple) and len(self.expected) <= MAX_EXPECTED
        _require(several, f"at most {MAX_EXPECTED} variances are expected")
        for pair in self.expected:
            _require(isinstance(pair, tuple) and len(pair) == 2, "what is expected is [sigma2, counts]")
            sigma2, counts = pair
            _check_rational(sigma2, "the expected sigma2", positive=True)
            _check_integer(counts, "the number of counts that are expected", MAX_COUNTS + 1)
        different = {sigma2 for sigma2, _ in self.expected}
        _require(len(different) == len(self.expected), "a variance is expected once")

    @property
    def variances(self) -> tuple[Fraction, ...]:
        """sigma2 of each handle."""
        return self.sigma2 if isinstance(self.sigma2, tuple) else (self.sigma2,) * len(self.handles)


@dataclass(frozen=True)
class DistanceStep(_Message):
    """Release the L1 distances of the marginals of `handles` to answers, with noise; the other fields as in
    `SelectStep`."""

    kind: ClassVar[str] = "distances"
    number: int
    handles: tuple[Handle, ...]
    sigma2: Fraction
    answer_sums: tuple[int, ...]
    answers_digests: tuple[bytes, ...]

    def __post_init__(self) -> None:
        _check_integer(self.number, "a step's number", MAX_STEPS)
        _check_handles(self.handles)
        _check_rational(self.sigma2, "sigma2", positive=True)
        _require(
            isinstance(self.answer_sums, tuple) and len(self.answer_sums) == len(self.handles),
            "sums of answers must be as many as handles",
        )
        _check_answers(self.answer_sums, self.answers_digests)


@dataclass(frozen=True)
class TotalStep(_Message):
    """Release the number of rows with discrete Gaussian noise of parameter sigma2. keys: as in `MeasureStep`."""

    kind: ClassVar[str] = "total"
    number: int
    sigma2: Fraction
    keys: int = 0

    def __post_init__(self) -> None:
        _check_keys(self.keys)
        _check_integer(self.number, "a step's number", MAX_STEPS)
        _check_rational(self.sigma2, "sigma2", positive=True)


@dataclass(frozen=True)
class EndStep(_Message):
    """The synthesizer asks nothing more."""

    kind: ClassVar[str] = "end"


Step = PrepareStep | SelectStep | MeasureStep | DistanceStep | TotalStep | EndStep


_json: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def _text(value: object) -> str:
    """A value's encoding; of a tuple's items, of which many are the very same, each once."""
    if isinstance(value, tuple):
        kinds = set(map(type, value))
        if kinds <= {int} or kinds <= {str}:
            return _json(value)
        if kinds == {tuple}:
            return _text_of_tuples(value)
        texts = {id(item): _text(item) for item in _different(value)}
        return f"[{','.join([texts[id(item)] for item in value])}]"
    return _json(_encode(value))


@lru_cache(maxsize=2)  # the next selection has often the same candidates
def _text_of_tuples(value: tuple[tuple[object, ...], ...]) -> str:
    kinds = set(map(type, chain.from_iterable(value)))
    if kinds <= {int} or kinds <= {str}:
        return _json(value)
    return f"[{','.join(map(_text, value))}]"


def _encode(value: object) -> object:
    if isinstance(value, int | str):
        return value
    if isinstance(value, Fraction):
        return value.as_integer_ratio()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Level):
        return value.name, value.column, value.bins
    raise TypeError(f"A step holds integers, texts, bytes, rationals and tuples, not {type(value).__name__}.")


def _list(value: object, item: Callable[[object], object] | None = None) -> tuple[object, ...]:
    _require(isinstance(value, list), "expected a list")
    assert isinstance(value, list)
    _require(len(value) <= MAX_ITEMS, "a list is too long")
    return tuple(value if item is None else map(item, value))


def _rational(value: object) -> Fraction:
    _require(isinstance(value, list) and len(value) == 2, "a rational is [numerator, denominator]")
    assert isinstance(value, list)
    numerator, denominator = value
    for part in value:
        _require(
            type(part) is int and part.bit_length() <= MAX_RATIONAL_BITS,
            "a rational has a part that is no short integer",
        )
    _require(denominator > 0, "a denominator must be positive")
    return Fraction(numerator, denominator)


def _rationals(value: object) -> tuple[object, ...]:
    """Equal ones are one object, as at the leader (`_different`)."""
    known: dict[tuple[int, int], Fraction] = {}

    def of(pair: object) -> Fraction:
        if isinstance(pair, list) and len(pair) == 2:
            top, bottom = pair
            if type(top) is int and type(bottom) is int:
                if (found := known.get((top, bottom))) is not None:
                    return found
                if len(known) < _MAX_KNOWN:
                    known[top, bottom] = found = _rational(pair)
                    return found
        return _rational(pair)

    return _list(value, of)


def _variances(value: object) -> object:
    several = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return _rationals(value) if several else _rational(value)


def _counts(value: object) -> tuple[Fraction, object]:
    _require(isinstance(value, list) and len(value) == 2, "what is expected is [sigma2, counts]")
    assert isinstance(value, list)
    sigma2, counts = value
    return _rational(sigma2), counts


def _level(value: object) -> Level:
    _require(isinstance(value, list) and len(value) == 3, "a level is [name, column, bins]")
    assert isinstance(value, list)
    name, column, bins = value
    for value in (parts := _list(bins)):
        _check_integer(value, "a bin", MAX_ITEMS)
    return Level(name, column, parts)  # type: ignore[arg-type]


def _bytes(value: object) -> bytes:
    _require(isinstance(value, str) and len(value) <= 64, "a hash is 64 hexadecimal digits")
    assert isinstance(value, str)
    return bytes.fromhex(value)


def _as_is(value: object) -> object:
    return value


_DECODERS: Final[Mapping[type[Step], Mapping[str, Callable[[object], object]]]] = {
    PrepareStep: {"cliques": lambda value: _list(value, _list), "levels": lambda value: _list(value, _level)},
    SelectStep: {
        "number": _as_is,
        "handles": _list,
        "weights": _rationals,
        "penalties": _rationals,
        "epsilon": _rational,
        "answer_sums": _list,
        "answers_digests": lambda value: _list(value, _bytes),
        "picks": _as_is,
        "conflicts": lambda value: _list(value, _list),
        "expected": _rational,
        "promised": _as_is,
    },
    MeasureStep: {
        "number": _as_is,
        "handles": _list,
        "sigma2": _variances,
        "keys": _as_is,
        "expected": lambda value: _list(value, _counts),
    },
    DistanceStep: {
        "number": _as_is,
        "handles": _list,
        "sigma2": _rational,
        "answer_sums": _list,
        "answers_digests": lambda value: _list(value, _bytes),
    },
    TotalStep: {"number": _as_is, "sigma2": _rational, "keys": _as_is},
    EndStep: {},
}
_KINDS: Final[Mapping[str, type[Step]]] = {cls.kind: cls for cls in _DECODERS}


def parse(raw: bytes | memoryview) -> Step:
    """The step that a peer sent. Raises `ProtocolAborted` on anything but the canonical encoding of a valid
    step."""
    if len(raw) > MAX_BYTES:
        raise ProtocolAborted(
            f"The leading party sent a step of {len(raw)} bytes, at most {MAX_BYTES} are allowed; stop the run."
        )
    try:
        raw = bytes(raw)
        body = json.loads(raw.decode("ascii"))
        _require(isinstance(body, dict), "not an object")
        kind = body.pop("step", None)
        cls = _KINDS.get(kind) if isinstance(kind, str) else None
        _require(cls is not None, "unknown kind of step")
        assert cls is not None
        decoders = _DECODERS[cls]
        needed = {f.name for f in fields(cls) if f.default is MISSING}
        _require(needed <= body.keys() <= decoders.keys(), "missing or unknown fields")
        step = cls(**{name: decoders[name](value) for name, value in body.items()})  # type: ignore[arg-type]
        _require(step.to_bytes() == raw, "not the canonical encoding")
    except (ValueError, RecursionError) as error:
        reason = str(error) if type(error) is ValueError else "not JSON in ASCII"
        raise ProtocolAborted(
            f"The leading party sent a step that is not valid ({reason}); use releases of one protocol version everywhere."
        ) from None
    return step
