"""Tables of a study that as objects are what the file says: [privacy], [alignment], [session]; each key is
declared here, once.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from mpc_protocols.functionality import Adjacency
from mpc_protocols.options import TEXT, TEXTS, WHOLE, Options, option, required
from mpc_protocols.psu.method import AUTO, PSU, methods, vias
from parties.budget.notion import Notion, ProtectedUnit
from runner.study.declared.keys import MAX_EPSILON, UnitKeys


@dataclass(frozen=True)
class Unit:
    """The privacy unit: one row (`id` is None), or an identifier with bounds on its rows and custodians.

    identifier: the key columns of a vertical study, whose unit is one identifier: one row of the joined
    table.
    """

    id: str | None = None
    max_rows: int = 1
    max_custodians: int = 1
    identifier: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The most rows of one unit over all custodians: the `s` of `docs/design/privacy.md` 2."""
        return self.max_rows * self.max_custodians

    @property
    def protected(self) -> ProtectedUnit:
        """The unit as a custodian's ledger knows it."""
        if self.identifier:
            return ProtectedUnit(self.identifier, whole=True)
        return ProtectedUnit((self.id,) if self.id else (), self.max_rows, self.max_custodians)

    @property
    def words(self) -> str:
        """The unit in words, as reports state it."""
        return self.protected.words


DEFAULT_MAX_ROWS = 1 << 22


@dataclass(frozen=True)
class Privacy(Options):
    """[privacy]: exact rationals of the decimal numbers in the file."""

    epsilon: Fraction = required(
        "decimal",
        "what anybody can learn about one unit",
        below=MAX_EPSILON,
        meaning="what anybody can learn about one unit from everything that is released ([privacy](../design/privacy.md))",
    )
    delta: Fraction = required(
        "decimal",
        "well below one over the number of people",
        below=1.0,
        meaning="well below one over the number of people",
    )
    adjacency: Adjacency = required(
        "word",
        "one unit's rows more or less; or its values change",
        words=("add-remove", "replace"),
        meaning="`add-remove`: one unit's rows more or less. `replace`: row counts are public, one unit's values change",
    )
    max_rows: int = option(
        DEFAULT_MAX_ROWS,
        "whole",
        "public bound on the rows of each custodian; one with more refuses",
        low=1,
        high=1 << 40,
        meaning="public bound on the rows of each custodian (each owner, each contributor), which checks its own and "
        "refuses above it (30)",
    )
    unit: Unit = option(
        Unit(),
        "form",
        "whom the promise protects",
        form={"anyOf": [{"const": "row"}, UnitKeys.schema()]},
        fallback='`"row"`',
        meaning='or `{ id = "person", max_rows = 3, max_custodians = 1 }`. Over waves of a table (`[contributors] '
        "after`) both bounds hold for all waves together: `max_custodians` counts contributors of every wave. "
        "Not given in a vertical study: its unit is one identifier",
    )
    accept_delta: bool = option(
        False,
        "flag",
        "true lets delta be above 0.01",
        meaning="`true` lets `delta` be above 0.01, which is refused otherwise (10): a method that publishes one row in "
        "a hundred satisfies it",
    )

    @property
    def notion(self) -> Notion:
        """Whom the promise protects, against which change."""
        return Notion(self.unit.protected, self.adjacency)


PSU_ONLY: Final = ("via", "id", "duplicates", "normalise", "security", "pad_to")
"""Keys of [alignment] without a meaning where tables are aligned already."""
ADD_REMOVE_ONLY: Final = ("size_epsilon", "size_delta", "pad_to")
"""The same where list sizes are public."""


