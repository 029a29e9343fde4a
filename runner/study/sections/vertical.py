"""The [alignment] table of a vertical study and what follows from it for the rest
(`docs/reference/study-file.md`, `docs/design/psu.md` 3-5).

What can be told from the study file alone is told here. Who owns which column may be known only when the
parties meet, because a party's data and so its columns may stand in its private file: `runner.study.owners`
judges that, with the same words. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mpc_protocols.psu.identifiers.phone import CALLING_CODES
from mpc_protocols.psu.method import METHODS
from runner.study.declared.table import Table, nearest, value_text
from runner.study.declared.tables import ADD_REMOVE_ONLY, PSU_ONLY, Alignment, Privacy, Unit
from runner.study.model import Party
from runner.study.owners import misfits_of_method, several_owners
from synth.domain import BROKEN_ROWS

if TYPE_CHECKING:
    from mpc_protocols.backend import Backend
    from synth.domain import Domain

NORMALISE = ("text", "exact", "name", "email", "date")


def read_alignment(raw: object, file: str, problems: list[str], privacy: Privacy) -> Alignment:
    """The table with its defaults; every problem is noted."""
    table = Table(raw, file, "[alignment]", Alignment, problems)
    given = table.options(Alignment)
    names: tuple[str, ...] = ()
    if not given.psu:
        for key in PSU_ONLY:
            if key in table:
                table.problem(
                    f'has no meaning with method = "{given.method}", which joins the tables row by row; remove it',
                    key,
                )
    elif isinstance(table.raw.get("id"), list):
        names = table.texts("id")
    else:
        names = (table.text("id", expected="the name of the identifier's column, or a list of names"),)
    if privacy.adjacency == "replace":
        for key in ADD_REMOVE_ONLY:
            if key in table:
                table.problem(
                    'belongs to adjacency = "add-remove": with "replace", list sizes are public', key
                )
    if not given.psu and given.population == "union":
        table.problem(
            f'= "union" has no meaning with method = "{given.method}": every row is at every owner; remove it',
            "population",
        )
    proving = [f'"{offered.name}"' for offered in METHODS if offered.proofs]
    if given.security == "proofs" and f'"{given.via}"' not in proving:
        only = "the only protocol that has them" if len(proving) == 1 else "which have them"
        table.problem(
            f'= "proofs" needs via = {" or ".join(proving)}, {only}, got via = {value_text(given.via)}',
            "security",
        )
    if given.min_size > privacy.max_rows:
        table.problem(
            f"= {given.min_size:,} is more than [privacy] max_rows = {privacy.max_rows:,}, the most rows of an owner",
            "min_size",
        )
    return replace(
        given,
        id=names,
        normalise=_normalise(table, len(names)),
        pad_to=_pad_to(table, given.min_size, privacy.max_rows),
    )


def fit_study(
    alignment: Alignment,
    file: str,
    problems: list[str],
    privacy: Privacy,
    unit_given: object,
    domain: Domain | None,
    parties: tuple[Party, ...],
    backend: Backend | None,
) -> Privacy:
    """What a vertical study's other tables must have; returns its [privacy], whose unit is one identifier.

    backend: as the study's security configures it.
    """
    if isinstance(unit_given, dict):
        Table({}, file, "[privacy] unit", (), problems).problem(
            "must be left out of a vertical study: its unit is one identifier of [alignment] id, with one row at each owner"
        )
    table = Table({}, file, "[alignment]", (), problems)
    if domain is not None:
        for name in alignment.id:
            if name in domain:
                table.problem(
                    f'= "{name}" is also a column of the domain: identifiers only align records and are not modelled; '
                    "take it out of the domain, or give the data a copy under another name",
                    "id",
                )
        if alignment.population == "union" and alignment.psu:
            _union(table, domain)
        if not alignment.psu and domain.constraints and domain.broken_rows != BROKEN_ROWS[0]:
            Table({}, file, "[domain]", (), problems).problem(
                f'= "{domain.broken_rows}" would leave rows out at one owner, and the study joins tables row by row ([alignment] '
                f'method = "{alignment.method}"): later rows would join other people\'s; use "{BROKEN_ROWS[0]}" and '
                "take such people out of all tables, or align by identifiers",
                "broken_rows",
            )
    if isinstance(alignment.pad_to, Mapping):
        names = [party.name for party in parties]
        for name in alignment.pad_to:
            if name not in names:
                table.problem(f'names "{name}", which is not a party{nearest(name, names)}', "pad_to")
    if (
        alignment.population == "union"
        and privacy.adjacency == "add-remove"
        and backend is not None
        and backend.malicious
    ):
        table.problem(
            '= "union" does not stand with [study] security = "malicious" and adjacency = "add-remove": an owner that deviates '
            "can enter any person, whose records elsewhere then change two cells of a marginal instead of one; use "
            'adjacency = "replace", or population = "intersection"',
            "population",
        )
    owned: dict[str, list[str]] = {}
    for party in parties:
        for column in party.columns or ():
            owned.setdefault(column, []).append(party.name)
    for column, owners in owned.items():
        if len(owners) > 1:
            problems.append(f"{file}: {several_owners(column, owners)}")
    sure = [party.name for party in parties if party.columns is not None or party.data is not None]
    if backend is not None:
        problems += [
            f"{file}: {sentence}"
            for sentence in misfits_of_method(alignment, backend, parties, sure, privacy)
        ]
    return replace(privacy, unit=Unit(identifier=alignment.id))


def _union(table: Table, domain: Domain) -> None:
    unfit = [name for name, column in zip(domain.names, domain.columns, strict=True) if not column.missing]
    if unfit:
        table.problem(
            '= "union" needs a code for what an owner does not know of a record: declare missing = true for the column'
            f"{'s' * (len(unfit) > 1)} {', '.join(unfit)} (kind numeric or categorical)",
            "population",
        )


def _normalise(table: Table, columns: int) -> tuple[str, ...]:
    given = table.raw.get("normalise", "text")
    rules = [given] * columns if isinstance(given, str) else given
    if (
        isinstance(rules, list)
        and len(rules) == columns
        and all(isinstance(rule, str) and _is_rule(rule) for rule in rules)
    ):
        return tuple(rules)
    if columns or "normalise" in table:
        table.problem(
            f'must be {", ".join(NORMALISE)} or "phone:CC" with a country such as "phone:FR", or a list, one per '
            f"column of id, got {value_text(given)}",
            "normalise",
        )
    return ("text",) * columns


def _is_rule(rule: str) -> bool:
    return rule in NORMALISE or (rule.startswith("phone:") and rule.removeprefix("phone:") in CALLING_CODES)


def _pad_to(table: Table, min_size: int, max_rows: int) -> int | Mapping[str, int] | None:
    given = table.raw.get("pad_to")
    if given is None:
        return None
    sizes = list(given.values()) if isinstance(given, dict) else [given]
    if sizes and all(
        isinstance(size, int) and not isinstance(size, bool) and min_size <= size <= max_rows
        for size in sizes
    ):
        return cast("int | Mapping[str, int]", given)
    table.problem(
        f"must be a whole number from min_size = {min_size:,} to max_rows = {max_rows:,}, or a table of such numbers, "
        f"one per owner, got {value_text(given)}",
        "pad_to",
    )
    return None
