"""Identifiers: what is the same person, what is refused, and that no two keys run together."""

from __future__ import annotations

import datetime
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.psu.identifiers import phone
from mpc_protocols.psu.identifiers.normalise import MAX_FIELD, IdentifierPolicy


def one(rule: str, value: object) -> bytes | None:
    return IdentifierPolicy(("id",), (rule,)).canonical([value])


SAME = [
    ("text", "  Ann\tLee ", "ann lee"),
    ("text", "Stra\u00dfe", "STRASSE"),
    ("text", "e\u0301", "\u00c9"),
    ("text", 17, "17"),
    ("text", np.int64(17), 17),
    ("name", "\ufb01nn", "FINN"),
    ("name", "\uff21nn", "ann"),
    ("email", " Ann.Lee@Example.ORG", "ann.lee@example.org"),
    ("date", "20240229", "2024-02-29"),
    ("date", datetime.date(2024, 2, 29), "2024-02-29"),
    ("date", np.datetime64("2024-02-29"), datetime.datetime(2024, 2, 29)),
    ("date", pd.Timestamp("2024-02-29"), "20240229"),
    ("phone:GB", "020 7946 0958", "+44 (0)20 7946-0958"),
    ("phone:GB", "0044 20 7946 0958", "02079460958"),
    ("phone:IT", "06 6982", "+39066982"),
    ("phone:US", "(212) 555-0100", "+1 212 555 0100"),
    ("phone:US", "1-212-555-0100", 2125550100),
    ("phone:HU", "06 1 234 5678", "+3612345678"),
    ("phone:RU", "8 495 123-45-67", "+7 495 1234567"),
    ("phone:DE", "030/901820", "+4930901820"),
    ("phone:RE", "0262 12 34 56", "+262 262 123456"),
    ("phone:GP", "0590 12 34 56", "00 590 590 12 34 56"),
    ("phone:PR", "(787) 555-0100", "1 787 555 0100"),
    ("phone:DO", "809 555 0100", "011 1 809 555 0100"),
    ("phone:JM", "876-555-0100", "+18765550100"),
    ("phone:GG", "01481 555 010", "+44 1481 555010"),
    ("phone:NC", "25 12 34", "+687251234"),
    ("phone:RU", "800 555 35 35", "8 800 555 35 35"),
    ("phone:RU", "8~10 44 20 7946 0958", "+442079460958"),
    ("phone:LT", "8 612 34567", "0612 34567"),
    ("phone:BJ", "01 90 12 34 56", "+2290190123456"),
    ("phone:AU", "0011 44 20 7946 0958", "+442079460958"),
    ("phone:JP", "010 44 20 7946 0958", "+442079460958"),
]
DIFFERENT = [
    ("exact", "Ann", "ann"),
    ("exact", "Ann", "Ann "),
    ("text", "ann", "anne"),
    ("text", "017", 17),
    ("text", "\ufb01nn", "\uff21nn"),
    ("email", "a.nn@x.org", "ann@x.org"),
    ("phone:GB", "02079460958", "02079460959"),
    ("date", "2024-02-03", "2024-03-02"),
]
REFUSED = [
    *(
        (rule, value)
        for rule in ("text", "name", "email", "date", "phone:GB")
        for value in ("", "  ", "n/a", "-", "Unknown", None)
    ),
    ("exact", ""),
    ("text", "NULL"),
    ("text", "nan"),
    ("text", 1.5),
    ("text", True),
    ("text", b"x"),
    ("text", "x" * (MAX_FIELD + 1)),
    ("text", "\ud800"),
    ("text", float("nan")),
    ("text", pd.NA),
    ("date", pd.NaT),
    ("date", np.datetime64("NaT")),
    ("date", "03/02/2024"),
    ("date", "2024-02-30"),
    ("date", datetime.datetime(2024, 2, 29, 1)),
    ("email", "ann"),
    ("email", "@x.org"),
    ("email", "a b@x.org"),
    ("email", "a@b@x.org"),
    ("phone:GB", "12"),
    ("phone:GB", "call me"),
    ("phone:GB", "+44 20 7946 0958 0958 09"),
    ("phone:AG", "460 0100"),  # without its area code: another island's, too
    ("phone:AR", "011 15 2345 6789"),  # +54 9 11 2345 6789: where the area code ends is not in the number
    ("phone:SG", "001 44 20 7946 0958"),  # which digits are the carrier's is not certain
]


@pytest.mark.parametrize(("rule", "left", "right"), SAME)
def test_the_same_person(rule: str, left: object, right: object) -> None:
    assert one(rule, left) == one(rule, right) is not None


@pytest.mark.parametrize(("rule", "left", "right"), DIFFERENT)
def test_different_people(rule: str, left: object, right: object) -> None:
    assert None is not one(rule, left) != one(rule, right) is not None


@pytest.mark.parametrize(("rule", "value"), REFUSED)
def test_refused(rule: str, value: object) -> None:
    assert one(rule, value) is None


