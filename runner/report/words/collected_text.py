"""A run over bundles in plain words: who took part, who did not, and what that leaves out.

Everything follows from public facts (`run.json` `contributors`): who is in is a contributor's own decision,
not a count.
"""
# ruff: noqa: RUF001 - typographic apostrophes are meant

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.report.number_format import listed, plain, spelled, whole

MAX_NAMED = 60
"""Contributors that are named; of more, how many there were."""


@dataclass(frozen=True)
class Collected:
    """Sentences for the template. whose: in the sentence at the top, "the data that ...". rows: (what,
    names)."""

    whose: str
    about: str
    left_out: str
    way: str
    rows: tuple[tuple[str, str], ...]


def collected(facts: Mapping[str, Any]) -> Collected | None:
    """What run.json allows to be said; None for a run without bundles."""
    told = facts.get("contributors")
    if not isinstance(told, Mapping):
        return None
    took_part, absent, own = told["took_part"], told["absent"], told["custodians"]
    who = f"{spelled(len(took_part))} contributors"
    waves = told.get("after", [])
    before = sum(len(wave["took_part"]) for wave in waves)
    own_tables = f", and those of {listed(own)}, which computed" if own else ""
    rows = [("Took part", _named(took_part)), ("Did not", _named(absent) if absent else "Nobody")]
    rows += [
        (f"In an earlier wave{f' ({number})' if len(waves) > 1 else ''}", _named(wave["took_part"]))
        for number, wave in enumerate(waves, 1)
    ]
    if own:
        rows.append(("Computing parties with tables of their own", listed(own)))
    return Collected(
        f"the data that {who}{' and ' + listed(own) if own else ''} hold"
        + (f", and {spelled(before)} of an earlier wave" if waves else ""),
        f"The table is about the rows of {who}, of {spelled(told['enrolled'])} that the study lists{own_tables}."
        + _added(waves)
        + _registered(told.get("registered")),
        _left_out(len(took_part) + before, len(absent)),
        "Each contributor left one sealed file, with parts for two of the three computing parties; each part alone is "
        f"random. The parties agreed on the list of files{_rounds_text(told.get('rounds', []))} "
        "Single records are protected, not a contributor as a whole: its share in the total, and how its rows differ from the "
        "others’, may show. Nobody checks the values that a contributor sends: it is trusted to have counted its true rows.",
        tuple(rows),
    )


def _rounds_text(rounds: Sequence[Mapping[str, Any]]) -> str:
    if not rounds:
        return ", added up their parts without opening anything else, and ran once."
    lists = listed([f"{each['bundles']:,}" for each in rounds])
    return (
        f" in each of {len(rounds)} rounds of arrivals ({lists} files), added up their parts without opening anything else, and "
        "selected on those who were there by then; what was measured of fewer rows was scaled to all. Whoever came late is in "
        "the later releases only, and is charged for all. A later round takes in nobody, or as many newcomers as the study’s "
        "minimum at least: fewer wait for the next round. What two rounds have released tells, with noise, about these together."
    )


def _added(waves: Sequence[Mapping[str, Any]]) -> str:
    if not waves:
        return ""
    before = [
        f"{spelled(len(wave['took_part']))} contributors with about {whole(wave['rows'])} rows"
        for wave in waves
    ]
    several = len(waves) > 1
    return (
        f" It is also about those of {'earlier waves' if several else 'an earlier wave'}: {listed(before)}. This run asked "
        f"nothing but what {'these have' if several else 'that wave has'} measured, of the newcomers, with noise in the same "
        "proportions; values were added, and the model was fitted to the sums. Everybody is in one wave only and was charged for "
        "that one, so the promise above holds for every record of the table. The noisy counts on this page are those of this run."
    )


def _registered(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return ""
    return (
        f" Its single columns are brought to those of about {whole(told['rows'])} rows, of everybody who had left counts of "
        "single columns before: an earlier run counted them, with noise. That is why single columns differ from what this run "
        f"measured. That run has cost every record in it ρ = {plain(told['rho'])} besides, by this run’s unit and "
        "adjacency, and more if its unit held more rows or its adjacency was stricter: what it left does not tell them."
    )


def _left_out(took_part: int, absent: int) -> str:
    if not absent:
        return "Everybody who was listed is in it."
    share = round(100 * took_part / (took_part + absent))
    return (
        f"The coverage is {share} % of the contributors. The others are not in it: their rows were never counted and have cost "
        "them nothing. If those who did not come have other rows than those who did, the table is off by that, whatever the "
        "noise, and no figure on this page shows how much."
    )


def _named(names: Sequence[str]) -> str:
    if len(names) <= MAX_NAMED:
        return listed(list(names))
    return f"{len(names):,} contributors, named in run.json"
