"""Vertical study files: who owns what, what can be aligned by whom, what goes into the digest. Every misfit
has its sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import StudyInvalid
from runner.study import VerticalStudy, digest, load, private_file, problems
from runner.study.owners import method_of, misfits, ownership
from tests.runner.studies import STUDY, write_study

ALIGNMENT = '[alignment]\nmethod = "psu"\nid = "person"\nmin_size = 10\n\n'
VERTICAL = (
    STUDY.replace('partition = "horizontal"', 'partition = "vertical"')
    .replace("[session]", ALIGNMENT + "[session]")
    .replace('data = "north.csv"\n', 'data = "north.csv"\ncolumns = ["age"]\n')
    .replace('data = "south.csv"\n', 'data = "south.csv"\ncolumns = ["sex", "work"]\n')
    .replace('data = "west.csv"\n', "")
)
NORTH = 'columns = ["age"]\n'
ROW_ORDER = ('"psu"\nid = "person"', '"row-order"')
WITHIN_SOUTH = (
    '[domain]\nbroken_rows = "leave out"\n[[domain.constraints]]\nif = { sex = "f" }\nthen = { work = "a" }\n'
)
FOURTH = '\n[[party]]\nname = "east"\naddress = "127.0.0.1:7104"\n'
EVERYBODY = {"north": ("age",), "south": ("sex", "work")}


def write_vertical(directory: Path, *changes: tuple[str, str], more: str = "") -> Path:
    return write_study(directory, *changes, text=VERTICAL + more)


def study_of(directory: Path, *changes: tuple[str, str], more: str = "") -> VerticalStudy:
    study = load(write_vertical(directory, *changes, more=more))
    assert isinstance(study, VerticalStudy)
    return study


def test_a_valid_vertical_study(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    alignment = study.alignment
    assert study.partition == "vertical"
    assert (alignment.method, alignment.via, alignment.id, alignment.population) == (
        "psu",
        "auto",
        ("person",),
        "intersection",
    )
    assert (alignment.duplicates, alignment.normalise, alignment.security) == (
        "refuse",
        ("text",),
        "semi-honest",
    )
    assert (alignment.size_epsilon, alignment.size_delta) == (
        Fraction(1, 10),
        Fraction(1, 10**9),
    )  # the decimals, exactly
    assert study.privacy.unit.rows == 1 and "person" in study.privacy.unit.words
    assert method_of(study).name == "merge3"
    owned = ownership(study, EVERYBODY)
    assert owned.owners == ("north", "south") and owned.of("south") == ("sex", "work")
    assert list(owned.columns) == list(study.domain.names)


def test_public_form_and_digest(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    public = json.loads(json.dumps(study.public()))
    assert ".csv" not in json.dumps(public)
    assert public["privacy"]["unit"] == {"identifier": ["person"]} and public["party"][0]["columns"] == [
        "age"
    ]
    assert "columns" not in public["party"][2]
    assert public["alignment"] == {
        "method": "psu",
        "population": "intersection",
        "min_size": 10,
        "via": "auto",
        "id": ["person"],
        "duplicates": "refuse",
        "normalise": ["text"],
        "security": "semi-honest",
        "size_epsilon": 0.1,
        "size_delta": 1e-9,
    }
    seen = {digest(study, "ca")}
    for change in (
        ("min_size = 10", "min_size = 11"),
        ('id = "person"', 'id = ["person"]'),
        (NORTH, 'columns = ["age", "sex"]\n'),
        ("min_size = 10", 'min_size = 10\nvia = "helper"'),
    ):
        other = (
            [change]
            if "sex" not in change[1]
            else [change, ('columns = ["sex", "work"]', 'columns = ["work"]')]
        )
        seen.add(digest(study_of(tmp_path, *other), "ca"))
    assert len(seen) == 5
    moved = digest(study_of(tmp_path, ('data = "north.csv"\n', 'data = "elsewhere.csv"\n')), "ca")
    assert moved == digest(study, "ca")  # where data lies stays at its party
    replace = study_of(tmp_path, ("add-remove", "replace"))
    assert "size_epsilon" not in replace.public()["alignment"]


BAD: dict[str, tuple[Sequence[tuple[str, str]], str]] = {
    "no alignment": ([(ALIGNMENT, "")], 'has no [alignment] table, and partition = "vertical" needs one'),
    "no id": (
        [('id = "person"\n', "")],
        "[alignment] id is missing: it must be the name of the identifier's column",
    ),
    "id twice": ([('id = "person"', 'id = ["a", "a"]')], "[alignment] id must be a list of different names"),
    "id empty": ([('id = "person"', "id = []")], "[alignment] id must be a list of different names"),
    "id in the domain": (
        [('id = "person"', 'id = "work"')],
        '[alignment] id = "work" is also a column of the domain',
    ),
    "method": ([('"psu"', '"psi"')], 'method must be "psu" or "row-order", got "psi"'),
    "via": ([("min_size = 10", 'via = "dh3"')], '"florist", got "dh3" (did you mean "dh2"?)'),
    "unknown key": (
        [("min_size = 10", "minsize = 10")],
        '[alignment] unknown key "minsize" (did you mean "min_size"?)',
    ),
    "row-order with id": (
        [('"psu"', '"row-order"')],
        '[alignment] id has no meaning with method = "row-order"',
    ),
    "row-order with union": (
        [('"psu"\nid = "person"', '"row-order"\npopulation = "union"')],
        "every row is at every owner",
    ),
    "row-order with rows left out": (
        [ROW_ORDER, ("[session]", f"{WITHIN_SOUTH}[session]")],
        '[domain] broken_rows = "leave out" would leave rows out at one owner',
    ),
    "row-order with rows left out, nobody's columns told": (
        [
            ROW_ORDER,
            ("[session]", f"{WITHIN_SOUTH}[session]"),
            (NORTH, ""),
            ('columns = ["sex", "work"]\n', ""),
        ],
        'use "refuse" and take such people out of all tables, or align by identifiers',
    ),
    "unit": (
        [("delta = 1e-9", 'delta = 1e-9\nunit = { id = "person", max_rows = 1, max_custodians = 2 }')],
        "[privacy] unit must be left out of a vertical study: its unit is one identifier",
    ),
    "union without a code": (
        [("min_size = 10", 'population = "union"')],
        "declare missing = true for the columns age, sex (kind numeric or categorical)",
    ),
    "normalise": (
        [("min_size = 10", 'normalise = "phone:XX"')],
        'or "phone:CC" with a country such as "phone:FR"',
    ),
    "normalise short": (
        [('id = "person"', 'id = ["a", "b"]\nnormalise = ["text"]')],
        "or a list, one per column of id",
    ),
    "proofs": (
        [("min_size = 10", 'security = "proofs"')],
        'security = "proofs" needs via = "dh2", the only protocol that has',
    ),
    "pad_to": (
        [("min_size = 10", "pad_to = 10")],
        "pad_to must be a whole number from min_size = 1,000 to max_rows = 4,194,304",
    ),
    "pad_to names": (
        [("min_size = 10", "pad_to = { nort = 5000, south = 5000 }")],
        '[alignment] pad_to names "nort", which is not a party (did you mean "north"?)',
    ),
    "sizes with replace": (
        [("add-remove", "replace"), ("min_size = 10", "size_epsilon = 1")],
        'size_epsilon belongs to adjacency = "add-remove": with "replace", list sizes are public',
    ),
    "size_epsilon": (
        [("min_size = 10", "size_epsilon = 20")],
        "size_epsilon must be a number greater than 0 and less than 20",
    ),
    "size_delta": (
        [("min_size = 10", "size_delta = 0.5")],
        "size_delta must be a number greater than 0 and less than 0.5",
    ),
    "min_size above max_rows": (
        [("delta = 1e-9", "delta = 1e-9\nmax_rows = 5")],
        "min_size = 10 is more than [privacy] max_rows = 5",
    ),
    "two owners of a column": (
        [(NORTH, 'columns = ["age", "work"]\n')],
        'the column "work" is at north and south: each column needs exactly one owner (a partition by',
    ),
    "foreign column": (
        [(NORTH, 'columns = ["agee"]\n')],
        '[[party]] north columns names "agee", which the domain does not have',
    ),
    "no columns": ([(NORTH, "columns = []\n")], "[[party]] north columns must be a list of different names"),
    "helper without a helper": (
        [
            ("min_size = 10", 'via = "helper"'),
            ('address = "127.0.0.1:7103"\n', 'address = "127.0.0.1:7103"\ndata = "west.csv"\n'),
        ],
        'via = "helper" aligns two owners, and there are 3 (north, south, west); use via = "merge3"',
    ),
    "dh2 of three": (
        [
            ("min_size = 10", 'via = "dh2"'),
            ('address = "127.0.0.1:7103"\n', 'address = "127.0.0.1:7103"\ncolumns = ["sex"]\n'),
            ('columns = ["sex", "work"]', 'columns = ["work"]'),
        ],
        'via = "dh2" aligns two owners, and there are 3',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_vertical_studies(tmp_path: Path, case: str) -> None:
    changes, words = BAD[case]
    path = write_vertical(tmp_path, *changes)
    with pytest.raises(StudyInvalid) as raised:
        load(path)
    assert raised.value.exit_code == 10
    assert words in raised.value.sentence and str(path) in raised.value.sentence
    assert raised.value.sentence.endswith((".", ".)")) and "\n" not in raised.value.sentence
    assert problems(path)[0] == raised.value.sentence and len(problems(path)) == 1


def test_rows_that_break_a_constraint_may_be_left_out_where_identifiers_align(tmp_path: Path) -> None:
    assert study_of(tmp_path, ("[session]", f"{WITHIN_SOUTH}[session]")).domain.broken_rows == "leave out"
    refusing = WITHIN_SOUTH.replace("leave out", "refuse")
    assert study_of(tmp_path, ROW_ORDER, ("[session]", f"{refusing}[session]")).domain.constraints


@pytest.mark.parametrize(
    ("rule", "key"), [("filter = \"age = '1'\"", "filter"), ('missing_ids = "leave out"', "missing_ids")]
)
def test_an_owner_may_leave_no_row_out_of_tables_joined_row_by_row(
    tmp_path: Path, rule: str, key: str
) -> None:
    (tmp_path / "north.toml").write_text(f"[harmonise]\n{rule}\n")
    private = private_file.load(tmp_path / "north.toml")
    assert private_file.location(study_of(tmp_path), "north", private) is not None
    with pytest.raises(StudyInvalid) as raised:
        private_file.location(study_of(tmp_path, ROW_ORDER), "north", private)
    assert f"[harmonise] {key} leaves rows out" in raised.value.sentence and raised.value.exit_code == 10


ANNOUNCED: dict[str, tuple[Sequence[tuple[str, str]], str, dict[str, tuple[str, ...]], str]] = {
    "nobody": ([], "", {}, "nobody has any; give the others data"),
    "one owner": ([], "", {"north": ("age",)}, "only north has any"),
    "an orphan": (
        [('columns = ["sex", "work"]', 'columns = ["sex"]')],
        "",
        EVERYBODY,
        "no owner has the column work:",
    ),
    "horizontal": (
        [(NORTH, ""), ('columns = ["sex", "work"]\n', "")],
        "",
        {"north": ("age", "sex", "work"), "south": ("age", "sex", "work")},
        "every column of the domain is at north and south: different people's rows with the same columns are "
        'partition = "horizontal"',
    ),
    "mixed": (
        [(NORTH, ""), ('columns = ["sex", "work"]\n', "")],
        "",
        {"north": ("age", "sex"), "south": ("sex", "work")},
        'the column "sex" is at north and south: each column needs exactly one owner (a partition by columns and by rows',
    ),
    "mixed in the rows": (
        [(NORTH, ""), ('columns = ["sex", "work"]\n', "")],
        "",
        {"north": ("age",), "south": ("sex", "work"), "west": ("sex", "work")},
        'the column "sex" is at south and west',
    ),
    "the helper has data": (
        [
            ("min_size = 10", 'min_size = 10\nvia = "helper"'),
            ('columns = ["sex", "work"]', 'columns = ["sex"]'),
        ],
        "",
        EVERYBODY | {"west": ("work",)},
        'via = "helper" aligns two owners, and there are 3',
    ),
    "a contributing owner": (
        [("min_size = 10", 'min_size = 10\nvia = "helper"'), (NORTH, NORTH + "compute = false\n")],
        FOURTH,
        EVERYBODY,
        'via = "helper" needs both owners among the computing parties, and north does not',
    ),
    "owners without a link": (
        [
            ("min_size = 10", 'min_size = 10\nvia = "dh2"'),
            (NORTH, NORTH + "compute = false\n"),
            ('columns = ["sex", "work"]', 'columns = ["sex", "work"]\ncompute = false'),
        ],
        FOURTH + FOURTH.replace("east", "hill").replace("7104", "7105"),
        EVERYBODY,
        'via = "dh2" needs a connection between the owners, and north and south do not compute',
    ),
    "pad_to of an owner": (
        [("min_size = 10", "pad_to = { north = 5000 }")],
        "",
        EVERYBODY,
        "pad_to has no size for south",
    ),
}


EARLY = ("a contributing owner", "owners without a link", "pad_to of an owner")


@pytest.mark.parametrize("case", ANNOUNCED)
def test_what_the_parties_bring_does_not_fit(tmp_path: Path, case: str) -> None:
    """What only their announcements show: the same refusal at every party."""
    changes, more, announced, words = ANNOUNCED[case]
    study = study_of(tmp_path, *changes, more=more) if case not in EARLY else None
    if study is None:  # these already show in the study: both owners declare their columns
        with pytest.raises(StudyInvalid) as raised:
            study_of(tmp_path, *changes, more=more)
    else:
        assert len(misfits(study, announced)) >= 1
        with pytest.raises(StudyInvalid) as raised:
            ownership(study, announced)
    assert (
        words in raised.value.sentence
        and raised.value.exit_code == 10
        and raised.value.sentence.endswith(".")
    )


def test_declared_columns_win_over_those_in_the_data(tmp_path: Path) -> None:
    study = study_of(tmp_path, ('columns = ["sex", "work"]\n', ""))
    assert ownership(study, {"north": ("age", "sex", "work"), "south": ("sex", "work")}).of("north") == (
        "age",
    )


def test_more_owners_than_can_be_aligned(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(9)]
    study = study_of(
        tmp_path,
        more="".join(
            FOURTH.replace("east", name).replace("7104", str(7110 + i)) for i, name in enumerate(names)
        ),
    )
    assert misfits(study, EVERYBODY) == []
    found = misfits(study, EVERYBODY | dict.fromkeys(names, ()))
    assert found == ["11 parties own columns; at most 8 can be aligned."]


def test_the_ideal_backend_joins_whatever_the_owners_compute(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        ('"replicated"', '"ideal"'),
        ("min_size = 10", 'via = "dh2"'),
        (NORTH, NORTH + "compute = false\n"),
        ('columns = ["sex", "work"]', 'columns = ["sex", "work"]\ncompute = false'),
    )
    assert misfits(study, EVERYBODY) == []
