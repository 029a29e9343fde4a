"""Telephone numbers as identifiers: E.164 with the study's country for numbers written nationally
(`docs/design/psu.md` 5).

Owners write the same number in different ways; they must agree on one canonical form, `+` and up to 15
digits, without a database of numbering plans. So this knows calling codes, national prefixes and
international ones only, and refuses what it cannot read with certainty; whether a number is in service is not
its question. A country's rule is public and part of the study.

Sources: calling codes, ITU-T, List of Recommendation ITU-T E.164 assigned country codes (annex to Operational
Bulletin 1114, 15 December 2016); prefixes, ITU-T E.129 presentations of national numbering plans; countries,
ISO 3166-1 alpha-2, with XK (Kosovo), AC (Ascension) and TA (Tristan da Cunha), which have codes of their own.
Two countries have no telephone: BV and HM. The tests compare with Google's metadata (phonenumbers), which is
no part of a run: it changes every other week, and two owners with different versions of it would write one
person in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mpc_protocols.errors import StudyInvalid

_ASSIGNED = """
1 AG AI AS BB BM BS CA DM DO GD GU JM KN KY LC MP MS PR SX TC TT UM US VC VG VI, 7 KZ RU,
20 EG, 27 ZA, 211 SS, 212 EH MA, 213 DZ, 216 TN, 218 LY, 220 GM, 221 SN, 222 MR, 223 ML, 224 GN, 225 CI, 226 BF, 227 NE,
228 TG, 229 BJ, 230 MU, 231 LR, 232 SL, 233 GH, 234 NG, 235 TD, 236 CF, 237 CM, 238 CV, 239 ST, 240 GQ, 241 GA, 242 CG,
243 CD, 244 AO, 245 GW, 246 IO, 247 AC, 248 SC, 249 SD, 250 RW, 251 ET, 252 SO, 253 DJ, 254 KE, 255 TZ, 256 UG, 257 BI,
258 MZ, 260 ZM, 261 MG, 262 RE TF YT, 263 ZW, 264 NA, 265 MW, 266 LS, 267 BW, 268 SZ, 269 KM, 290 SH TA, 291 ER, 297 AW,
298 FO, 299 GL,
30 GR, 31 NL, 32 BE, 33 FR, 34 ES, 36 HU, 39 IT VA, 350 GI, 351 PT, 352 LU, 353 IE, 354 IS, 355 AL, 356 MT, 357 CY,
358 AX FI, 359 BG, 370 LT, 371 LV, 372 EE, 373 MD, 374 AM, 375 BY, 376 AD, 377 MC, 378 SM, 380 UA, 381 RS, 382 ME, 383 XK,
385 HR, 386 SI, 387 BA, 389 MK,
40 RO, 41 CH, 43 AT, 44 GB GG IM JE, 45 DK, 46 SE, 47 NO SJ, 48 PL, 49 DE, 420 CZ, 421 SK, 423 LI,
51 PE, 52 MX, 53 CU, 54 AR, 55 BR, 56 CL, 57 CO, 58 VE, 500 FK GS, 501 BZ, 502 GT, 503 SV, 504 HN, 505 NI, 506 CR, 507 PA,
508 PM, 509 HT, 590 BL GP MF, 591 BO, 592 GY, 593 EC, 594 GF, 595 PY, 596 MQ, 597 SR, 598 UY, 599 BQ CW,
60 MY, 61 AU CC CX, 62 ID, 63 PH, 64 NZ PN, 65 SG, 66 TH, 670 TL, 672 AQ NF, 673 BN, 674 NR, 675 PG, 676 TO, 677 SB, 678 VU,
679 FJ, 680 PW, 681 WF, 682 CK, 683 NU, 685 WS, 686 KI, 687 NC, 688 TV, 689 PF, 690 TK, 691 FM, 692 MH,
81 JP, 82 KR, 84 VN, 86 CN, 850 KP, 852 HK, 853 MO, 855 KH, 856 LA, 880 BD, 886 TW,
90 TR, 91 IN, 92 PK, 93 AF, 94 LK, 95 MM, 98 IR, 960 MV, 961 LB, 962 JO, 963 SY, 964 IQ, 965 KW, 966 SA, 967 YE, 968 OM,
970 PS, 971 AE, 972 IL, 973 BH, 974 QA, 975 BT, 976 MN, 977 NP, 992 TJ, 993 TM, 994 AZ, 995 GE, 996 KG, 998 UZ
"""
"""By zones: calling code, then the countries that have it."""

CALLING_CODES = {
    country: code for code, *countries in map(str.split, _ASSIGNED.split(",")) for country in countries
}
"""ISO 3166 country to ITU calling code."""

KEEPS_ZERO = frozenset(
    {"BF", "BJ", "BW", "BZ", "CG", "CI", "FJ", "IT", "MO", "NC", "NE", "SM", "SZ", "TO", "VA"}
)
"""Where a national number's leading 0 is part of the international one."""
PREFIXES = {
    "BY": "80",
    "GA": "0(?=[0-9]{8}$)",
    "HU": "06",
    "KZ": "8(?=[0-9]{10}$)",
    "LT": "[08](?=[0-9]{8}$)",
    "MH": "1(?=[0-9]{7}$)",
    "MX": "01(?=[0-9]{10}$)",
    "RU": "8(?=[0-9]{10}$)",
    "TJ": "8(?=[0-9]{9}$)",
    "TM": "8(?=[0-9]{8}$)",
    "UZ": "8(?=[0-9]{9}$)",
}
"""National prefixes other than 0, as patterns at the beginning: a number may begin with the same digit
without one."""
ABROAD = {
    **dict.fromkeys(("AU", "CC", "CX"), "0011"),
    **dict.fromkeys(("BY", "KZ", "RU", "TJ", "TM"), "810"),
    "CU": "119",
    **dict.fromkeys(("GY", "MN"), "001"),
    "JP": "010",
    "KE": "000",
    "MH": "011",
    "NG": "009",
}
"""International prefixes other than 00, and than 011 under calling code 1."""
CARRIERS = frozenset({"BR", "CL", "CO", "HK", "ID", "IL", "KH", "KR", "SG", "TH", "TW", "TZ", "UG"})
"""Where the digits after an international prefix name a carrier: only + tells where the calling code begins."""
_NORTH_AMERICA = "1"
_DIGITS = {"AR": 10}
"""Digits of a national number where other lengths have no international form that could be told from them
(mobile 15)."""
_SEPARATORS = re.compile(r"[\s().\-/~\u2010-\u2015]+")
# 7 digits with the code: the shortest numbers in use; 15: the longest that E.164 allows
_WHOLE = re.compile("[1-9][0-9]{6,14}")
# without its area code a number of this plan may be anybody's in two dozen countries
_WHOLE_NORTH_AMERICA = re.compile("1[2-9][0-9]{9}|[2-9][0-9]{6,14}")


