"""One column's codes as a CASE where the database has texts: see `cases.py`."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from parties.data.libraries import sa
from parties.data.sql.cases import UNREAD, Cases, Untranslated, When
from parties.data.sql.probe import Probe, grouped
from parties.data.sql.thresholds import written
from synth.domain.categorical import DECIMAL

if TYPE_CHECKING:
    from parties.data.sql.products import Expression, Product

_DIGITS = "^-?[0-9]{1,40}([.][0-9]{0,40})?!$"


def listed(whens: list[When], probe: Probe, x: Expression, database: Product) -> Cases:
    """What becomes of texts."""
    exact = database.exact(x)
    if not database.empty_is_null:
        whens.append(When(exact == database.given(""), probe("")))
    atoms = [text for text in probe.listed if text]
    whens += grouped(exact, [(atom, database.given(atom)) for atom in atoms], probe)
    numbers = _declared(probe)
    if numbers and not database.patterns:
        raise Untranslated("the study lists numbers, and the database has text and no regular expressions")
    taken = set(atoms)
    for value in numbers:
        if (spelling := _another(value, taken)) is not None:
            whens.append(When(_is_number(x, value), probe(spelling)))
    other = "no such value"
    while other in taken or other.lower() in taken:
        other += "_"
    rest = probe(other)
    if rest.reason:
        return Cases(tuple(whens), rest)
    return Cases((*whens, When(x.is_not(None), rest)), UNREAD)


def _declared(probe: Probe) -> list[Fraction]:
    """Numbers of which any plain decimal writing is meant."""
    named = [Fraction(text) for text in probe.named if DECIMAL.fullmatch(text)]
    return list(dict.fromkeys([*named, *probe.column.decimals]))


def _another(value: Fraction, taken: Iterable[str]) -> str | None:
    """A plain decimal writing of a number that is not singled out; None if there is no room for one."""
    digits = _plain(value)
    whole, _, rest = digits.lstrip("-").partition(".")
    for zeros in range(1, 41 - len(whole)):
        text = ("-" if value < 0 else "") + "0" * zeros + whole + (f".{rest}" if rest else "")
        if text not in taken and len(rest) <= 40:
            return text
    return None


def _plain(value: Fraction) -> str:
    scale = 0
    while (value * 10**scale).denominator != 1:
        scale += 1
    return written(int(value * 10**scale), scale)


def _is_number(text: Expression, value: Fraction) -> Expression:
    """Whether a text is this number's plain decimal writing. A sign behind it keeps `$` from passing over a
    line's end."""
    whole, _, rest = _plain(value).lstrip("-").partition(".")
    whole = whole.lstrip("0")
    sign = "-" if value < 0 else "" if value else "-?"
    pattern = f"^{sign}0*{whole}" if whole else f"^{sign}0+"
    pattern += f"[.]{rest}0*!$" if rest else "([.]0*)?!$"
    ended = sa.cast(text, sa.String(4000)) + sa.literal("!", sa.String())
    return sa.and_(ended.regexp_match(pattern), ended.regexp_match(_DIGITS))
