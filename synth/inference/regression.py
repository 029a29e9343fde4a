"""Coefficients of linear and logistic regressions as functions of moments.

A linear fit needs the sums of products of its design's columns, two at a time: b = M^-1 m, db = M^-1 (dm - dM
b). A logistic fit solves sum of z (y - s(z' b)) = 0, so that it needs the counts of all regressors together
and, with each of them, the outcome: db = I^-1 (dm - dG), G the sum of z s(z' b) with b held still, I the
information.

Formulas are read by formulaic; a factor is a column, by itself or as C(column), and nothing in a formula is
ever evaluated. Numbers enter as they are (bins by their middles), all other columns by indicators of every
value but the first. Rows that lack a value of any column are left out. An outcome that is a column of texts
needs a condition in its place.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synth.domain import Domain
from synth.inference.language import Fit
from synth.inference.licence import NoFormulas, Unanswerable, Uncertain
from synth.inference.moments import Array, Moment, Moments, Part, Scalar, Solution
from synth.inference.parts import Codes_of, joined, kinds, need, number, of_conditions, present

MAX_TERMS = 60
MAX_EXPONENT, MAX_WORK = 9, 10_000
"""Of (a + b + ..)**n, and of the products that multiplying out a formula takes: somebody else may have
written it."""
NOTHING = 1e-100
"""A sum of squares that a float can hardly invert: of a regressor that the model gives to nobody."""
COLLINEAR = 1e-8
MAX_ITERATIONS, SETTLED = 50, 1e-6
"""Of a logistic fit, and by how much the log odds of any row may still change at its last step. Without a
solution they change by about 1 each time, for ever."""
DECIDED = (
    "By the measurements and their noise some value of the regressors may decide the outcome by itself: leave it out, or take "
    "values together."
)
MAY_BE_COLLINEAR = "By the measurements and their noise the regressors may be collinear: leave out one, or take values together."
UNSOLVED = (
    "The logistic regression has no solution by these counts: regressors are collinear, or some value of theirs decides the "
    "outcome by itself."
)
Guards = tuple[tuple[Scalar, str], ...]


def coefficients(
    fit: Fit, domain: Domain, codes_of: Codes_of, moments: Moments
) -> list[tuple[str, Scalar, Guards]]:
    """Name and value of each. Raises `Unanswerable`: an unknown column, collinear regressors; `NoFormulas`;
    and what `moments` raises."""
    design, columns = _design(fit.formula, domain)
    if isinstance(fit.outcome, str):
        need(domain, [fit.outcome])
        outcome = {fit.outcome: number(domain[fit.outcome], fit.outcome)}
        if fit.kind == "logistic" and set(np.unique(outcome[fit.outcome].centre)) - {0.0, 1.0}:
            raise Unanswerable(
                f"A logistic regression needs an outcome of 0 and 1; write a condition, such as "
                f"{fit.outcome} == ... ~ {fit.formula}."
            )
    else:
        outcome = of_conditions(domain, fit.outcome, codes_of)
    if both := sorted(set(outcome) & columns):
        raise Unanswerable(f"The column {both[0]} is on both sides of the formula.")
    there = {name: present(domain[name]) for name in domain.names if name in columns | set(outcome)}
    parts = [part for _, part in design]
    _check(parts, {name: part for name, part in there.items() if name in columns})
    right = [moments.product(joined(part, outcome, there)) for part in parts]
    names = [name for name, _ in design]
    if fit.kind == "linear":
        found, guards = _linear(parts, right, there, moments)
    else:
        found, guards = _logistic(
            parts, right, tuple(n for n in domain.names if n in columns), there, moments
        )
    return [(name, scalar, guards) for name, scalar in zip(names, found, strict=True)]


def _design(formula: str, domain: Domain) -> tuple[list[tuple[str, dict[str, Part]]], set[str]]:
    """Names and functions of the design's columns, and the columns of the table that they need."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise NoFormulas(
            "Regressions are written in formulaic's language, and formulaic is not installed."
        ) from None
    try:
        if _work(DefaultFormulaParser().get_ast(formula)) > MAX_WORK:
            raise Unanswerable(
                f"The formula {formula!r:.60} would be multiplied out into very many terms; at most {MAX_TERMS} are fitted."
            )
        terms = list(Formula(formula))
        factors = [[(factor.expr, factor.eval_method.value) for factor in term.factors] for term in terms]
    except (
        FormulaicError,
        SyntaxError,
        AttributeError,
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ):
        raise Unanswerable(
            f"The formula {formula!r:.60} cannot be read; write it as age + sex, or age * C(sex)."
        ) from None
    design: list[tuple[str, dict[str, Part]]] = []
    columns: set[str] = set()
    for term in factors:
        sides = []
        for text, method in term:
            if method == "literal":
                if text not in ("1", "1.0"):
                    raise Unanswerable(
                        f"The formula {formula!r:.60} holds the number {text:.20}; only 1 and 0, for the intercept, have a "
                        "meaning."
                    )
                continue
            sides.append(_factor(text, formula, domain, columns))
        _check_terms(len(design) + math.prod(map(len, sides)))
        for combination in itertools.product(*sides):
            name = ":".join(label for label, _ in combination) or "Intercept"
            design.append((name, joined(*(part for _, part in combination))))
    if not design:
        raise Unanswerable(f"The formula {formula!r:.60} has no term.")
    return design, columns


