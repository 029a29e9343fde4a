"""The report's section on joined records: true of every way to join, and silent about sizes."""
# ruff: noqa: RUF001 - typographic apostrophes are meant

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.psu.method import METHODS
from runner.report import render
from runner.report.words.alignment_text import joined
from runner.report.words.statement import faint
from tests.runner.report.fake import write_run
from tests.toys import open_method

OWNERS = [
    {"name": "north", "columns": ["age", "work", "schooling"]},
    {"name": "south", "columns": ["married", "income", "region"]},
]
NAMES = ("north", "south", "west")
SIZE = {"of": "intersection", "epsilon": 0.1, "delta": 9.3e-10, "rho": 0.005}


def facts_of(via: str, population: str = "intersection", adjacency: str = "add-remove") -> dict[str, Any]:
    """run.json of a vertical run, as far as the section reads it."""
    sizes = [SIZE] if adjacency == "add-remove" and via != "ideal" else []
    views = [
        {"name": name, "epsilon": 1.0 + 0.1 * len(sizes), "delta": 1e-5, "sizes": sizes} for name in NAMES
    ]
    return {
        "alignment": {
            "method": "row-order" if via == "row-order" else "psu",
            "via": via,
            "population": population,
            "id": [] if via == "row-order" else ["person"],
            "owners": OWNERS,
            "views": [] if via == "ideal" else views,
        },
        "privacy": {"adjacency": adjacency},
        "parties": [{"name": name, "role": "compute"} for name in NAMES],
    }


def page_of(directory: Path, **alignment: Any) -> str:
    run = write_run(directory, rounds=5)
    joining = facts_of(**alignment)
    run["alignment"], run["partition"] = joining["alignment"], "vertical"
    run["privacy"]["adjacency"] = joining["privacy"]["adjacency"]
    run["public_study"]["privacy"]["unit"] = {"identifier": ["person"]}
    run["phases"][2] |= {"withheld": True, "wall_s": 0.0, "rounds": 0, "bytes_sent": 0}
    (directory / "run.json").write_text(json.dumps(run))
    return re.sub(r"\s+", " ", render(directory).read_text())


