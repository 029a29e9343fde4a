"""The language of questions: text becomes one of a few frozen objects. Nothing is evaluated here, and no text
is ever run.

    question   = expression [ "|" names ]  |  [ "linear" | "logistic" ] "(" fit ")"  |  fit  |  "table(" names ")"
    fit        = ( name | condition ) "~" formula             the formula in formulaic's language (`regression.py`)
    expression = sums, differences, products and quotients of numbers and of
                 mean(name [| conditions])                share(conditions [| conditions])      count([conditions])
                 quantile(name, number [| conditions])    median(name [| conditions])           sum(name [| conditions])
                 corr(name, name)                         cramers_v(name, name)
    conditions = condition { "&" condition }
    condition  = name ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value  |  name "in" "[" value { "," value } "]"

A name that is no identifier stands in backticks. `mean(income) | sex` is a mean for each value of sex.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from synth.inference.licence import Unanswerable

Value = str | int | float | bool
MAX_LENGTH = 2000
MAX_DEPTH, MAX_OPERATIONS = 30, 100
"""Of brackets and signs inside one another, and of operations in one question: each is a call inside another
one."""
MAX_WHOLE = 1 << 63
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<quoted>`[^`]+`)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>==|!=|<=|>=|[-+*/(),|&<>\[\]]))"
)


@dataclass(frozen=True)
class Condition:
    """What a column is to be. values: one, or with "in" several."""

    column: str
    operator: Literal["==", "!=", "<", "<=", ">", ">=", "in"]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Number:
    """A number as written."""

    value: float


@dataclass(frozen=True)
class Call:
    """A statistic. columns: its arguments; of: a share's or count's conditions; at: a quantile's."""

    name: str
    columns: tuple[str, ...] = ()
    of: tuple[Condition, ...] = ()
    given: tuple[Condition, ...] = ()
    at: float = 0.5


@dataclass(frozen=True)
class Binary:
    """An operation of two expressions."""

    operator: str
    left: Expression
    right: Expression


Expression = Number | Call | Binary


@dataclass(frozen=True)
class Statistic:
    """An expression, for each combination of values of `by`."""

    expression: Expression
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The counts of all cells."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Fit:
    """A regression. outcome: a column or conditions. formula: its right side."""

    kind: Literal["linear", "logistic"]
    outcome: str | tuple[Condition, ...]
    formula: str


Question = Statistic | Table | Fit
ONE, TWO = ("mean", "median", "quantile", "sum"), ("corr", "cramers_v")
CALLS = (*ONE, *TWO, "share", "count", "table", "linear", "logistic")


def parse(text: str) -> Question:
    """The question. Raises `Unanswerable` with what was expected, and where."""
    if len(text) > MAX_LENGTH:
        raise Unanswerable(f"A question has at most {MAX_LENGTH:,} characters, got {len(text):,}.")
    left, tilde, right = text.partition("~")
    if tilde:
        return _fit(text, left, right)
    reader = _Reader(text, text)
    if reader.takes("table"):
        reader.need("(")
        columns = reader.names()
        reader.need(")")
        reader.end()
        return Table(columns)
    expression = reader.expression()
    by = reader.names() if reader.takes("|") else ()
    reader.end()
    return Statistic(expression, by)


def _fit(text: str, left: str, right: str) -> Fit:
    kind: Literal["linear", "logistic"] = "linear"
    wrapped = re.fullmatch(r"\s*(linear|logistic)\s*\((.*)", left, re.DOTALL)
    if wrapped:
        kind = "logistic" if wrapped[1] == "logistic" else "linear"
        left, right = wrapped[2], right.strip()
        if not right.endswith(")"):
            raise Unanswerable(f"The question {text!r:.80} lacks a closing parenthesis at its end.")
        right = right[:-1]
    if not right.strip() or "~" in right:
        raise Unanswerable(f"The question {text!r:.80} needs one formula behind its ~, such as age + sex.")
    reader = _Reader(left, text)
    bracket = reader.takes("(")
    outcome: str | tuple[Condition, ...]
    outcome = reader.conditions() if reader.has_condition() else reader.name()
    if bracket:
        reader.need(")")
    reader.end()
    return Fit(kind, outcome, right.strip())


def _goes_on(question: str, at: str) -> Unanswerable:
    """Of a question that is complete before something that people write for a condition or a group."""
    return Unanswerable(
        f"The question {question!r:.80} ends before {at!r:.20}; a condition stands inside its brackets, as in "
        "mean(age | sex == 'F'), and what it is grouped by behind them, as in mean(age) | sex."
    )


