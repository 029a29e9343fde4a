"""What an alignment method is, and how one is found: a file psu/NAME/method.py (or psu/NAME_method.py) that
holds METHOD.

A method joins the records of owners of different columns: either a private set union, chosen by `[alignment]
via`, or the tables' own order, chosen by `[alignment] method`. Everybody else asks the descriptor: the
study's reader who may run it, `auto` what to take, `align` for the protocol, `plan` for costs, check, report
and pages for words. Nobody compares names. Descriptors import the standard library only; methods import what
they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.registry import Registry

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from mpc_protocols.psu.forecast import Forecast
    from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, Own
    from mpc_protocols.psu.randomness import Entropy
    from mpc_protocols.wire import Wire

PSU: Final = "psu"
"""`[alignment] method` of every private set union."""
AUTO: Final = "auto"


@dataclass(frozen=True)
class Misfit:
    """Why some parties cannot run a method, and what would help beside another method ("" if nothing): ends
    of a sentence."""

    what: str
    cure: str = ""


class AlignmentMethod(ABC):
    """One method, in words and in code.

    name: in the study file. rank: place in lists. psu: chosen by `via`, and aligns identifiers; else by
    `method`, and aligns rows. automatic: whether `via = "auto"` may take it. proofs: whether it has `security
    = "proofs"`. helper: whether a computing party without data takes part. pairs: whether an owner plants its
    fakes twice, instead of from public pools (`dummies`). union_only: whether parties that own nothing hear
    only the size of the union. hides_members: whether, while all follow the protocol, no owner learns which
    of its records another one holds; report and plan say so only then. groups: whether it runs over any
    group, for comparisons.

    In words: hides (`hidden` of a method that does not hide members); reveals (what it tells beyond sizes and
    to whom, a clause; "" if nothing); way (after "records are joined"); matched (a sentence; {together} is
    "Records were matched by ..."); trust (what it rests on, a sentence or more), trust_with_proofs (what
    proofs add); owners, adversary, speed: columns of the table in `docs/howto/vertical.md`.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 100
    psu: ClassVar[bool] = True
    automatic: ClassVar[bool] = False
    proofs: ClassVar[bool] = False
    helper: ClassVar[bool] = False
    pairs: ClassVar[bool] = False
    union_only: ClassVar[bool] = False
    hides_members: ClassVar[bool] = False
    groups: ClassVar[bool] = False
    two_owners: ClassVar[bool] = False
    hides: ClassVar[str] = "values beside the identifiers"
    reveals: ClassVar[str] = ""
    way: ClassVar[str]
    matched: ClassVar[str]
    trust: ClassVar[str]
    trust_with_proofs: ClassVar[str] = ""
    owners: ClassVar[str]
    adversary: ClassVar[str]
    speed: ClassVar[str]

    @property
    @abstractmethod
    def claim(self) -> str:
        """Who does not learn whose memberships, as long as what: a part of run.json's `claim`, without a full
        stop."""

    def weakness(self, adjacency: Adjacency) -> str:
        """What a computing party that deviates, with any owners that do not compute, could do through this
        method to the (epsilon, delta) of other owners' records, or learn of them unnoticed: a clause; "" if
        nothing.

        A study whose security holds against such a party takes a method without weakness only
        (`docs/design/malicious.md` 9).
        """
        return "what a party that deviates can do with it has not been examined"

    @property
    def hidden(self) -> str:
        """What joining tells neither another owner nor a computing party; after "another owner's"."""
        return "records, or which of its own another owner holds" if self.hides_members else self.hides

    @abstractmethod
    def misfit(self, owners: Sequence[str], computing: Sequence[str]) -> Misfit | None:
        """Why these owners, and further ones if there are any, cannot run it with these computing parties."""

    @abstractmethod
    def align(
        self, wire: Wire, own: Own, spec: AlignmentSpec, context: Context, entropy: Entropy
    ) -> Alignment:
        """One party's part, whatever its role; see `align.align`.

        own: fakes included; its `rows` mean nothing.
        """

    @abstractmethod
    def forecast(
        self, spec: AlignmentSpec, context: Context, lengths: Sequence[int], union: int, columns: int
    ) -> Forecast:
        """Bytes and seconds of each party. lengths: of the owners' lists, fakes included. columns: of the
        key."""

    def recipients(self, context: Context, me: int) -> list[Member]:
        """Who learns something from the sizes of the owner with this wire number."""
        helper = [context.helper] if self.helper and context.helper else []
        members = dict.fromkeys([*context.owners, *helper, *context.computing])
        return [member for member in members if member.number != me]

    def sizes_shown(self, owner: bool, owners: int, noisy: bool, padded: bool) -> str:
        """Which sizes a party, an owner or not, is told. padded: lists are filled up to a length that the
        study fixes."""
        union = "how many different records the owners hold together"
        if padded or (self.union_only and not owner):
            return union + (", with noise" if noisy else "")
        lists = "the lengths of the owners' lists"
        if owner:
            lists = (
                "the length of the other owner's list"
                if owners == 2
                else "the lengths of the other owners' lists"
            )
        return f"{lists} and {union}" + (", each with noise" if noisy else "")

    def refusal(
        self, owners: Sequence[str], computing: Sequence[str], deviating: Adjacency | None = None
    ) -> str | None:
        """The rest of a sentence about parties that cannot run it, and what to do; None if they can.

        deviating: the study's adjacency if a computing party may deviate (`weakness`), else None.
        """
        misfit = self._misfit_of(owners, computing, deviating)
        if misfit is None:
            return None
        others = (
            other.name
            for other in METHODS
            if other.automatic and not other._misfit_of(owners, computing, deviating)
        )
        instead = [f'use via = "{name}"' for name in list(others)[:1]]
        cures = ", or ".join([misfit.cure] * bool(misfit.cure) + instead)
        key = "via" if self.psu else "method"
        return f'[alignment] {key} = "{self.name}" {misfit.what}' + (f"; {cures}" if cures else "")

    def _misfit_of(
        self, owners: Sequence[str], computing: Sequence[str], deviating: Adjacency | None
    ) -> Misfit | None:
        if deviating is not None and (weakness := self.weakness(deviating)):
            return Misfit(f'cannot stand with [study] security = "malicious": {weakness}')
        return self.misfit(owners, computing)


