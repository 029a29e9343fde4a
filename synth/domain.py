"""The domain: what values each column may take. Public, and never derived from private rows.

Everything after a custodian's own coding works on integer codes `0..size-1`; this file says what a code means, in both
directions, so that every custodian codes alike (`parties/coding.py`) and the synthetic table is decoded alike. A domain
guessed from the data (its categories, its smallest and largest number) would leak without any noise (`docs/design/privacy.md` 6):
it is part of the study file (`docs/reference/study-file.md`, `[domain]`) and of the study's hash.

Kinds of column:

    codes        integers 0..size-1 as they are
    numeric      `bins` bins of equal width over [low, high], each closed on the left; the last is closed on both sides.
                 Numbers outside are clamped. The exact rule, for every implementation: `edges()` are float64 numbers (the
                 exact rational low + (high - low) i / bins, rounded to nearest), and a number's code is how many of the
                 interior edges are at most the number (`bin_of`).
    categorical  the listed values, in their order

`missing = true` (numeric, categorical) adds one more code, the last: an absent value, an empty field in a table.

Standard library only at import: the launcher reads studies before anything heavy is loaded.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique

Value = str | int | float | bool


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _size(value: object, key: str) -> int:
    if not _integer(value) or not 1 <= value <= MAX_CELLS:  # type: ignore[operator]
        raise StudyInvalid(f"{key} must be an integer from 1 to {MAX_CELLS}, got {value!r}.")
    return value  # type: ignore[return-value]


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise StudyInvalid(f"{key} must be true or false, got {value!r}.")
    return value


@dataclass(frozen=True)
class Codes:
    """Integer codes 0..size-1 that mean themselves."""

    size: int
    kind: ClassVar[str] = "codes"
    missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _size(self.size, "size")

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The codes themselves, int64."""
        import numpy as np

        return np.asarray(codes, dtype=np.int64)

    def label(self, code: int) -> str:
        """What a code means, for people."""
        return str(code)

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        return {"kind": self.kind, "size": self.size}