class _Reader:
    """Tokens of a text, taken from the left. whole: the question, for sentences."""

    def __init__(self, text: str, whole: str) -> None:
        self._whole, self._tokens, place = whole, list[tuple[str, str]](), 0
        text = text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None and re.match(r"\s*=[^=]", text[place:]):
                raise Unanswerable(f"The question {whole!r:.80} has a single =; a comparison is written ==.")
            if match is None and text[place:].strip().startswith(":"):
                raise _goes_on(whole, ":")
            if match is None:
                raise Unanswerable(
                    f"The question {whole!r:.80} has something unreadable at {text[place:].strip()!r:.20}; texts stand in "
                    "quotes, names with other than letters in backticks."
                )
            assert match.lastgroup is not None
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self._place = self._depth = self._operations = 0

    def _count(self) -> None:
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            raise Unanswerable(
                f"The question {self._whole!r:.80} has more than {MAX_OPERATIONS} operations; ask it in parts."
            )

    def _at(self, ahead: int = 0) -> tuple[str, str]:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else ("end", "the end")

    def takes(self, word: str) -> bool:
        """Whether this comes next; then it is taken."""
        kind, text = self._at()
        if kind in ("sign", "name") and text == word:
            self._place += 1
            return True
        return False

    def need(self, word: str) -> None:
        """Take this, or say that it is missing."""
        if not self.takes(word):
            self._refuse(repr(word))

    def _refuse(self, expected: str) -> None:
        raise Unanswerable(
            f"The question {self._whole!r:.80} needs {expected} where it has {self._at()[1]!r:.20}; its forms: "
            f"{', '.join(CALLS)} and outcome ~ formula."
        )

    def end(self) -> None:
        """Nothing may follow."""
        if self._at()[0] != "end":
            raise _goes_on(self._whole, self._at()[1])

    def name(self) -> str:
        """A column's name."""
        kind, text = self._at()
        if kind not in ("name", "quoted"):
            self._refuse("the name of a column")
        self._place += 1
        return text.strip("`") if kind == "quoted" else text

    def names(self) -> tuple[str, ...]:
        """Names, separated by commas."""
        found = [self.name()]
        while self.takes(","):
            found.append(self.name())
        return tuple(found)

    def _value(self) -> Value:
        negative = self.takes("-")
        kind, text = self._at()
        if kind == "number" or (negative and kind != "number"):
            if kind != "number":
                self._refuse("a number")
            self._place += 1
            number: int | float = float(text)
            if not re.search(r"[.eE]", text) and number < MAX_WHOLE:
                number = int(text)
            if self._at()[1] == "-" and self._at(1)[0] == "number":
                raise Unanswerable(
                    f"The question {self._whole!r:.80} has a day without quotes; days and times are written '2019-12-31'."
                )
            return -number if negative else number
        if kind not in ("text", "name"):
            self._refuse("a value")
        self._place += 1
        if kind == "name" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        return text[1:-1] if kind == "text" else text

    def has_condition(self) -> bool:
        """Whether a name and an operator come next."""
        return self._at()[0] in ("name", "quoted") and self._at(1)[1] in (
            "==",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "in",
        )

    def conditions(self) -> tuple[Condition, ...]:
        """One or more, joined by &."""
        found = [self._condition()]
        while self.takes("&"):
            found.append(self._condition())
        return tuple(found)

    def _condition(self) -> Condition:
        column = self.name()
        for operator in ("==", "!=", "<=", ">=", "<", ">"):
            if self.takes(operator):
                return Condition(column, operator, (self._value(),))
        if not self.takes("in"):
            self._refuse(f"a comparison, such as {column} == ...,")
        self.need("[")
        values = [self._value()]
        while self.takes(","):
            values.append(self._value())
        self.need("]")
        return Condition(column, "in", tuple(values))

    def expression(self) -> Expression:
        """Sums and differences of products and quotients."""
        return self._chain("+-", lambda: self._chain("*/", self._factor))

    def _chain(self, signs: str, operand: Callable[[], Expression]) -> Expression:
        """Operands with one of the signs between them, from left to right."""
        found = operand()
        while sign := next(filter(self.takes, signs), None):
            self._count()
            found = Binary(sign, found, operand())
        return found

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unanswerable(
                f"The question {self._whole!r:.80} has more than {MAX_DEPTH} brackets or signs inside one another."
            )
        found = self._inner()
        self._depth -= 1
        return found

    def _inner(self) -> Expression:
        if self.takes("-"):
            return Binary("-", Number(0.0), self._factor())
        if self.takes("("):
            found = self.expression()
            self.need(")")
            return found
        kind, text = self._at()
        if kind == "number":
            self._place += 1
            return Number(float(text))
        return self._call()

    def _call(self) -> Expression:
        name = self._at()[1]
        if name not in CALLS or self._at(1)[1] != "(":
            self._refuse("a statistic, such as mean(...)")
        self._place += 2
        columns: tuple[str, ...] = ()
        of: tuple[Condition, ...] = ()
        at = 0.5
        if name in ONE:
            columns = (self.name(),)
            if name == "quantile":
                self.need(",")
                kind, text = self._at()
                if kind != "number" or not 0 < float(text) < 1:
                    self._refuse("a number between 0 and 1")
                self._place += 1
                at = float(text)
        elif name in TWO:
            columns = (self.name(),)
            self.need(",")
            columns += (self.name(),)
        elif name == "share" or (name == "count" and self._at()[1] != ")"):
            of = self.conditions()
        elif name != "count":
            self._refuse("an expression")
        given = self.conditions() if name not in (*TWO, "count") and self.takes("|") else ()
        self.need(")")
        return Call(name, columns, of, given, at)
