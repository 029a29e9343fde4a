"""Telephone numbers as identifiers: E.164 with the study's country for numbers written nationally (`psu.md` 5).

Owners write the same number in different ways; they must agree on one canonical form, `+` and up to 15 digits, without a
database of numbering plans. So this knows calling codes and national prefixes only, and refuses what it cannot read with
certainty; whether a number is in service is not its question. A country's rule is public and part of the study.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mpc_protocols.errors import StudyInvalid

CALLING_CODES = {
    "AD": "376",
    "AE": "971",
    "AF": "93",
    "AL": "355",
    "AM": "374",
    "AO": "244",
    "AR": "54",
    "AT": "43",
    "AU": "61",
    "AW": "297",
    "AZ": "994",
    "BA": "387",
    "BD": "880",
    "BE": "32",
    "BF": "226",
    "BG": "359",
    "BH": "973",
    "BI": "257",
    "BJ": "229",
    "BN": "673",
    "BO": "591",
    "BR": "55",
    "BT": "975",
    "BW": "267",
    "BY": "375",
    "BZ": "501",
    "CA": "1",
    "CD": "243",
    "CF": "236",
    "CG": "242",
    "CH": "41",
    "CI": "225",
    "CL": "56",
    "CM": "237",
    "CN": "86",
    "CO": "57",
    "CR": "506",
    "CU": "53",
    "CV": "238",
    "CY": "357",
    "CZ": "420",
    "DE": "49",
    "DJ": "253",
    "DK": "45",
    "DZ": "213",
    "EC": "593",
    "EE": "372",
    "EG": "20",
    "ER": "291",
    "ES": "34",
    "ET": "251",
    "FI": "358",
    "FJ": "679",
    "FO": "298",
    "FR": "33",
    "GA": "241",
    "GB": "44",
    "GE": "995",
    "GH": "233",
    "GI": "350",
    "GL": "299",
    "GM": "220",
    "GN": "224",
    "GQ": "240",
    "GR": "30",
    "GT": "502",
    "GW": "245",
    "GY": "592",
    "HK": "852",
    "HN": "504",
    "HR": "385",
    "HT": "509",
    "HU": "36",
    "ID": "62",
    "IE": "353",
    "IL": "972",
    "IN": "91",
    "IQ": "964",
    "IR": "98",
    "IS": "354",
    "IT": "39",
    "JO": "962",
    "JP": "81",
    "KE": "254",
    "KG": "996",
    "KH": "855",
    "KM": "269",
    "KR": "82",
    "KW": "965",
    "KZ": "7",
    "LA": "856",
    "LB": "961",
    "LI": "423",
    "LK": "94",
    "LR": "231",
    "LS": "266",
    "LT": "370",
    "LU": "352",
    "LV": "371",
    "LY": "218",
    "MA": "212",
    "MC": "377",
    "MD": "373",
    "ME": "382",
    "MG": "261",
    "MK": "389",
    "ML": "223",
    "MM": "95",
    "MN": "976",
    "MO": "853",
    "MR": "222",
    "MT": "356",
    "MU": "230",
    "MV": "960",
    "MW": "265",
    "MX": "52",
    "MY": "60",
    "MZ": "258",
    "NA": "264",
    "NE": "227",
    "NG": "234",
    "NI": "505",
    "NL": "31",
    "NO": "47",
    "NP": "977",
    "NZ": "64",
    "OM": "968",
    "PA": "507",
    "PE": "51",
    "PG": "675",
    "PH": "63",
    "PK": "92",
    "PL": "48",
    "PS": "970",
    "PT": "351",
    "PY": "595",
    "QA": "974",
    "RO": "40",
    "RS": "381",
    "RU": "7",
    "RW": "250",
    "SA": "966",
    "SC": "248",
    "SD": "249",
    "SE": "46",
    "SG": "65",
    "SI": "386",
    "SK": "421",
    "SL": "232",
    "SM": "378",
    "SN": "221",
    "SO": "252",
    "SR": "597",
    "SS": "211",
    "SV": "503",
    "SY": "963",
    "SZ": "268",
    "TD": "235",
    "TG": "228",
    "TH": "66",
    "TJ": "992",
    "TL": "670",
    "TM": "993",
    "TN": "216",
    "TR": "90",
    "TW": "886",
    "TZ": "255",
    "UA": "380",
    "UG": "256",
    "US": "1",
    "UY": "598",
    "UZ": "998",
    "VA": "39",
    "VE": "58",
    "VN": "84",
    "XK": "383",
    "YE": "967",
    "ZA": "27",
    "ZM": "260",
    "ZW": "263",
}
"""ISO 3166 country to ITU calling code."""

KEEPS_ZERO = frozenset({"IT", "SM", "VA", "CI", "CG"})
"""Where a national number's leading 0 is part of the international one."""
PREFIXES = {"HU": "06", "RU": "8", "KZ": "8", "BY": "80", "TM": "8", "US": "1", "CA": "1"}
"""National prefixes other than 0."""
_SEPARATORS = re.compile(r"[\s().\-/\u2010-\u2015]+")


def rule(country: str) -> Callable[[str], str | None]:
    """text -> E.164 number, or None if it is none. Raises `StudyInvalid` for an unknown country (two capital letters)."""
    code = CALLING_CODES.get(country)
    if code is None:
        raise StudyInvalid(
            f'[alignment] normalise = "phone:{country}": the calling code of this country is not known; write the '
            'numbers internationally in the data and use "exact"'
        )
    prefix = "" if country in KEEPS_ZERO else PREFIXES.get(country, "0")
    abroad = "011" if code == "1" else "810" if code == "7" else "00"

    def canonical(text: str) -> str | None:
        digits = _SEPARATORS.sub(
            "", text.strip().replace("(0)", "") if text.strip().startswith(("+", "00")) else text
        )
        if digits.startswith("+"):
            digits = digits[1:]
        elif digits.startswith(abroad):
            digits = digits[len(abroad) :]
        else:
            national = digits.removeprefix(prefix)
            digits = code + national if national else ""
        # 7 digits with the code: the shortest numbers in use; 15: the longest that E.164 allows
        return "+" + digits if re.fullmatch(r"[1-9][0-9]{6,14}", digits) else None

    return canonical