@dataclass(frozen=True)
class Numeric:
    """Numbers in [low, high], coded by bins of equal width (the module's docstring has the exact rule)."""

    low: int | float
    high: int | float
    bins: int
    integral: bool = False
    missing: bool = False
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        _size(self.bins, "bins")
        _flag(self.integral, "integral")
        _flag(self.missing, "missing")
        for key in ("low", "high"):
            value = getattr(self, key)
            if (
                not (_integer(value) or isinstance(value, float))
                or not math.isfinite(value)
                or abs(value) > 2**1000
            ):
                raise StudyInvalid(f"{key} must be a finite number, got {value!r}.")
            if self.integral and abs(value) > 2**53:
                raise StudyInvalid(
                    f"{key} of an integral column must lie within 2^53, where doubles are exact, got {value!r}."
                )
        if self.low >= self.high:
            raise StudyInvalid(
                f"low must be smaller than high, got low = {self.low!r} and high = {self.high!r}."
            )
        if self.integral and math.ceil(self.low) > math.floor(self.high):
            raise StudyInvalid(
                f"An integral column needs an integer between low = {self.low!r} and high = {self.high!r}."
            )
        # wider than a unit in the last place of either end: then no two edges round to the same double
        if (Fraction(self.high) - Fraction(self.low)) / self.bins <= max(
            math.ulp(self.low), math.ulp(self.high)
        ):
            raise StudyInvalid(
                f"Bins = {self.bins} between {self.low!r} and {self.high!r} are narrower than double precision."
            )

    @property
    def size(self) -> int:
        """Number of codes: the bins, and one for a missing value."""
        return self.bins + self.missing

    def edges(self) -> tuple[float, ...]:
        """The bins + 1 edges, float64; the interior ones decide a number's bin."""
        return self._edges

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        low, width = Fraction(self.low), Fraction(self.high) - Fraction(self.low)
        return tuple(float(low + width * i / self.bins) for i in range(self.bins + 1))

    def bin_of(self, value: float) -> int:
        """The code of a number, after clamping: how many interior edges are at most `value`. ValueError for a NaN."""
        if math.isnan(value):
            raise ValueError("A NaN has no bin; it is a missing value.")
        return bisect_right(self.edges(), value, 1, self.bins) - 1

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """Numbers drawn uniformly within their bins: int64 if integral, else float64; object with None where a value is missing.

        An integral column draws only integers that lie in the bin. A bin that holds none (bins narrower than 1: no record
        can have its code, only noise can) gives the integer of [low, high] nearest to its middle.
        """
        import numpy as np

        codes = np.asarray(codes, dtype=np.int64)
        absent = codes == self.bins
        bins = np.where(absent, 0, codes)
        edges = np.asarray(self.edges())
        if self.integral:
            floor, ceiling = math.ceil(self.low), math.floor(self.high)
            first = np.clip(np.ceil(edges[:-1]), floor, ceiling).astype(np.int64)
            last = np.clip(np.append(np.ceil(edges[1:-1]) - 1, ceiling), floor, ceiling).astype(np.int64)
            nearest = np.clip(np.rint(edges[:-1] / 2 + edges[1:] / 2), floor, ceiling).astype(np.int64)
            hollow = last < first
            first, last = np.where(hollow, nearest, first), np.where(hollow, nearest, last)
            values: NDArray[Any] = rng.integers(first[bins], last[bins], endpoint=True)
        else:
            share = rng.random(len(codes))
            left, right = edges[bins], edges[bins + 1]
            values = np.clip(left * (1 - share) + right * share, left, np.nextafter(right, left))
            if (step := self._step()) is not None:  # downwards, and not out of the bin
                values = np.maximum(np.floor(values * step) / step, left)
        if absent.any():
            values = values.astype(object)
            values[absent] = None
        return values

    def _step(self) -> float | None:
        """How many steps to a unit decoded numbers have: a power of ten, a thousandth of a bin or less. None: too fine to matter.

        The position within a bin is invented; more digits would only look like precision.
        """
        decimals = max(
            0, 3 - math.floor(math.log10(float((Fraction(self.high) - Fraction(self.low)) / self.bins)))
        )
        exact = decimals <= 12 and max(abs(self.low), abs(self.high)) * 10**decimals < 2**52
        return 10.0**decimals if exact else None

    def label(self, code: int) -> str:
        """What a code means, for people: the integers or the interval of its bin."""
        if code == self.bins:
            return "missing"
        edges = self.edges()
        left, right, end = edges[code], edges[code + 1], "]" if code == self.bins - 1 else ")"
        if self.integral:
            first = math.ceil(left)
            last = math.floor(right) if end == "]" else math.ceil(right) - 1
            if first <= last:
                return str(first) if first == last else f"{first} to {last}"
        return f"[{left:g}, {right:g}{end}"

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "bins": self.bins,
            "integral": self.integral,
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Categorical:
    """One of the listed values; code = position in the list."""

    values: tuple[Value, ...]
    missing: bool = False
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _flag(self.missing, "missing")
        if not self.values:
            raise StudyInvalid("values must list at least one value.")
        _size(len(self.values), "the number of values")
        seen: set[str] = set()
        for value in self.values:
            if not isinstance(value, str | int | float) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise StudyInvalid(f"values may hold texts, numbers, true and false, got {value!r}.")
            if value == "":
                raise StudyInvalid(
                    "values must not hold the empty text, which reads as a missing value: declare missing = true."
                )
            if str(value) in seen:
                raise StudyInvalid(f"values holds {value!r} twice (a table cannot tell them apart).")
            seen.add(str(value))

    @property
    def size(self) -> int:
        """Number of codes: the values, and one for a missing value."""
        return len(self.values) + self.missing

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """The values as the study lists them, None where missing; an object array."""
        import numpy as np

        table = np.empty(len(self.values) + 1, dtype=object)
        table[:-1] = self.values
        return table[np.asarray(codes, dtype=np.int64)]

    def label(self, code: int) -> str:
        """What a code means, for people."""
        return str(self.values[code]) if code < len(self.values) else "missing"

    def to_spec(self) -> dict[str, object]:
        """The column's table in canonical form."""
        return {"kind": self.kind, "values": list(self.values), "missing": self.missing}


Column = Codes | Numeric | Categorical

_KINDS: Mapping[str, tuple[type[Column], frozenset[str], frozenset[str]]] = {
    "codes": (Codes, frozenset({"size"}), frozenset()),
    "numeric": (Numeric, frozenset({"low", "high", "bins"}), frozenset({"integral", "missing"})),
    "categorical": (Categorical, frozenset({"values"}), frozenset({"missing"})),
}