COUNTRIES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC CD CF CG CH
CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM
GN GP GQ GR GS GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC
LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU
NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY
SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
"""ISO 3166-1 alpha-2 without BV and HM, two uninhabited islands that have no telephone."""


def test_every_country_has_a_calling_code() -> None:
    countries = COUNTRIES.split()
    assert len(countries) == 249 - 2 and set(phone.CALLING_CODES) == {*countries, "AC", "TA", "XK"}
    assert all(re.fullmatch("[1-9][0-9]{0,2}", code) for code in phone.CALLING_CODES.values())
    codes = sorted(set(phone.CALLING_CODES.values()))
    for shorter, longer in pairwise(codes):  # E.164: no code begins with another
        assert not longer.startswith(shorter), (shorter, longer)
    assert {*phone.KEEPS_ZERO, *phone.PREFIXES, *phone.ABROAD, *phone.CARRIERS} <= set(phone.CALLING_CODES)


@pytest.mark.parametrize("country", COUNTRIES.split())
def test_any_country_s_numbers_are_read(country: str) -> None:
    """As its study says "phone:CC": the national number and the international one are the same person's."""
    code = phone.CALLING_CODES[country]
    national = "2015550100" if code in ("1", "54") else "26012345"
    assert one(f"phone:{country}", national) == one(f"phone:{country}", f"+{code} {national}") is not None


def test_a_person_may_be_called_null() -> None:
    assert one("name", "Null") is not None and one("exact", "n/a") is not None


@pytest.mark.parametrize("rule", ["text", "exact", "name", "email", "date", "phone:GB"])
@given(
    st.text(max_size=12)
    | st.from_regex(r"[0-9 ()+-]{5,14}|[a-zA-Z.]+@[a-z.]+", fullmatch=True)
    | st.from_regex(r"[12][09][0-9]{2}-?[01][0-9]-?[0-3][0-9]", fullmatch=True)
)
def test_canonical_forms_are_stable(rule: str, text: str) -> None:
    """Normalising what is normal changes nothing; a real identifier begins with byte 0 and the field's
    length."""
    encoded = one(rule, text)
    if encoded is not None:
        assert encoded[:5] == b"\0" + (len(encoded) - 5).to_bytes(4, "big")
        assert one(rule, encoded[5:].decode()) == encoded


@given(
    st.tuples(st.text(min_size=1), st.text(min_size=1)), st.tuples(st.text(min_size=1), st.text(min_size=1))
)
def test_composite_keys_do_not_run_together(left: tuple[str, str], right: tuple[str, str]) -> None:
    policy = IdentifierPolicy(("a", "b"), ("exact", "exact"))
    a, b = policy.canonical(left), policy.canonical(right)
    assert a is None or b is None or (a == b) == (left == right)


def test_length_prefixes() -> None:
    policy = IdentifierPolicy(("a", "b"), ("exact", "exact"))
    assert policy.canonical(["ab", "c"]) != policy.canonical(["a", "bc"])
    assert policy.canonical(["a", ""]) is None


def test_tables() -> None:
    policy = IdentifierPolicy(("id", "born"), ("text", "date"), "first")
    born = [datetime.date(2000, 1, 1)] * 4
    made = policy.encode([["b", "a", "A ", "c"], born], "north")
    assert made.rows.tolist() == [0, 1, 3] and made.duplicates == 1 and made.kinds == ("text", "date")
    assert made.entries == [policy.canonical([key, "2000-01-01"]) for key in "bac"]
    assert "entries" not in repr(made) and "duplicates" not in repr(made)
    assert policy.encode([[], []], "north").kinds == ("untyped", "untyped")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["ann", None], "in column 'id' of row 2 is missing"),
        (["secret", "n/a"], "row 2 is a placeholder or cannot be read as 'text'"),
        (["secret", 5], "holds integer, text values"),
        ([1.5], "holds floating point values"),
        ([True], "holds boolean values"),
        (["secret", "SECRET "], "several rows with the same identifier"),
    ],
)
def test_refusals_name_place_and_no_value(column: list[object], words: str) -> None:
    with pytest.raises(DataRefused, match=words) as refused:
        IdentifierPolicy(("id",), ("text",)).encode([column], "north")
    assert refused.value.sentence.startswith("Party north") and "secret" not in refused.value.sentence.lower()
    assert refused.value.sentence.endswith(".") and refused.value.exit_code == 30


def test_policies_are_validated() -> None:
    for columns, rules, words in (
        ((), (), "must name one"),
        (("a",), ("text", "text"), "one rule for each"),
        (("a", "a"), ("text", "text"), "different columns"),
        (("a",), ("soundex",), "is not one of"),
        (("a",), ("phone:XX",), "calling code of this country"),
    ):
        with pytest.raises(StudyInvalid, match=words):
            IdentifierPolicy(columns, rules)
    with pytest.raises(StudyInvalid, match="refuse"):
        IdentifierPolicy(("a",), ("text",), "last")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="same length"):
        IdentifierPolicy(("a", "b"), ("text", "text")).encode([["x"], []], "north")