def _check_terms(count: int) -> None:
    if count > MAX_TERMS:
        raise Unanswerable(f"The formula has {count} terms or more; at most {MAX_TERMS} are fitted.")


def _work(node: Any) -> int:
    """How many products multiplying out a formula takes, at most; 1 of a single factor. node: formulaic's
    tree of it, in which nothing has been multiplied out. Raises ValueError for an exponent that no formula
    has."""
    if not hasattr(node, "operator"):
        return 1
    sign, sizes = node.operator.symbol, [_work(each) for each in node.args]
    if sign in ("**", "^"):
        exponent = int(str(getattr(node.args[1], "token", "")))
        if not 1 <= exponent <= MAX_EXPONENT:
            raise ValueError(f"The exponent of a formula is a whole number from 1 to {MAX_EXPONENT}.")
        return min(int(sizes[0] ** exponent) * exponent, MAX_WORK + 1)
    added = 0 if sign == ":" else sum(sizes)
    multiplied = 0 if sign in ("+", "-") else math.prod(sizes)
    return min(added + multiplied, MAX_WORK + 1)


def _factor(text: str, formula: str, domain: Domain, columns: set[str]) -> list[tuple[str, dict[str, Part]]]:
    match = re.fullmatch(r"C\((.*)\)", text, re.DOTALL)
    name = (match[1].strip() if match else text).strip("`")
    if name not in domain:
        if re.search(r"[(\[]", name):
            raise Unanswerable(
                f"The formula {formula!r:.60} holds {text!r:.30}; a factor is a column or C(column), and "
                "functions are not computed."
            )
        need(domain, [name])
    columns.add(name)
    if match is None:
        try:
            return [(name, {name: number(domain[name], name)})]
        except Unanswerable:
            pass
    labels, parts = kinds(domain[name], name)
    return [(f"{name}[{label}]", {name: part}) for label, part in zip(labels[1:], parts[1:], strict=True)]


def _check(parts: Sequence[dict[str, Part]], there: dict[str, Part]) -> None:
    """Raise `Unanswerable` if the regressors are collinear whatever the rows are: their products, each value
    equally often."""
    matrix = np.ones((len(parts), len(parts)))
    for i, j in itertools.combinations_with_replacement(range(len(parts)), 2):
        for part in joined(parts[i], parts[j], there).values():
            matrix[i, j] *= part.centre.mean()
        matrix[j, i] = matrix[i, j]
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    if np.linalg.eigvalsh(matrix * np.outer(scale, scale))[0] < COLLINEAR:
        raise Unanswerable("The regressors are collinear: leave out one of those that the others determine.")


def _smallest(matrix: Array, scalars: Sequence[Sequence[Scalar]]) -> tuple[Scalar, str]:
    """The smallest eigenvalue of a matrix scaled to a unit diagonal, as a number that must be clearly
    positive.

    Raises `Uncertain` where it is not positive."""
    diagonal = np.diag(matrix)
    if (diagonal <= NOTHING).any():
        raise Uncertain(MAY_BE_COLLINEAR)
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
    if values[0] < COLLINEAR:
        raise Uncertain(MAY_BE_COLLINEAR)
    direction = vectors[:, 0] * scale
    found = Scalar(0.0)
    for i, row in enumerate(scalars):
        for j, of in enumerate(row):
            found = found + of * Scalar(float(direction[i] * direction[j]))
    return found, MAY_BE_COLLINEAR


def _combined(inverse: Array, value: Array, residuals: Sequence[Scalar]) -> list[Scalar]:
    """value + inverse times what the residuals (0 here) become."""
    found = []
    for k, row in enumerate(inverse):
        total = Scalar(0.0)
        for weight, residual in zip(row, residuals, strict=True):
            total = total + residual * Scalar(float(weight))
        found.append(Scalar(float(value[k]), total.gradient))
    return found


def _linear(
    parts: Sequence[dict[str, Part]], right: Sequence[Scalar], there: dict[str, Part], moments: Moments
) -> tuple[list[Scalar], Guards]:
    size = len(parts)
    scalars: list[list[Scalar]] = [[Scalar(0.0)] * size for _ in range(size)]
    for i, j in itertools.combinations_with_replacement(range(size), 2):
        scalars[i][j] = scalars[j][i] = moments.product(joined(parts[i], parts[j], there))
    matrix = np.array([[of.value for of in row] for row in scalars])
    guard = _smallest(matrix, scalars)
    inverse = np.linalg.inv(matrix)
    value = inverse @ np.array([of.value for of in right])
    residuals = []
    for i in range(size):
        residual = right[i]
        for j in range(size):
            residual = residual - scalars[i][j] * Scalar(float(value[j]))
        residuals.append(residual)
    found = _combined(inverse, value, residuals)
    lower = np.linalg.cholesky(matrix)
    system = scalars, _combined(lower.T, np.zeros(size), found), np.linalg.inv(lower).T
    # a regressor that hardly any row has is scaled to a unit diagonal like all others: its own size counts, too
    sizes = ((scalars[i][i], guard[1]) for i in range(size))
    solved = [
        replace(one, solution=Solution(place, *system), fraction=_quotient(place, one, inverse, scalars))
        for place, one in enumerate(found)
    ]
    return solved, (guard, *sizes)


