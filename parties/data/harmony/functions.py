"""The functions of DuckDB that an expression of a private file may call, by what they are for.

A list of its own, not what DuckDB calls consistent: among that are clocks (current_localtime, age of one
argument), planners of SQL in a text (json_serialize_plan) and inner parts. What stands here computes one
row's value from its arguments and from nothing else. `docs/howto/harmonise.md` shows the same list. Standard
library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final = {
    "texts": (
        "array_to_string ascii bit_length char_length character_length chr concat concat_ws contains "
        "damerau_levenshtein editdist3 ends_with format hamming instr jaccard jaro_similarity jaro_winkler_similarity "
        "lcase left left_grapheme len length length_grapheme levenshtein lower lpad ltrim md5 mismatches nfc_normalize "
        "octet_length ord overlay position prefix printf replace reverse right right_grapheme rpad rtrim sha1 sha256 "
        "split split_part starts_with str_split string_split string_to_array strip_accents strlen strpos substr "
        "substring substring_grapheme suffix translate trim ucase unicode upper url_decode url_encode"
    ),
    "patterns": (
        "ilike_escape like_escape not_ilike_escape not_like_escape regexp_escape regexp_extract regexp_extract_all "
        "regexp_full_match regexp_matches regexp_replace regexp_split_to_array str_split_regex string_split_regex"
    ),
    "numbers": (
        "abs acos acosh asin asinh atan atan2 atanh bin bit_count cbrt ceil ceiling cos cosh cot degrees even exp "
        "factorial fdiv floor fmod from_binary from_hex gamma gcd greatest greatest_common_divisor hex isfinite isinf "
        "isnan lcm least least_common_multiple lgamma ln log log10 log2 mod pi pow power radians round round_even "
        "roundbankers sign signbit sin sinh sqrt tan tanh to_base to_binary to_hex trunc unbin unhex xor"
    ),
    "days and times": (
        "age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname "
        "dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear "
        "julian last_day make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns microsecond millennium "
        "millisecond minute month monthname nanosecond quarter second strftime strptime time_bucket timezone "
        "to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months "
        "to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday weekofyear year yearweek"
    ),
    "choices": "if nullif",
    "lists and JSON": (
        "array_contains array_length array_position array_slice element_at json_array_length json_extract "
        "json_extract_string json_type json_valid list_append list_avg list_concat list_contains list_count "
        "list_extract list_has list_has_all list_has_any list_indexof list_max list_min list_position list_prepend "
        "list_reverse list_reverse_sort list_slice list_sort list_sum list_unique list_value list_zip map map_contains "
        "map_extract map_extract_value map_keys map_values row"
    ),
}
FUNCTIONS: Final[Mapping[str, frozenset[str]]] = {
    purpose: frozenset(names.split()) for purpose, names in _NAMES.items()
}
"""By what they are for: names in small letters."""

_SIGNS: Final = "+ - * / // % ** ^ @ & | << >> ~ || ^@ ->> ~~ !~~ ~~* !~~* ~~~ @> <@ &&"
OPERATORS: Final = frozenset(_SIGNS.split())
"""Operators that DuckDB's parser writes as functions; comparisons, AND, OR, NOT, IN, CASE and casts are nodes
of their own."""

MIN_ARGUMENTS: Final[Mapping[str, int]] = {"age": 2, "timezone": 2}
"""Functions that with fewer arguments ask the machine: age its clock, timezone its time zone."""