def rule(country: str) -> Callable[[str], str | None]:
    """text -> E.164 number, or None if it is none. Raises `StudyInvalid` for an unknown country (two capital
    letters)."""
    code = CALLING_CODES.get(country)
    if code is None:
        raise StudyInvalid(
            f'[alignment] normalise = "phone:{country}": the calling code of this country is not known; write the '
            'numbers internationally in the data and use "exact".'
        )
    american = code == _NORTH_AMERICA
    prefix = re.compile(
        "" if country in KEEPS_ZERO else PREFIXES.get(country, "1(?=[0-9]{10}$)" if american else "0")
    )
    abroad = ABROAD.get(country, "011" if american else "00")

    def canonical(text: str) -> str | None:
        text = text.strip()
        digits = _SEPARATORS.sub("", text.replace("(0)", "") if text.startswith(("+", "00")) else text)
        if digits.startswith("+"):
            digits = digits[1:]
        elif digits.startswith(abroad):
            if country in CARRIERS:
                return None
            digits = digits[len(abroad) :]
        else:
            national = prefix.sub("", digits, count=1) if prefix.match(digits) else digits
            digits = code + national if len(national) == _DIGITS.get(country, len(national)) else ""
        return "+" + digits if (_WHOLE_NORTH_AMERICA if american else _WHOLE).fullmatch(digits) else None

    return canonical
