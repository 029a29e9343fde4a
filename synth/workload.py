"""The workload: which marginals the synthetic table is meant to preserve. Public.

A workload is a list of cliques (sets of columns), given one by one or as all (or a random subset of) sets of
one degree (`docs/reference/study-file.md`, `[workload]`). From it follow, as public facts that every party
computes alike:

- the downward closure, all nonempty subsets of workload cliques: AIM's candidates (McKenna et al. 2022;
`docs/design/algorithms.md` 1);
- a candidate's weight w_q = sum over workload cliques q' of |q ∩ q'|, how much of the workload measuring it may help.

The order of everything is fixed: columns within a clique as in the domain, candidates by degree and then in
domain order. Standard library only at import.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.options import TEXTS, Options, option
from mpc_protocols.process.later import np
from synth.domain import Domain

MAX_CANDIDATES = 1 << 20
"""The most candidates of a study; a workload whose closure is larger would not end."""


@dataclass(frozen=True)
class WorkloadKeys(Options):
    """[workload]."""

    cliques: Any = option(
        None, "form", "the sets of columns, one by one", form={"type": "array", "items": TEXTS, "minItems": 1}
    )
    degree: int | None = option(None, "whole", "all sets of so many columns", low=1)
    count: int | None = option(None, "whole", "a random choice of so many of them", low=1)
    seed: int | None = option(None, "whole", "of that choice", low=0)
    label: str | None = option(None, "text", "a column that joins every one of them")


@dataclass(frozen=True)
class Workload:
    """Cliques over a domain, no two alike. Each holds its columns in domain order. label: a column that is in
    all of them."""

    domain: Domain
    cliques: tuple[Clique, ...]
    label: str | None = None

    def __post_init__(self) -> None:
        if not self.cliques:
            raise StudyInvalid("[workload] must name at least one clique.")
        seen: set[Clique] = set()
        for clique in self.cliques:
            if not clique:
                raise StudyInvalid("[workload] cliques must not hold an empty clique.")
            if clique != self.domain.ordered(clique):
                raise StudyInvalid(
                    f"[workload] the clique {', '.join(clique)} must list columns of the domain, in its order."
                )
            if clique in seen:
                raise StudyInvalid(f"[workload] lists the clique {', '.join(clique)} twice.")
            seen.add(clique)
        if sum(2.0 ** len(clique) for clique in self.cliques) > 64 * MAX_CANDIDATES:
            raise StudyInvalid(
                "[workload] has too many cliques of too many columns: list fewer or smaller ones."
            )

    @classmethod
    def from_spec(cls, spec: Mapping[str, object], domain: Domain) -> Workload:
        """The workload of a study's `[workload]` table: `cliques`, or `degree` with an optional `count` and
        `seed` (default 0).

        A `label` joins every clique that lacks it; cliques that are alike then count once.
        Raises `StudyInvalid` naming the key; a column that the domain lacks is named.
        """
        if foreign := sorted(str(key) for key in spec.keys() - WorkloadKeys.options().keys()):
            raise StudyInvalid(
                f"[workload] has an unknown key {foreign[0]}; it knows cliques, or degree, count and seed, and label."
            )
        label = _label(spec, domain)
        if ("cliques" in spec) == ("degree" in spec):
            raise StudyInvalid("[workload] needs either cliques or degree, and only one of them.")
        if "cliques" in spec:
            if extra := sorted(spec.keys() - {"cliques", "label"}):
                raise StudyInvalid(
                    f"[workload] {extra[0]} belongs to degree and has no meaning beside cliques."
                )
            return cls(domain, _explicit(spec["cliques"], domain))._labelled(label)
        if "seed" in spec and "count" not in spec:
            raise StudyInvalid("[workload] seed has no meaning without count.")
        degree = _whole(spec, "degree", None, 1)
        count = _whole(spec, "count", None, 1) if "count" in spec else None
        return cls(domain, of_degree(domain, degree, count, _whole(spec, "seed", 0, 0)))._labelled(label)

    def _labelled(self, label: str | None) -> Workload:
        """With the label in every clique; those alike only for that stand once."""
        if label is None:
            return self
        joined = dict.fromkeys(self.domain.ordered((*clique, label)) for clique in self.cliques)
        return Workload(self.domain, tuple(joined), label)

    @cached_property
    def closure(self) -> tuple[Clique, ...]:
        """All nonempty subsets of the cliques: by degree, then in domain order. Raises `StudyInvalid` beyond
        MAX_CANDIDATES."""
        place = {name: i for i, name in enumerate(self.domain.names)}
        found: set[tuple[int, ...]] = set()
        for clique in self.cliques:
            positions = [place[name] for name in clique]
            for degree in range(1, len(positions) + 1):
                found.update(itertools.combinations(positions, degree))
            if len(found) > MAX_CANDIDATES:
                raise StudyInvalid(
                    f"[workload] gives more than {MAX_CANDIDATES} candidates: list fewer or smaller cliques."
                )
        ranked = sorted(sorted(found), key=len)
        return tuple(tuple(map(self.domain.names.__getitem__, positions)) for positions in ranked)

    @cached_property
    def weights(self) -> dict[Clique, int]:
        """Weights of the cliques of the closure: w_q = sum over the workload's cliques q' of |q ∩ q'|."""
        # |q ∩ q'| is the sum over q's columns of "q' has this column", so the sum over q' needs each column's count only
        occurrences = Counter(name for clique in self.cliques for name in clique)
        return {clique: sum(occurrences[name] for name in clique) for clique in self.closure}