@pytest.mark.parametrize("via", ["merge3", "helper", "dh2", "florist", "row-order", "ideal"])
@pytest.mark.parametrize("population", ["intersection", "union"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_every_way_has_its_words(via: str, population: str, adjacency: str) -> None:
    found = joined(facts_of(via, population, adjacency))
    assert found is not None and found.owners[1] == ("south", ("married", "income", "region"))
    for sentence in (found.about, found.size, found.way, found.trust):
        assert sentence.endswith(".") and sentence[0].isupper()
    if via == "ideal":
        assert not found.learned and not found.note
        return
    heard = {name: told for name, _, told, _, _ in found.learned}
    assert ("with noise" in heard["west"]) == (adjacency == "add-remove")
    if via in ("dh2", "florist"):  # the third party only hears how many rows there are
        assert "list" not in heard["west"] and "list" in heard["north"]
    elif via != "row-order":
        assert "lengths of the owners" in heard["west"] and "other owner" in heard["south"]
    else:
        assert "noise" not in heard["north"]  # it knows its own rows


def test_contributors_of_merge3_hear_all_sizes() -> None:
    """The protocol sends every owner the lengths of all lists (`replicated.merge3`), whether it computes or
    not."""
    facts = facts_of("merge3")
    facts["parties"][1]["role"] = "contribute"
    heard = {name: told for name, _, told, _, _ in joined(facts).learned}  # type: ignore[union-attr]
    assert heard["south"] == heard["north"] and "length of the other owner" in heard["south"]


def test_padded_lists_tell_no_length() -> None:
    facts = facts_of("merge3")
    facts["public_study"] = {"alignment": {"pad_to": 5000}}
    heard = {told for _, _, told, _, _ in joined(facts).learned}  # type: ignore[union-attr]
    assert heard == {"how many different records the owners hold together, with noise"}


def test_proofs_are_mentioned() -> None:
    facts = facts_of("dh2")
    plain = joined(facts).trust  # type: ignore[union-attr]
    facts["public_study"] = {"alignment": {"security": "proofs"}}
    assert joined(facts).trust.startswith(plain) and "proven to be right" in joined(facts).trust  # type: ignore[union-attr]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_method_that_shows_identifiers_is_not_said_to_hide_them(tmp_path: Path, adjacency: str) -> None:
    hidden = ("which ones, nobody learned", "which of its own another owner holds", "nobody is told")
    page = page_of(tmp_path / "a", via="merge3", adjacency=adjacency)
    assert hidden[0] in page and hidden[1] in page and (hidden[2] in page) == (adjacency == "replace")
    assert "revealed more" not in page
    with METHODS.registered(open_method.METHOD):
        page = page_of(tmp_path / "b", via="open", adjacency=adjacency)
    assert not [words for words in hidden if words in page]
    assert page.count("evealed more") == 2 and "each owner learns every identifier of the other" in page
    assert "Another owner’s values beside the identifiers; counts; any part of the noise" in page


def test_row_order_and_unknown_methods_are_said_to_hide_no_memberships(tmp_path: Path) -> None:
    page = page_of(tmp_path / "a", via="row-order", adjacency="replace")
    assert "Another owner’s records; counts" in page and "nobody is told" not in page
    page = page_of(tmp_path / "b", via="a-later-one", adjacency="replace")
    assert "Any other party’s counts; any part" in page
    assert "nobody is told" not in page and "nobody learned" not in page


def test_a_table_of_noise_is_called_one() -> None:
    """Nobody in common is no error, for an error would tell it; what is released tells it with noise."""

    def said(total: float, **alignment: str) -> str:
        facts = facts_of("merge3") if alignment else {"privacy": {}}
        facts["privacy"] |= {
            "noisy_total": total,
            "events": [{"what": "select"}, {"what": "measure", "sigma2": "400/1"}],
        }
        if alignment:
            facts["alignment"] |= alignment
        return faint(facts)

    joining = {"population": "intersection"}
    assert said(100.0, **joining) == said(1e6) == ""
    assert "it stands for 9 records, counted with noise, and every measured count" in said(9.4, **joining)
    assert "a standard deviation of 20." in said(9.4, **joining) and "for 1 record, counted" in said(
        1.2, **joining
    )
    assert "normalise" in said(99.0, **joining) and "for no records, counted" in said(-30.0, **joining)
    for other in (said(9.0), said(9.0, population="union"), said(9.0, method="row-order")):
        assert "normalise" not in other and other.endswith("too little data for this epsilon.")


def test_only_florist_is_said_to_be_broken_unnoticed() -> None:
    said = {via: joined(facts_of(via)).trust for via in ("merge3", "helper", "dh2", "florist")}  # type: ignore[union-attr]
    assert [via for via, words in said.items() if "without being noticed" in words] == ["florist"]
    assert "is noticed" in said["dh2"] and "one in a thousand" in said["dh2"]  # `psu.dh2.traps`
    assert "pool" in said["merge3"] and "together with an owner" in said["helper"]


def test_the_page(tmp_path: Path) -> None:
    page = page_of(tmp_path / "a", via="merge3")
    for words in (
        "Whose records",
        "the records that north and south have in common",
        "Its ε",
        "1.1",
        "any one record had been left out or added",
        "everything that the owners hold under one identifier",
        "columns, record by record",
        ">withheld<",
        "The traffic and the time of joining and sharing records",
    ):
        assert words in page, words
    page = page_of(tmp_path / "b", via="helper", population="union", adjacency="replace")
    for words in (
        "every record that at least one owner holds",
        "these sizes cost no epsilon",
        "any one record had held",
    ):
        assert words in page, words
    assert "Its ε" not in page


def test_a_horizontal_page_says_nothing_of_it(tmp_path: Path) -> None:
    write_run(tmp_path, rounds=5)
    page = render(tmp_path).read_text()
    assert "Whose records" not in page and "withheld" not in page and "record by record" not in page


def test_only_methods_that_hide_who_is_in_common_are_said_to(tmp_path: Path) -> None:
    with METHODS.registered(open_method.METHOD):
        for via in ("merge3", "florist", "open", "ideal", "a newer one"):
            page = page_of(tmp_path / via, via=via, adjacency="replace")
            hides = via in ("merge3", "florist")
            assert ("no owner knows of a record of its own" in page) == hides, via
            assert ("nobody is told all the same" in page) == hides, via
