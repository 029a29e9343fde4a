"""A vertical run in plain words: whose records the table is about, how they were joined, and what joining
revealed to whom.

Everything follows from the study and from who owned which columns (`run_json.alignment_facts`): no size is
known here. What each protocol reveals to whom: `mpc_protocols.psu.functionality`; the sentences about it: its
descriptor.
"""
# ruff: noqa: RUF001 - typographic apostrophes and quotes are meant

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.psu.method import METHODS, PSU
from runner.report.number_format import bound, listed, spelled, typeset


@dataclass(frozen=True)
class Joined:
    """Sentences and tables for the template. whose: in the sentence at the top, "the records that ...".
    owners: (name, columns). learned: per party (name, role, what its part in the join told it, epsilon and
    delta of its own view)."""

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
    return Joined(
        _population_text(alignment),
        _about(alignment, len(owners)),
        _size(alignment),
        _way(alignment),
        _trust(facts, alignment),
        owners,
        tuple(_learned(facts, alignment, noisy)),
        noisy,
        _note(alignment, noisy),
    )


def _population_text(alignment: Mapping[str, Any]) -> str:
    names = listed([owner["name"] for owner in alignment["owners"]])
    if alignment["method"] != PSU:
        return f"the records of {names}"
    return (
        f"the records that {names} have in common"
        if alignment["population"] == "intersection"
        else f"the records of {names}"
    )


def _about(alignment: Mapping[str, Any], owners: int) -> str:
    if alignment["method"] != PSU:
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
    if alignment["method"] != PSU:
        return "How many they are, this page tells only with noise."
    which = "these are" if alignment["population"] == "intersection" else "there are in all"
    size = f"How many {which}, this page tells only with noise"
    method = METHODS.get(alignment["via"])
    if method is None:
        return f"{size}."
    if method.reveals:
        return f"{size}. Joining revealed more than sizes: {typeset(method.reveals)}."
    if not method.hides_members:
        return f"{size}."
    return (
        f"{size}; which ones, nobody learned: beyond what the sizes below say, no owner knows of a record of its own whether "
        "another holds it too."
    )


def _way(alignment: Mapping[str, Any]) -> str:
    by = " and ".join(f"“{name}”" for name in alignment["id"])
    together = f"Records were matched by {by}" + (" together" if len(alignment["id"]) > 1 else "")
    method = METHODS.get(alignment["via"])
    if _in_the_clear(alignment):
        return f"The {alignment['via']} backend joined the tables in the clear."
    if method is None:
        return f"{together}, by {alignment['via']}."
    return typeset(method.matched).format(together=together)


def _in_the_clear(alignment: Mapping[str, Any]) -> bool:
    backend = BACKENDS.get(alignment["via"])
    return backend is not None and backend.ideal


def _trust(facts: Mapping[str, Any], alignment: Mapping[str, Any]) -> str:
    method = METHODS.get(alignment["via"])
    if _in_the_clear(alignment):
        return "One process saw all identifiers."
    if method is None:
        return "What this rests on depends on the method; its documentation says it."
    proven = _settings(facts).get("security") == "proofs"
    return typeset(" ".join(filter(None, (method.trust, method.trust_with_proofs if proven else ""))))


def _learned(
    facts: Mapping[str, Any], alignment: Mapping[str, Any], noisy: bool
) -> list[tuple[str, str, str, float, float]]:
    owners = {owner["name"] for owner in alignment["owners"]}
    computing = {party["name"] for party in facts["parties"] if party["role"] == "compute"}
    padded = bool(_settings(facts).get("pad_to"))
    method, found = METHODS.get(alignment["via"]), []
    for view in alignment["views"]:
        name = view["name"]
        heard = (
            "sizes, as the method reveals them"
            if method is None
            else typeset(method.sizes_shown(name in owners, len(owners), noisy, padded))
        )
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


def _note(alignment: Mapping[str, Any], noisy: bool) -> str:
    if _in_the_clear(alignment):
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
        f"Each noisy size hides any one record up to ε = {bound(size['epsilon'])} and δ = {bound(size['delta'], 2)}. What a "
        "party was told adds to what everybody reads here: its ε and δ hold for everything that it has seen. Recipients of "
        "the results have seen no size: for them the promise above holds as it stands."
    )