def of_degree(domain: Domain, degree: int, count: int | None, seed: int) -> tuple[Clique, ...]:
    """All sets of `degree` columns, or `count` of them: `default_rng(seed).choice(len(sets), count,
    replace=False)`.

    sets = itertools.combinations(columns in domain order, degree). A count above what there is means all of
    them.
    """
    available = math.comb(len(domain), degree)
    if available == 0:
        raise StudyInvalid(f"[workload] degree = {degree} is more than the domain's {len(domain)} columns.")
    if count is None or count >= available:
        if available > MAX_CANDIDATES:
            raise StudyInvalid(
                f"[workload] degree = {degree} means {available} cliques: add count, at most {MAX_CANDIDATES}."
            )
        return tuple(itertools.combinations(domain.names, degree))
    if count > MAX_CANDIDATES:
        raise StudyInvalid(f"[workload] count must be at most {MAX_CANDIDATES}, got {count}.")
    chosen = np.random.default_rng(seed).choice(available, count, replace=False)
    return tuple(
        tuple(domain.names[i] for i in _combination(len(domain), degree, int(rank))) for rank in chosen
    )


def _combination(columns: int, degree: int, rank: int) -> tuple[int, ...]:
    """The rank-th of itertools.combinations(range(columns), degree), without listing those before it."""
    positions = []
    candidate = 0
    for left in range(degree - 1, -1, -1):
        while (block := math.comb(columns - candidate - 1, left)) <= rank:
            rank -= block
            candidate += 1
        positions.append(candidate)
        candidate += 1
    return tuple(positions)


def _label(spec: Mapping[str, object], domain: Domain) -> str | None:
    label = spec.get("label")
    if label is not None and (not isinstance(label, str) or label not in domain):
        raise StudyInvalid(f"[workload] label must be a column of the domain, got {label!r}.")
    return label


def _whole(spec: Mapping[str, object], key: str, default: int | None, least: int) -> int:
    value = spec.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise StudyInvalid(f"[workload] {key} must be an integer of at least {least}, got {value!r}.")
    return value


def _explicit(given: object, domain: Domain) -> tuple[Clique, ...]:
    if not isinstance(given, list | tuple):
        raise StudyInvalid("[workload] cliques must be a list of lists of column names.")
    cliques = []
    for entry in given:
        if not isinstance(entry, list | tuple) or not all(isinstance(name, str) for name in entry):
            raise StudyInvalid(f"[workload] cliques must be lists of column names, got {entry!r}.")
        if unknown := [name for name in entry if name not in domain]:
            raise StudyInvalid(f"[workload] names the column {unknown[0]}, which the domain does not have.")
        if len(set(entry)) != len(entry):
            raise StudyInvalid(f"[workload] names a column twice in the clique {', '.join(entry)}.")
        cliques.append(domain.ordered(entry))
    return tuple(cliques)