@dataclass(frozen=True)
class Alignment(Options):
    """[alignment], vertical partitions only. id, normalise: empty if the tables are aligned already, row by
    row."""

    method: str = required(
        "word",
        "how the owners' records are joined",
        words=methods,
        meaning="`psu`: private set union. `row-order`: the tables are aligned already, row by row",
    )
    via: str = option(
        AUTO,
        "word",
        "the protocol",
        words=vias,
        meaning='[which protocol when](../design/psu.md). With `[study] security = "malicious"`: `merge3`, or with '
        "`replace` `dh2`; others are refused (10), [why](../design/malicious.md)",
    )
    id: tuple[str, ...] = option(
        (),
        "form",
        "the identifier's column, or a list for a composite key",
        form={"anyOf": [TEXT, TEXTS]},
        fallback="required with psu",
        meaning="the identifier's column, or a list for a composite key. Not a column of the domain",
    )
    population: Literal["intersection", "union"] = option(
        "intersection",
        "word",
        "people that every owner holds; union: that any owner holds",
        words=("intersection", "union"),
        meaning="records of all owners; `union`: of any owner (every column then needs `missing = true`); with "
        '`malicious` only if `adjacency = "replace"`',
    )
    duplicates: Literal["refuse", "first"] = option(
        "refuse",
        "word",
        "one row a person; first: further rows of a person are left out",
        words=("refuse", "first"),
        meaning="further rows of a person are refused (30); `first`: left out",
    )
    normalise: tuple[str, ...] = option(
        (),
        "form",
        "how identifiers are written",
        form={"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]},
        fallback="`text`",
        meaning="`exact`, `name`, `email`, `date`, `phone:CC`; or a list, one per column of the key",
    )
    security: Literal["semi-honest", "proofs"] = option(
        "semi-honest",
        "word",
        "proofs: of the protocol that has them",
        words=("semi-honest", "proofs"),
        meaning="`proofs`: with `dh2`",
    )
    min_size: int = option(
        1000,
        "whole",
        "an owner with fewer people refuses",
        low=1,
        meaning="an owner with fewer identifiers refuses (30)",
    )
    # 20 and 1/2: beyond them the noise on a size would hide nothing (`docs/design/psu.md` 3)
    size_epsilon: Fraction = option(
        Fraction(1, 10),
        "decimal",
        "of the noise on each announced size",
        below=20.0,
        meaning="add-remove only: of the noise on each announced size",
    )
    size_delta: Fraction = option(
        Fraction(1, 10**9), "decimal", "of the noise on each announced size", below=0.5, meaning="the same"
    )
    pad_to: int | Mapping[str, int] | None = option(
        None,
        "form",
        "a public length of every list",
        form={"anyOf": [WHOLE, {"type": "object", "additionalProperties": WHOLE}]},
        meaning="add-remove only: a public length of every list, or a table of lengths by owner",
    )

    @property
    def psu(self) -> bool:
        """Whether identifiers are matched; else the tables are aligned already."""
        return self.method == PSU

    def agreed(self, adjacency: Adjacency) -> dict[str, Any]:
        """JSON-able form with every default filled in; keys that have no meaning here are left out."""
        meaningless = {
            *(() if self.psu else PSU_ONLY),
            *(() if adjacency == "add-remove" else ADD_REMOVE_ONLY),
        }
        return {key: value for key, value in self.public().items() if key not in meaningless}


@dataclass(frozen=True)
class Session(Options):
    """[session]: deadlines in seconds."""

    connect_s: float = option(120.0, "number", "how long parties wait for one another", below=1e6)
    # heartbeats leave every second: less silence than two of them would end healthy runs
    silence_s: float = option(
        10.0,
        "number",
        "a party that is silent for longer is lost",
        above=1.999,
        below=1e6,
        meaning="a party that is silent for longer is lost; at least 2",
    )
    tls: Literal["mutual", "insecure-loopback"] = option(
        "mutual",
        "word",
        "insecure-loopback: without certificates, on this machine only",
        words=("mutual", "insecure-loopback"),
        meaning="`insecure-loopback` is refused for any other address than loopback",
    )
    bad_input: Literal["end", "exclude"] = option(
        "end",
        "word",
        "what becomes of a run in which counts turn out to be those of no table",
        words=("end", "exclude"),
        meaning="what becomes of a run in which a contributor's counts turn out to be those of no table "
        "([inputs](../design/inputs.md)): it ends (40), or goes on without them (`exclude`). `exclude` is "
        "refused where counts are not checked: columns of several owners, bundles, ciphertexts",
    )
    answer_s: float = option(
        600.0,
        "number",
        "how long a computing party waits for a message of one that is alive",
        below=1e6,
        meaning='with `security = "malicious"` only: how long a computing party waits for a message of one that is '
        "alive; then the run ends (40). Longer than the leader's longest fit",
    )
    deadline_factor: float = option(
        10.0,
        "number",
        "a run may take so many times what plan foretells",
        above=0.999,
        below=1e6,
        meaning='with `security = "malicious"` only: a computing party ends a run (40) that has taken more than so many '
        "times what `plan` foretells on a wide network, and more than `deadline_floor_s`, since all assembled. "
        "Each party foretells it for itself, before it connects",
    )
    deadline_floor_s: float = option(
        3600.0,
        "number",
        "and never less than so many seconds",
        below=1e6,
        meaning="seconds that a run may take in any case; see `deadline_factor`",
    )