METHODS: Registry[AlignmentMethod] = Registry(
    "mpc_protocols.psu",
    "method",
    AlignmentMethod,
    "cosynth.alignments",
    elsewhere=["mpc_protocols.backends.replicated"],
    research="mpc_protocols.research",
)
"""All alignment methods, by name."""


def resolve(
    via: str,
    owners: Sequence[str],
    computing: Sequence[str],
    allowed: Sequence[str] | None = None,
    deviating: Adjacency | None = None,
) -> AlignmentMethod:
    """The method that `[alignment] via` stands for: with "auto" the first automatic one that these parties
    can run.

    owners: as far as they are known. allowed: what the backend can work with; None: anything. deviating: as
    of `AlignmentMethod.refusal`. Raises `StudyInvalid`.
    """
    if via != AUTO:
        if via not in METHODS or not METHODS[via].psu:
            raise StudyInvalid(f"[alignment] via must be one of {', '.join(vias())}, got {via!r}.")
        candidates = [METHODS[via]]
    else:
        candidates = [
            method for method in METHODS if method.automatic and (allowed is None or method.name in allowed)
        ]
    refusals = []
    for method in candidates:
        refused = method.refusal(owners, computing, deviating)
        if refused is None:
            return method
        refusals.append(refused)
    if not refusals:
        raise StudyInvalid("No alignment method fits the study's backend.")
    # Told is why the last one cannot run, which takes any number of computing parties. Where one may deviate,
    # that may be its weakness, which no party can mend: the first one has none, and says what the parties
    # lack.
    told = refusals[0] if deviating else refusals[-1]
    raise StudyInvalid(f"{told}.")


def vias() -> tuple[str, ...]:
    """The words of `[alignment] via`."""
    return (AUTO, *(method.name for method in METHODS if method.psu))


def methods() -> tuple[str, ...]:
    """The words of `[alignment] method`."""
    return (PSU, *(method.name for method in METHODS if not method.psu))


def methods_table() -> str:
    """The table of private set unions in `docs/howto/vertical.md`."""
    default = next(method for method in METHODS if method.automatic)
    rows = [
        "| `via` | owners | who could learn memberships | 10^5 identifiers each |",
        "|---|---|---|---|",
        *(
            f"| `{method.name}`{f' (the default, `{AUTO}`)' if method is default else ''} | {method.owners} "
            f"| {method.adversary} | {method.speed} |"
            for method in METHODS
            if method.psu
        ),
    ]
    return "\n".join(rows)
