"""Tables of several custodians compared: one proposal for all, and what each must say to read its own table
like that.

Names are compared without capitals; values of one column by their words (capitals, yes and no in some
languages, the beginning of a longer word); numbers by their medians, for a factor that two units have; days as
days, however each writes them.
Whoever compares holds all the tables, so this is for a rehearsal, or for test tables; what comes out is
private like them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpc_protocols.errors import DataRefused
from runner.starting.proposals import MARKERS, Proposal, Texts, day, proposal
from synth.domain import Value

YES = frozenset({"true", "t", "yes", "y", "1", "ja", "j", "oui", "o", "sí", "si", "s", "sim", "tak"})
NO = frozenset({"false", "f", "no", "n", "0", "nein", "non", "não", "nie", "nee"})
FACTORS = (
    (0.4536, "pounds and kilograms"),
    (2.54, "inches and centimetres"),
    (18.02, "mmol/l and mg/dl of glucose"),
    (38.67, "mmol/l and mg/dl of cholesterol"),
    (88.42, "mg/dl and micromol/l of creatinine"),
    (12.0, "years and months"),
    (365.25, "years and days"),
    (100.0, "a whole and hundredths"),
    (1000.0, "a whole and thousandths"),
)
"""Of one unit and another, and which they are."""
TOLERANCE = 0.15
"""How far, relative to it, the medians of two custodians may be from such a factor: their people differ, too."""


@dataclass(frozen=True)
class OwnRule:
    """What one custodian's private file says of one column. source: its name for it, if another. units: a
    question, as words; scale: the number of the first custodian's unit in one of this one's, if so.
    spellings: of days that it does not write 2019-12-31, as of a `Proposal`."""

    source: str | None = None
    missing: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict, repr=False)
    units: str = ""
    scale: float = 1.0
    spellings: tuple[str, ...] = ()

    @classmethod
    def of(cls, one: Proposal) -> OwnRule:
        """Of a custodian whose table alone was looked at."""
        return cls(one.name if one.spellings else None, one.markers, spellings=one.spellings)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say."""
        return self == OwnRule()


@dataclass(frozen=True)
class Compared:
    """proposals: of the study's columns. rules: of each custodian, by the study's column. ignore_case:
    custodians whose names differ in capitals. notes: what nobody can decide without asking.
    """

    proposals: Sequence[Proposal]
    rules: Mapping[str, Mapping[str, OwnRule]] = field(repr=False)
    ignore_case: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def compared(tables: Mapping[str, Texts]) -> Compared:
    """The tables of custodians, by their names. Columns are in the order of the first, and are called as
    there.

    Raises `DataRefused` for a table of which two columns are called alike but for capitals, blanks and the
    like.
    """
    spelled: dict[str, dict[str, str]] = {}
    for custodian, table in tables.items():
        for name in table.columns:
            other = spelled.setdefault(_plain(name), {}).setdefault(custodian, name)
            if other != name:
                places = list(table.columns)
                raise DataRefused(
                    f"{custodian}: the names of columns {places.index(other) + 1} and {places.index(name) + 1} differ in "
                    "capitals or blanks only, so that another custodian's could be either; rename one."
                )
    found, rules, notes = [], {custodian: dict[str, OwnRule]() for custodian in tables}, list[str]()
    lacking: dict[str, list[str]] = {}
    for names in spelled.values():
        name = next(iter(names.values()))
        absent = [custodian for custodian in tables if custodian not in names]
        if absent:
            lacking.setdefault(", ".join(absent), []).append(name)
        own = {custodian: tables[custodian].columns[names[custodian]] for custodian in names}
        made = _column(name, own, {custodian: tables[custodian].rows for custodian in names})
        found.append(made.proposal)
        notes += made.notes
        for custodian, rule in made.rules.items():
            source = names[custodian]
            if source.casefold() != name.casefold() or rule.spellings or rule.units:
                rule = replace(rule, source=source)
            if not rule.silent:
                rules[custodian][name] = rule
    everywhere = [
        f"{', '.join(lacked)}: not at {absent}; a column of a horizontal study is everywhere: leave it out, or, where it has "
        f"another name there, say that by `from` under [harmonise.columns.{lacked[0]}] of the private file"
        for absent, lacked in lacking.items()
    ]
    cased = frozenset(
        custodian
        for names in spelled.values()
        for custodian, source in names.items()
        if source != (name := next(iter(names.values()))) and source.casefold() == name.casefold()
    )
    return Compared(found, rules, cased, (*everywhere, *notes))


@dataclass(frozen=True)
class _Column:
    proposal: Proposal
    rules: Mapping[str, OwnRule]
    notes: tuple[str, ...] = ()


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter not in " _-.")


