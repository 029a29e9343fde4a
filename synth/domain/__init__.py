"""The domain: what values each column may take. Public, and never derived from private rows.

Everything after a custodian's own coding works on integer codes `0..size-1`; this folder says what a code
means, in both directions, so that every custodian codes alike (`parties/data/counting/coding.py`) and the
synthetic table is decoded alike. A domain guessed from the data (its categories, its smallest and largest
number) would leak without any noise (`docs/design/privacy.md` 6): it is part of the study file
(`docs/reference/study-file.md`, `[domain]`) and of the study's hash.

    codes         integers 0..size-1 as they are
    numeric       numbers in bins over [low, high], of equal width, of equal width of their logarithms, or with given edges
    integer       whole numbers low..high, each its own bin or in bins of neighbours
    date          days; datetime: times of day, too; a bin a day, week, month, quarter or year (minute, hour)
    categorical   the listed values, in their order; ordinal: the order means something; boolean: false and true

`missing = true` (all but codes) adds one more code, the last: an absent value, an empty field in a table.
`zero = true` (numeric, integer) gives the number 0 a code of its own, where it lies among the bins.

Bins, for every implementation: `edges()` are float64 numbers, from the first edge of the first bin to the
last of the last; each bin is closed on the left, the last on both sides; numbers outside are clamped. A
number's bin is how many of the interior edges are at most the number.

Standard library only at import: the launcher reads studies before anything heavy is loaded.
"""

from synth.domain.categorical import Boolean, Categorical, Ordinal
from synth.domain.codes import Codes
from synth.domain.column import Column, Value
from synth.domain.dates import Calendar, Date, DateTime
from synth.domain.domain import Domain
from synth.domain.keys import BROKEN_ROWS
from synth.domain.kinds import column_from_spec
from synth.domain.numbers import Binned, Edged, Integer, Numeric

__all__ = [
    "BROKEN_ROWS",
    "Binned",
    "Boolean",
    "Calendar",
    "Categorical",
    "Codes",
    "Column",
    "Date",
    "DateTime",
    "Domain",
    "Edged",
    "Integer",
    "Numeric",
    "Ordinal",
    "Value",
    "column_from_spec",
]