def column_from_spec(spec: object, key: str) -> Column:
    """One column: a size, or a table with `kind`. `key` names it in errors. Raises `StudyInvalid`."""
    if not isinstance(spec, Mapping):
        return Codes(_size(spec, key))
    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise StudyInvalid(f'{key}.kind must be "codes", "numeric" or "categorical", got {kind!r}.')
    build, required, optional = _KINDS[kind]
    given = {name: value for name, value in spec.items() if name != "kind"}
    if absent := sorted(required - given.keys()):
        raise StudyInvalid(f"{key} is {kind} and needs the key {absent[0]}.")
    if foreign := sorted(str(name) for name in given.keys() - required - optional):
        known = ", ".join(sorted(required | optional))
        raise StudyInvalid(f"{key} has an unknown key {foreign[0]}; a {kind} column knows {known}.")
    if kind == "categorical":
        if not isinstance(given["values"], list | tuple):
            raise StudyInvalid(f"{key}.values must be a list.")
        given["values"] = tuple(given["values"])
    try:
        return build(**given)
    except StudyInvalid as error:
        raise StudyInvalid(f"{key}: {error.sentence}") from None


@dataclass(frozen=True)
class Domain:
    """The columns of a study, in order. Frozen and hashable."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.columns):
            raise StudyInvalid(f"The domain has {len(self.names)} names for {len(self.columns)} columns.")
        if not self.names:
            raise StudyInvalid("[domain] must declare at least one column.")
        if len(set(self.names)) != len(self.names):
            raise StudyInvalid(f"[domain] declares a column twice among {', '.join(self.names)}.")
        for name in self.names:
            if not isinstance(name, str) or not name or not name.isprintable():
                raise StudyInvalid(f"[domain] column names must be printable text, got {name!r}.")

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column, in order."""
        return {name: column.size for name, column in zip(self.names, self.columns, strict=True)}

    def cells(self, clique: Clique) -> int:
        """Number of cells of the clique's marginal."""
        return math.prod(self[name].size for name in clique)

    def ordered(self, names: Iterable[str]) -> Clique:
        """These columns in the domain's order."""
        wanted = set(names)
        return tuple(name for name in self.names if name in wanted)

    def subset(self, names: Iterable[str]) -> Domain:
        """The domain of these columns only, in the domain's order (vertical: what one party owns)."""
        kept = self.ordered(names)
        return Domain(kept, tuple(self[name] for name in kept))

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Domain:
        """The domain of `{"file": contents}` or `{"columns": {...}}`, or of what `to_spec` wrote. Raises `StudyInvalid`.

        contents (of the referenced JSON file, already parsed) and columns: mappings from a column's name to its size or its
        table, in the columns' order.
        """
        if foreign := sorted(str(key) for key in spec.keys() - {"file", "columns"}):
            raise StudyInvalid(f"[domain] has an unknown key {foreign[0]}; it knows file and columns.")
        if len(spec) != 1:
            raise StudyInvalid("[domain] needs either file or columns, and only one of them.")
        ((key, given),) = spec.items()
        if key == "columns" and isinstance(given, Sequence) and not isinstance(given, str | bytes):
            pairs = [_named(entry) for entry in given]
        elif isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            raise StudyInvalid(f"[domain] {key} must map each column to its size or its table.")
        prefix = "domain.columns" if key == "columns" else "the domain file's"
        joint = "." if key == "columns" else " "
        return cls(
            tuple(name for name, _ in pairs),
            tuple(column_from_spec(column, f"{prefix}{joint}{name}") for name, column in pairs),
        )

    def to_spec(self) -> dict[str, object]:
        """Canonical, JSON-able and ordered whatever becomes of the order of keys: for run.json and the study's hash."""
        return {
            "columns": [
                {"name": name, **column.to_spec()}
                for name, column in zip(self.names, self.columns, strict=True)
            ]
        }


def _named(entry: object) -> tuple[str, object]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise StudyInvalid("[domain] columns, given as a list, needs tables with a name.")
    return entry["name"], {key: value for key, value in entry.items() if key != "name"}