def _column(name: str, own: Mapping[str, Counter[str]], rows: Mapping[str, int]) -> _Column:
    """One column of all custodians that have it."""
    alone = {custodian: proposal(name, texts, rows[custodian]) for custodian, texts in own.items()}
    markers = {custodian: alone[custodian].markers for custodian in own}
    spelled = {custodian: alone[custodian].spellings for custodian in own}
    truths = {custodian: _truths(texts) for custodian, texts in own.items()}
    if all(truth is not None for truth in truths.values()):
        missing = any(
            sum(n for text, n in texts.items() if text.casefold() not in MARKERS) < rows[custodian]
            for custodian, texts in own.items()
        )
        kept = (("missing", True),) if missing else ()
        made = {}
        for custodian, texts in own.items():
            truth = truths[custodian] or {}
            plain = {"true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"}
            made[custodian] = OwnRule(
                missing=tuple(sorted(text for text in texts if text not in truth)),
                values={text: value for text, value in truth.items() if text.casefold() not in plain},
            )
        return _Column(Proposal(name, (("kind", "boolean"), *kept)), made)
    kinds = {custodian: dict(one.keys).get("kind") for custodian, one in alone.items() if one.keys}
    if "categorical" in kinds.values() and set(kinds.values()) <= {"categorical", "boolean"}:
        return _codes(name, own, rows)
    notes = []
    if (
        len(set(kinds.values()) - {"integer", "numeric"}) + bool({"integer", "numeric"} & set(kinds.values()))
        > 1
    ):
        said = ", ".join(f"{kind} at {custodian}" for custodian, kind in kinds.items())
        notes.append(f"{name}: {said}; say by [harmonise.columns] how one becomes the other")
    units = dict(_units(own, markers)) if set(kinds.values()) <= {"integer", "numeric"} else {}
    notes += [f"{name}: {words}" for words, _ in units.values()]
    together: Counter[str] = Counter()
    for custodian, texts in own.items():
        if custodian not in units:
            for text, n in texts.items():
                if text not in markers[custodian]:
                    together[day(text, spelled[custodian][0]) if spelled[custodian] else text] += n
    counted = sum(n for custodian, n in rows.items() if custodian not in units)
    rules = {
        custodian: OwnRule(
            None, markers[custodian], {}, *units.get(custodian, ("", 1.0)), spellings=spelled[custodian]
        )
        for custodian in own
    }
    common = proposal(name, together, counted)
    keys = dict(common.keys)
    if keys and any(sum(own[each].values()) < rows[each] or markers[each] for each in units):
        common = replace(common, keys=tuple({**keys, "missing": True}.items()))
    return _Column(common, rules, tuple(notes))


def _truths(texts: Counter[str]) -> dict[str, bool] | None:
    """What each text of a column says, if all but markers of missing say yes or no."""
    found = {text: text.casefold() in YES for text in texts if text.casefold() in YES | NO}
    rest = [text for text in texts if text not in found]
    return found if found and all(text.casefold() in MARKERS for text in rest) else None


def _codes(name: str, own: Mapping[str, Counter[str]], rows: Mapping[str, int]) -> _Column:
    """A column of codes: the first custodian's spelling of each, and how the others' become it."""
    first, *others = own
    values: dict[str, None] = dict.fromkeys(sorted(own[first]))
    rules: dict[str, OwnRule] = {first: OwnRule()}
    notes = []
    for custodian in others:
        mapped: dict[str, Value] = {}
        for text in sorted(own[custodian]):
            if text in values:
                continue
            alike = [value for value in values if value.casefold() == text.casefold()] or [
                value for value in values if _begins(value, text)
            ]
            if len(alike) == 1:
                mapped[text] = alike[0]
            else:
                values[text] = None
                notes.append(f"{name}: {custodian} has {text!r}, which {first} has not")
        rules[custodian] = OwnRule(values=mapped)
    together: Counter[str] = Counter()
    for custodian, texts in own.items():
        for text, n in texts.items():
            together[str(rules[custodian].values.get(text, text))] += n
    return _Column(proposal(name, together, sum(rows.values())), rules, tuple(notes))


def _begins(one: str, other: str) -> bool:
    """Whether one of two words is a beginning of the other: M of Male."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return short.isalpha() and long.startswith(short)


def _units(
    own: Mapping[str, Counter[str]], markers: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, tuple[str, float]]]:
    """Of custodians whose numbers seem to be in another unit than the first's: the question, and the scale."""
    medians = {
        custodian: median({text: n for text, n in texts.items() if text not in markers[custodian]})
        for custodian, texts in own.items()
    }
    first, *others = own
    for custodian in others:
        if not medians[first] or not medians[custodian]:
            continue
        ratio = abs(medians[custodian] / medians[first])
        for factor, units in FACTORS:
            for times in (factor, 1 / factor):
                if abs(ratio / times - 1) <= TOLERANCE and not 0.6 < ratio < 1.7:
                    words = (
                        f"{custodian}'s numbers are about {ratio:.3g} times {first}'s, as {units} would be (a factor of "
                        f"{factor:g}); ask, and convert by `sql`"
                    )
                    yield custodian, (words, 1 / times)
                    break
            else:
                continue
            break


def median(texts: Mapping[str, int]) -> float:
    """Of numbers by their texts, each so often; 0 where one is no number."""
    try:
        numbers = sorted((float(text), n) for text, n in texts.items())
    except ValueError:
        return 0.0
    half, passed = sum(texts.values()) / 2, 0
    for number, n in numbers:
        passed += n
        if passed >= half:
            return number
    return 0.0