def _quotient(
    place: int, found: Scalar, inverse: Array, matrix: Sequence[Sequence[Scalar]]
) -> tuple[Scalar, Scalar]:
    """A coefficient as what is left of the outcome over what is left of its regressor, both after the others: u'm - .. over
    u'Mu, u that regressor's weights. With another value for it and the others fitted anew, u' (m - M b) is the difference
    of the two values times u'Mu: linear in the moments but for the errors of u times those of m - M b."""
    weights = inverse[:, place] / inverse[place, place]
    bottom = Scalar(0.0)
    for one, row in zip(weights, matrix, strict=True):
        for other, of in zip(weights, row, strict=True):
            bottom = bottom + of * Scalar(float(one * other))
    top = found.apply(0.0, bottom.value) + bottom * Scalar(found.value)
    return top, bottom


def _logistic(
    parts: Sequence[dict[str, Part]],
    right: Sequence[Scalar],
    columns: tuple[str, ...],
    there: dict[str, Part],
    moments: Moments,
) -> tuple[list[Scalar], Guards]:
    outcomes = {name: part for name, part in there.items() if name not in columns}
    if any((part.centre != 1).any() for part in outcomes.values()):
        raise Unanswerable(
            "A logistic regression of an outcome that may be missing needs outcome and regressors in one marginal, and is "
            "not offered; write the missing values into a condition, or fit a linear one."
        )
    whole = Moment.product({name: there[name] for name in columns}, moments.sizes)
    design = np.stack(
        [np.broadcast_to(_over(columns, part, moments), whole.centre.shape).reshape(-1) for part in parts], 1
    )
    counts = moments.table(columns).reshape(-1) * whole.centre.reshape(-1)
    target = np.array([of.value for of in right])
    b = np.zeros(len(parts))
    change: Array = b
    for _ in range(MAX_ITERATIONS):
        s = 1 / (1 + np.exp(-np.clip(design @ b, -30, 30)))
        information = design.T @ (design * (counts * s * (1 - s))[:, None])
        try:
            step = np.linalg.solve(information, target - design.T @ (counts * s))
        except np.linalg.LinAlgError:
            step = np.full(len(b), np.inf)
        if not np.isfinite(step).all() or np.abs(b + step).max(initial=0.0) > 1e4:
            raise Uncertain(UNSOLVED)
        b, change = b + step, design @ step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    if np.abs(change).max() > SETTLED:
        raise Uncertain(UNSOLVED)
    shape = whole.centre.shape

    def sums(i: int, weight: Array) -> Scalar:
        return moments.of(
            Moment.table(columns, (design[:, i] * weight * whole.centre.reshape(-1)).reshape(shape))
        )

    s = 1 / (1 + np.exp(-np.clip(design @ b, -30, 30)))
    residuals = [right[i] - sums(i, s) for i in range(len(parts))]
    weights = s * (1 - s)
    scalars = [[sums(i, design[:, j] * weights) for j in range(len(parts))] for i in range(len(parts))]
    information = np.array([[of.value for of in row] for row in scalars])
    _smallest(information, scalars)  # or it has no inverse
    inverse = np.asarray(np.linalg.inv(information), np.float64)
    coefficients = _combined(inverse, b, residuals)
    quotients = [_quotient(place, one, inverse, scalars) for place, one in enumerate(coefficients)]
    slopes = np.einsum("n,ni,nj,nk->ijk", counts * weights * (1 - 2 * s), design, design, design)
    for i, row in enumerate(scalars):  # the information varies with the coefficients, too
        for j, of in enumerate(row):
            total = of
            for k, coefficient in enumerate(coefficients):
                total = total + coefficient.apply(0.0, float(slopes[i, j, k]))
            row[j] = total
    decided = ((scalars[i][i], DECIDED) for i in range(len(parts)))
    found = []
    for place, (one, quotient) in enumerate(zip(coefficients, quotients, strict=True)):
        others = inverse[:, place] / inverse[place, place]  # as it grows
        bend = float(np.einsum("ijk,i,j,k", slopes, others, others, others) * inverse[place, place])
        solution = Solution(0, (), (one,), np.eye(1), bend)
        found.append(replace(one, solution=solution, fraction=quotient))
    return found, (_smallest(information, scalars), *decided)


def _over(columns: tuple[str, ...], parts: dict[str, Part], moments: Moments) -> Array:
    """A product as a table over these columns, length 1 along those that it lacks."""
    found = np.ones(())
    for name in columns:
        found = found[..., None] * (parts[name].centre if name in parts else np.ones(1))
    return found
