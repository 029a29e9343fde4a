"""A vertical run in plain words: whose records the table is about, how they were joined, and what joining revealed to whom.

Everything follows from the study and from who owned which columns (`run_json.alignment_facts`): no size is known here.
What each protocol reveals to whom: `mpc_protocols.psu.functionality`; DESIGN 6.
"""
# ruff: noqa: RUF001 - typographic apostrophes and quotes are meant

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.report.number_format import listed, plain, spelled


@dataclass(frozen=True)
class Joined:
    """Sentences and tables for the template. whose: in the sentence at the top, "the records that ...". owners: (name, columns).
    learned: per party (name, role, what its part in the join told it, epsilon and delta of its own view)."""

    whose: str
    about: str
    size: str
    way: str
    trust: str
    owners: tuple[tuple[str, tuple[str, ...]], ...]
    learned: tuple[tuple[str, str, str, float, float], ...]
    noisy: bool
    note: str


def joined(facts: Mapping[str, Any]) -> Joined | None:
    """What run.json allows to be said; None for a horizontal run."""
    alignment = facts.get("alignment")
    if not isinstance(alignment, Mapping):
        return None
    owners = tuple((owner["name"], tuple(owner["columns"])) for owner in alignment["owners"])
    noisy = facts["privacy"]["adjacency"] == "add-remove"
    trust = _TRUST[alignment["via"]]
    if alignment["via"] == "dh2" and _settings(facts).get("security") == "proofs":
        trust += " The answers that the matching rests on were proven to be right."
    return Joined(
        _whose(alignment),
        _about(alignment, len(owners)),
        _size(alignment),
        _way(alignment),
        trust,
        owners,
        tuple(_learned(facts, alignment, noisy)),
        noisy,
        _note(alignment, noisy),
    )


def _whose(alignment: Mapping[str, Any]) -> str:
    names = listed([owner["name"] for owner in alignment["owners"]])
    if alignment["method"] == "row-order":
        return f"the records of {names}"
    return (
        f"the records that {names} have in common"
        if alignment["population"] == "intersection"
        else f"the records of {names}"
    )


def _about(alignment: Mapping[str, Any], owners: int) -> str:
    if alignment["method"] == "row-order":
        return (
            f"Row by row, the {spelled(owners)} owners’ tables are about the same records in the same order; that was agreed "
            "beforehand and is not checked. The synthetic rows stand for these records."
        )
    if alignment["population"] == "intersection":
        whole = "both owners" if owners == 2 else f"all {spelled(owners)} owners"
        return (
            f"The synthetic rows stand for the records that {whole} hold. A record that one of them lacks counted nowhere, "
            "not even in marginals of a single owner’s columns."
        )
    return (
        "The synthetic rows stand for every record that at least one owner holds. Where an owner lacks a record, its columns "
        "are missing there, by the same code as a value that is missing in the owner’s own data."
    )


def _size(alignment: Mapping[str, Any]) -> str:
    if alignment["method"] == "row-order":
        return "How many they are, this page tells only with noise."
    which = "these are" if alignment["population"] == "intersection" else "there are in all"
    return (
        f"How many {which}, this page tells only with noise; which ones, nobody learned: beyond what the sizes below say, no "
        "owner knows of a record of its own whether another holds it too."
    )


def _way(alignment: Mapping[str, Any]) -> str:
    by = " and ".join(f"“{name}”" for name in alignment["id"])
    together = f"Records were matched by {by}" + (" together" if len(alignment["id"]) > 1 else "")
    ways = {
        "merge3": f"{together}, inside the three-party computation: sorted, merged and compared as secret shares (merge3).",
        "helper": f"{together}: both owners sent keyed hashes to a computing party without data, which does not have the key "
        "(helper).",
        "dh2": f"{together}, by a Diffie-Hellman private set union between the two owners (dh2).",
        "florist": f"{together}, by the private set union of FLORIST as its authors print it (florist).",
        "row-order": "Nothing was matched: row after row belongs together.",
        "ideal": "The ideal backend joined the tables in the clear.",
    }
    return ways[alignment["via"]]


_TRUST = {
    "merge3": "This rests on what everything after it rests on: no two of the three computing parties pool what they hold.",
    "helper": "This rests on the helper not working together with an owner: the two could try out identifiers against the other "
    "owner’s list.",
    "dh2": "This rests on the hardness of Diffie-Hellman problems, with hash functions taken as random. An owner that departs "
    "from the protocol to learn which of its records the other holds is noticed, and the run stops, except with a chance "
    "below one in a thousand or if it guesses which they are; that is argued, not formally proven. It could still choose "
    "what to enter, which the sizes then tell it, or enter wrong data.",
    "florist": "This rests on both owners following the protocol, on the decisional Diffie-Hellman assumption, and on a hash "
    "function taken as random. An owner that departs from it can learn which of its records the other holds, "
    "without being noticed.",
    "row-order": "It protects nothing about who is in the data.",
    "ideal": "One process saw all identifiers.",
}


def _learned(
    facts: Mapping[str, Any], alignment: Mapping[str, Any], noisy: bool
) -> list[tuple[str, str, str, float, float]]:
    owners = {owner["name"] for owner in alignment["owners"]}
    computing = {party["name"] for party in facts["parties"] if party["role"] == "compute"}
    padded = bool(_settings(facts).get("pad_to"))
    found = []
    for view in alignment["views"]:
        name = view["name"]
        heard = told(alignment["via"], name in owners, len(owners), noisy, padded)
        found.append(
            (
                name,
                ", ".join(filter(None, ("owner" * (name in owners), "computes" * (name in computing)))),
                heard,
                float(view["epsilon"]),
                float(view["delta"]),
            )
        )
    return found


def _settings(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The study's [alignment]."""
    return (facts.get("public_study") or {}).get("alignment") or {}


def told(via: str, owner: bool, owners: int, noisy: bool, padded: bool = False) -> str:
    """Which sizes a party, an owner or not, is told by this protocol; in `merge3` whoever takes part is told all.

    padded: every list is filled up to a length that the study fixes, so that it tells nothing.
    """
    blurred = ", with noise" if noisy else ""
    if via == "row-order":
        return "how many rows there are" + ("" if owner else blurred)
    lists = (
        "the length of the other owner’s list"
        if owner and owners == 2
        else ("the lengths of the other owners’ lists" if owner else "the lengths of the owners’ lists")
    )
    union = "how many different records the owners hold together"
    if padded or (via in ("dh2", "florist") and not owner):
        return union + blurred
    return f"{lists} and {union}" + (", each with noise" if noisy else "")


def _note(alignment: Mapping[str, Any], noisy: bool) -> str:
    if alignment["via"] == "ideal":
        return ""
    if not noisy:
        return (
            "With “replace”, which records an owner holds is not what is protected, only their values: these sizes cost no "
            "epsilon. They are still not in this report, and not in any other file of the run."
        )
    if not any(view["sizes"] for view in alignment["views"]):
        return "Nobody learned a size that is not its own."
    view = next(view for view in alignment["views"] if view["sizes"])
    size = view["sizes"][0]
    return (
        f"Each noisy size hides any one record up to ε = {plain(size['epsilon'])} and δ = {plain(size['delta'], 2)}. What a "
        "party was told adds to what everybody reads here: its ε and δ hold for everything that it has seen. Recipients of "
        "the results have seen no size: for them the promise above holds as it stands."
    )
