"""The study and private files: every kind of bad input gets its sentence, the digest sees every public byte."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import PeerIdentity, StudyInvalid
from mpc_protocols.process.foreign_toml import parse_toml
from parties.budget.notion import ProtectedUnit
from runner.commands.cli import main
from runner.study import Study, digest, load, private_file, problems
from runner.study.hashing import agreed_tree
from runner.version import PROTOCOL
from tests.runner.studies import STUDY, write_study

NORTH = '[[party]]\nname = "north"\naddress = "127.0.0.1:7101"\ndata = "north.csv"\n'
WEST = '[[party]]\nname = "west"\naddress = "127.0.0.1:7103"\ndata = "west.csv"\n'
AGE = '[domain.columns.age]\nkind = "numeric"\nlow = 17\nhigh = 90\nbins = 8\n'


def test_a_valid_study(tmp_path: Path) -> None:
    study = load(write_study(tmp_path))
    assert (study.name, study.algorithm, study.backend, study.partition) == (
        "trial",
        "aim",
        "replicated",
        "horizontal",
    )
    assert (
        study.privacy.epsilon == 1
        and study.privacy.delta == Fraction(1, 10**9)
        and study.privacy.max_rows == 2**22
    )
    assert study.privacy.unit.id is None and study.privacy.unit.rows == 1
    assert dict(study.domain.sizes) == {"age": 8, "sex": 2, "work": 4}
    assert study.workload.cliques == (("age", "sex"), ("age", "work"), ("sex", "work"))
    assert [party.name for party in study.computing] == [
        "north",
        "south",
        "west",
    ] and study.leader.name == "south"
    assert (west := study.party("west").data) is not None and west.path == tmp_path / "west.csv"
    with pytest.raises(FrozenInstanceError):
        study.name = "other"  # type: ignore[misc]


def test_data_lies_where_the_file_that_names_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the current directory: also a DuckDB database, whose address is a path with escapes."""
    folder = tmp_path / "50%20? of"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    study = load(
        write_study(
            folder,
            ('"south.csv"', '{ url = "duckdb://in/the%20south.db", table = "s.people" }'),
            ('"west.csv"', f'{{ url = "duckdb://{tmp_path.as_posix()}/w.db", table = "people" }}'),
        )
    )
    places = [party.data.locate() for party in study.parties if party.data is not None]
    assert [place.path for place in places] == [
        folder / "north.csv",
        folder / "in" / "the south.db",
        tmp_path / "w.db",
    ]
    assert [place.table for place in places] == ["", "s.people", "people"]


def test_public_form_is_json_and_holds_no_data(tmp_path: Path) -> None:
    text = json.dumps(load(write_study(tmp_path)).public())
    assert ".csv" not in text and json.loads(text)["aim"]["rounds"] == 4
    assert [column["name"] for column in json.loads(text)["domain"]["columns"]] == ["age", "sex", "work"]


BAD = {
    "syntax": (("epsilon = 1.0", "epsilon = = 1.0"), "line 8, column 11"),
    "unknown key": (("rounds = 4", "round = 4"), '[aim] unknown key "round" (did you mean "rounds"?)'),
    "unknown table": (("[session]", "[sesion]"), 'unknown key "sesion" (did you mean "session"?)'),
    "algorithm typo": (
        ('"aim"', '"aims"'),
        '[study] algorithm must be "aim", "mwem", "mst", "mosaic", "privmrf", "vertimrf", "flaim", '
        '"vertigan" or "florist", got "aims" '
        '(did you mean "aim"?)',
    ),
    "table of another": (
        ('algorithm = "aim"', 'algorithm = "mwem"'),
        '[aim] has no meaning with algorithm = "mwem"',
    ),
    "backend typo": (
        ('"replicated"', '"additiv"'),
        '"shamir", "pair", "paillier", "additive" or "ideal", got "additiv" (did you mean "additive"?)',
    ),
    "vertical": (
        ('"horizontal"', '"vertical"'),
        'has no [alignment] table, and partition = "vertical" needs one',
    ),
    "epsilon zero": (
        ("epsilon = 1.0", "epsilon = 0"),
        "[privacy] epsilon must be a number greater than 0 and less than 1e+06, got 0",
    ),
    "epsilon negative": (("epsilon = 1.0", "epsilon = -2.5"), "less than 1e+06, got -2.5"),
    "epsilon infinite": (("epsilon = 1.0", "epsilon = inf"), "less than 1e+06, got inf"),
    "epsilon of a million": (("epsilon = 1.0", "epsilon = 1000000"), "less than 1e+06, got 1000000"),
    "epsilon no number": (("epsilon = 1.0", "epsilon = nan"), "got nan"),
    "epsilon text": (("epsilon = 1.0", 'epsilon = "1"'), 'got "1"'),
    "epsilon true": (("epsilon = 1.0", "epsilon = true"), "got true"),
    "epsilon missing": (("epsilon = 1.0", ""), "[privacy] epsilon is missing"),
    "backend missing": (
        ('backend = "replicated"', ""),
        '[study] backend is missing: it must be "replicated", "shamir", "pair", "paillier", "additive" or "ideal"',
    ),
    "delta one": (
        ("delta = 1e-9", "delta = 1.0"),
        "[privacy] delta must be a number greater than 0 and less than 1, got 1.0",
    ),
    "delta zero": (("delta = 1e-9", "delta = 0"), "less than 1, got 0"),
    "delta nan": (("delta = 1e-9", "delta = nan"), "less than 1, got nan"),
    "delta inf": (("delta = 1e-9", "delta = inf"), "less than 1, got inf"),
    "adjacency": (
        ("add-remove", "addremove"),
        'must be "add-remove" or "replace", got "addremove" (did you mean "add-remove"?)',
    ),
    "max_rows": (
        ("delta = 1e-9", "delta = 1e-9\nmax_rows = 0"),
        "max_rows must be a whole number of at least 1",
    ),
    "unit": (("delta = 1e-9", 'delta = 1e-9\nunit = "person"'), 'unit must be "row" or'),
    "unit half": (
        ("delta = 1e-9", 'delta = 1e-9\nunit = {id = "person", max_rows = 3}'),
        "max_custodians is missing",
    ),
    "workload column": (
        ("degree = 2", 'cliques = [["age", "seks"]]'),
        'names the column "seks", which the domain does not have',
    ),
    "workload degree": (
        ("degree = 2", "degree = 4"),
        "[workload] degree must be a whole number of at least 1 and at most 3, got 4",
    ),
    "workload both": (("degree = 2", 'degree = 2\ncliques = [["age"]]'), "cliques"),
    "workload label": (
        ("degree = 2", 'degree = 2\nlabel = "seks"'),
        'label names the column "seks", which the domain does not have',
    ),
    "workload label of another type": (
        ("degree = 2", "degree = 2\nlabel = 3"),
        "[workload] label must be the name of a column, got 3",
    ),
    "workload none": (("degree = 2", ""), "[workload]"),
    "rounds": (
        ("rounds = 4", 'rounds = "adaptiv"'),
        'or "adaptive", got "adaptiv" (did you mean "adaptive"?)',
    ),
    "share": (
        ("rounds = 4", "select_share = 1.0"),
        "select_share must be a number greater than 0 and less than 1",
    ),
    "foreign table": (
        ("[session]", "[mst]\nmax_model_mb = 1\n[session]"),
        '[mst] has no meaning with algorithm = "aim"',
    ),
    "question typo": (
        ("[session]", '[inference]\nqueries = ["mean(agee)"]\n[session]'),
        '[inference] queries holds "mean(agee)", which cannot be answered:',
    ),
    "question no grammar": (
        ("[session]", '[inference]\nqueries = ["mean(age"]\n[session]'),
        "which cannot be answered",
    ),
    "mean of words": (
        ("[session]", '[inference]\nqueries = ["mean(work) | sex"]\n[session]'),
        "which cannot be answered",
    ),
    "questions' share": (
        ("[session]", '[inference]\nqueries = ["mean(age) | sex"]\nshare = 0.95\n[session]'),
        "[inference] share must be a number greater than 0 and less than 0.9",
    ),
    "questions of no list": (
        ("[session]", '[inference]\nqueries = "mean(age)"\n[session]'),
        "[inference] queries must be",
    ),
    "questions too many": (
        (
            "[session]",
            f"[inference]\nqueries = {[f'mean(age | age < {k + 20})' for k in range(101)]}\n[session]",
        ),
        "holds 101 questions",
    ),
    "question too large": (
        (
            "rounds = 4",
            "rounds = 4\nmax_model_mb = 0.0001\n[inference]\nqueries = [\"mean(age | work == 'a') | sex\"]",
        ),
        "max_model_mb = 0.0001",
    ),
    "alignment": (("[session]", '[alignment]\nmethod = "psu"\n[session]'), "[alignment] has no meaning"),
    "column": (("bins = 8", "bins = 0"), "age"),
    "column kind": (('"numeric"', '"numerical"'), "age"),
    "column too large": (
        ("bins = 8", "bins = 600000"),
        'max_model_mb = 4 MiB is too small for the column "age" alone',
    ),
    "clique too large": (
        (AGE + "\n", "".join(AGE.replace("age", f"x{i}").replace("bins = 8", "bins = 5000") for i in (1, 2))),
        "x1, x2 of 25,000,000 cells",
    ),
    "domain twice": (
        (AGE, '[domain]\nfile = "x.json"\n' + AGE),
        "[domain] needs either file or columns, and only one of them",
    ),
    "silence": (("silence_s = 200", "silence_s = 0.5"), "silence_s must be a number greater than"),
    "loopback": (
        ("127.0.0.1:7102", "10.0.0.2:7102"),
        '[[party]] south address = "10.0.0.2:7102" is not a loopback address',
    ),
    "two parties": (
        (WEST, ""),
        'has two computing parties only (north, south), and backend = "replicated" needs exactly three',
    ),
    "two compute": ((WEST, WEST + "compute = false\n"), "has two computing parties only (north, south)"),
    "no party": ((STUDY[STUDY.index("[[party]]") :], ""), "has no [[party]] table"),
    "same name": (('name = "west"', 'name = "North"'), 'is named like an earlier party ("north")'),
    "same port": (
        ("127.0.0.1:7103", "127.0.0.1:7101"),
        'west address = "127.0.0.1:7101" is the address of north too',
    ),
    "no port": (("127.0.0.1:7103", "127.0.0.1"), 'west address must be "host:port"'),
    "port 70000": (("127.0.0.1:7103", "127.0.0.1:70000"), "with a port from 1 to 65535"),
    "name path": (('name = "west"', 'name = "../west"'), "files are named after it"),
    "data kind": (
        ("west.csv", "west.ods"),
        'data must name a .csv, .tsv, .parquet or .xlsx file, or be { url = "...", table = "..." }, got "west.ods"',
    ),
    "fingerprint": ((WEST, WEST + 'fingerprint = "abc"\n'), "64 hexadecimal digits"),
    "columns": ((WEST, WEST + 'columns = ["age"]\n'), "every custodian has all columns"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_studies(tmp_path: Path, case: str) -> None:
    change, words = BAD[case]
    path = write_study(tmp_path, change)
    with pytest.raises(StudyInvalid) as raised:
        load(path)
    assert raised.value.exit_code == 10
    assert words in raised.value.sentence and str(path) in raised.value.sentence
    assert raised.value.sentence.endswith((".", ".)")) and "\n" not in raised.value.sentence
    assert problems(path)[0] == raised.value.sentence


def test_all_problems_at_once(tmp_path: Path) -> None:
    path = write_study(
        tmp_path,
        ("epsilon = 1.0", "epsilon = -1"),
        ("delta = 1e-9", "delta = 2"),
        ("rounds = 4", "rounds = 0"),
        ("bins = 8", "bins = -1"),
        ("127.0.0.1:7103", "127.0.0.1:7101"),
        ('"f", "m"', '"f", "f"'),
    )
    found = problems(path)
    assert len(found) == 6
    for word, sentence in zip(("epsilon", "delta", "age", "sex", "rounds", "7101"), found, strict=True):
        assert word in sentence


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="no such file"):
        load(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(StudyInvalid, match="not UTF-8"):
        load(tmp_path / "latin.toml")


def test_a_byte_order_mark_is_no_part_of_a_study(tmp_path: Path) -> None:
    plain = write_study(tmp_path)
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert agreed_tree(load(marked)) == agreed_tree(load(plain))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"age": 8, "sex": 2,}', "not JSON"),
        ('{"age": 8, "age": 9}', '"age" stands there twice'),
        ("[1]", "file must map every column"),
        ("{}", "file must map every column"),
        ('{"age": -1}', "age"),
        ('{"age": 16777217}', "age"),
    ],
)
def test_domain_files(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "domain.json").write_text(content)
    text = (
        STUDY[: STUDY.index("[domain.columns.age]")]
        + '[domain]\nfile = "domain.json"\n'
        + STUDY[STUDY.index("[session]") :]
    )
    with pytest.raises(StudyInvalid, match=words):
        load(write_study(tmp_path, text=text))


def test_who_computes(tmp_path: Path) -> None:
    fourth = '[[party]]\nname = "east"\naddress = "127.0.0.1:7104"\n'
    study = load(write_study(tmp_path, (WEST, WEST + fourth)))
    assert [party.name for party in study.numbered] == ["north", "south", "west", "east"] and not study.party(
        "east"
    ).compute
    study = load(write_study(tmp_path, (NORTH, NORTH + "compute = false\n"), (WEST, WEST + fourth)))
    assert [party.name for party in study.numbered] == ["south", "west", "east", "north"]
    four = [(f'name = "{name}"', f'name = "{name}"\ncompute = true') for name in ("north", "south", "west")]
    path = write_study(
        tmp_path, *four, ('data = "west.csv"\n', 'data = "west.csv"\n' + fourth + "compute = true\n")
    )
    assert "has 4 computing parties" in problems(path)[0]


def test_an_ideal_study_needs_no_three_parties(tmp_path: Path) -> None:
    assert len(load(write_study(tmp_path, ('"replicated"', '"ideal"'), (WEST, ""))).parties) == 2


# -- digest ---------------------------------------------------------------------------------------------------------------


def test_the_digest_forgets_data_comments_and_spacing(tmp_path: Path) -> None:
    one = digest(load(write_study(tmp_path)), "ab" * 32)
    same = write_study(
        tmp_path,
        ("south.csv", "elsewhere/south.parquet"),
        ("[aim]\nrounds = 4", "[aim]   # ten\nrounds=4"),
        ('data = "west.csv"\n', ""),
    )
    assert digest(load(same), ":".join(["AB"] * 32)) == one and len(one) == 32


PUBLIC = (
    ("trial", "trials"),
    ("epsilon = 1.0", "epsilon = 1.0000001"),
    ("delta = 1e-9", "delta = 2e-9"),
    ("add-remove", "replace"),
    ("degree = 2", "degree = 3"),
    ("rounds = 4", "rounds = 5"),
    ("bins = 8", "bins = 9"),
    ("low = 17", "low = 16"),
    ('"f", "m"', '"m", "f"'),
    ("missing = true", "missing = false"),
    ("silence_s = 200", "silence_s = 3"),
    ("7102", "7112"),
    ('name = "west"', 'name = "east"'),
    ("delta = 1e-9", "delta = 1e-9\nmax_rows = 4194303"),
    ('"replicated"', '"ideal"'),
    (WEST, WEST + f'fingerprint = "{"0" * 64}"\n'),
    (NORTH, ""),
    ("rounds = 4", "rounds = 4\nprune = false"),
)


@pytest.mark.parametrize("change", PUBLIC)
def test_the_digest_sees_every_public_byte(tmp_path: Path, change: tuple[str, str]) -> None:
    one = digest(load(write_study(tmp_path)), "ab" * 32)
    changes = (
        [change] if change[0] != NORTH else [(NORTH, ""), (WEST, WEST + NORTH)]
    )  # another order of parties
    assert digest(load(write_study(tmp_path, *changes)), "ab" * 32) != one


def test_the_digest_sees_columns_in_their_order_the_ca_and_the_protocol_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load(write_study(tmp_path))
    one = digest(study, "ab" * 32)
    assert digest(study, "cd" * 32) != one
    text = STUDY.replace(AGE, "").replace("[session]", AGE + "\n[session]")
    assert dict(load(write_study(tmp_path, text=text)).domain.sizes) == dict(study.domain.sizes)
    assert digest(load(write_study(tmp_path, text=text)), "ab" * 32) != one
    monkeypatch.setattr("runner.study.hashing.PROTOCOL", PROTOCOL + 1)
    assert digest(study, "ab" * 32) != one


def test_the_digest_sees_the_domain_file(tmp_path: Path) -> None:
    text = (
        STUDY[: STUDY.index("[domain.columns.age]")]
        + '[domain]\nfile = "domain.json"\n'
        + STUDY[STUDY.index("[session]") :]
    )
    path, file = write_study(tmp_path, text=text), tmp_path / "domain.json"
    seen = set()
    for content in (
        '{"age": 8, "sex": 2}',
        '{"age": 9, "sex": 2}',
        '{"sex": 2, "age": 8}',
        '{ "age":8,\n"sex":2 }',
    ):
        file.write_text(content)
        seen.add(digest(load(path), ""))
    assert len(seen) == 3  # spacing does not count, the order of columns does


# -- private file ---------------------------------------------------------------------------------------------------------


def test_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "north.toml"
    path.write_text(
        'data = "own.parquet"\nlisten = "0.0.0.0:9000"\nout = "o"\ncert = "c.crt"\nkey = "c.key"\nca = "ca.crt"\n'
        'allow_empty = true\n[ledger]\nfile = "l.db"\ndataset = "people"\ncap_epsilon = 3\ncap_delta = 1e-8\n'
        "max_alignments = 2\n"
    )
    own = private_file.load(path)
    assert (
        own.data is not None and own.data.path == tmp_path / "own.parquet" and own.listen == ("0.0.0.0", 9000)
    )
    assert (own.out, own.key, own.allow_empty) == (tmp_path / "o", tmp_path / "c.key", True)
    assert own.ledger == private_file.LedgerSettings(tmp_path / "l.db", "people", 3.0, 1e-8, 2)
    for text, unit in (
        ('"row"', ProtectedUnit()),
        ('{ id = "person", max_rows = 3, max_custodians = 2 }', ProtectedUnit(("person",), 3, 2)),
        ('{ id = ["name", "born"], max_rows = 1, max_custodians = 1 }', ProtectedUnit(("name", "born"))),
    ):
        path.write_text(f'[ledger]\ncap_unit = {text}\ncap_adjacency = "replace"\n')
        settings = private_file.load(path).ledger
        assert (settings.cap_unit, settings.cap_adjacency) == (unit, "replace")
        assert f"cap_unit = {unit.key}\n" in path.read_text()  # what sentences advise can be pasted
    assert private_file.load(None) == private_file.Private()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('dta = "x.csv"', 'unknown key "dta" (did you mean "data"?)'),
        ("[ledger]\ncap = 1", 'unknown key "cap"'),
        ("[ledger]\ncap_epsilon = 1", "needs cap_epsilon and cap_delta together"),
        ('[ledger]\ncap_unit = "rows"', '[ledger] cap_unit must be "row" or { id = "person"'),
        ('[ledger]\ncap_unit = { id = "person" }', "[ledger] cap_unit max_rows is missing"),
        ('[ledger]\ncap_adjacency = "add"', '[ledger] cap_adjacency must be "add-remove" or "replace"'),
        ("allow_empty = 1", "must be true or false"),
        ('listen = "7101"', 'must be "host:port"'),
        ('data = {url = "redis://u:secret@h/d", table = "t"}', "must begin with postgres://"),
        ('data = "postgres://u:secret@h/d"', "got an address"),
        ("x = \n", "line 1, column 5"),
    ],
)
def test_bad_private_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "private.toml"
    path.write_text(text)
    with pytest.raises(StudyInvalid) as raised:
        private_file.load(path)
    assert (
        words in raised.value.sentence
        and str(path) in raised.value.sentence
        and "secret" not in raised.value.sentence
    )
    assert private_file.problems(path)[0] == raised.value.sentence


def test_a_party_must_compute_or_have_data(tmp_path: Path) -> None:
    study = load(
        write_study(
            tmp_path,
            (WEST, WEST + '[[party]]\nname = "east"\naddress = "127.0.0.1:7104"\n'),
            ('data = "north.csv"\n', ""),
        )
    )
    assert private_file.location(study, "north", private_file.Private()) is None
    with pytest.raises(StudyInvalid, match="east neither computes nor has data"):
        private_file.location(study, "east", private_file.Private())


def test_certificates_of_a_deployment(tmp_path: Path) -> None:
    study = load(write_study(tmp_path, ("insecure-loopback", "mutual")))
    with pytest.raises(PeerIdentity, match="does not name `cert`"):
        private_file.certificates(study, "north", private_file.Private())
    with pytest.raises(PeerIdentity, match="does not name `ca`"):
        private_file.certificates(study, "north", private_file.Private(cert=Path("c"), key=Path("k")))
    pins = [
        (f'name = "{name}"', f'name = "{name}"\nfingerprint = "{"0" * 64}"')
        for name in ("north", "south", "west")
    ]
    study = load(write_study(tmp_path, ("insecure-loopback", "mutual"), *pins))
    files = private_file.certificates(study, "north", private_file.Private(cert=Path("c"), key=Path("k")))
    assert files is not None and files.ca is None


def test_reading_studies_needs_the_standard_library_only(tmp_path: Path) -> None:
    script = (
        "import json, sys; from runner.study import load, digest, private_file; from runner.launch import launcher; "
        "from runner.commands import cli; "
        f"digest(load({str(write_study(tmp_path))!r}), ''); cli.parser(); "
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout
    assert set(json.loads(loaded)) <= {
        "__main__",
        "runner",
        "synth",
        "mpc_protocols",
        "parties",
        "sitecustomize",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "9" * 6000, "line 2, column 5: A number of more than 4,000 digits; correct"),
        ("a." * 20_000 + "a = 1", "A key of more than 64 parts; correct"),
        ("[" + '"b" . ' * 20_000 + "c]", "A key of more than 64 parts; correct"),
        ("x = { " + "a." * 20_000 + "a = 1 }", "A key of more than 64 parts; correct"),
        ("x = a" + " " * 100_000 + "!", "line 2, column 5: Invalid value; correct the TOML syntax there"),
        ("x" + "=a " * 30_000, "line 2, column 3: Invalid value; correct the TOML syntax there"),
        ("x = True", "line 2, column 5: Invalid value; truth values are true and false"),
    ],
)
def test_what_a_parser_takes_long_for_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "study.toml").write_text(f"[study]\n{text}\n")
    (found,) = problems(tmp_path / "study.toml")
    assert words in found and len(found) < 200
    with pytest.raises(StudyInvalid):
        Study.from_toml(text)


def test_dots_within_a_value_are_no_key(tmp_path: Path) -> None:
    assert parse_toml('name = "' + "a." * 500 + '"') == {"name": "a." * 500}


def test_what_a_study_is_called_commands_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ESC, BEL and a turned direction in the study's name, a party's, and an unknown key: `check` and `plan` show escapes."""
    hostile = "t\\u001b]0;pwned\\u0007\\u202e"
    for change in (
        ('name = "trial"', f'name = "{hostile}"'),
        ('name = "north"', f'name = "{hostile}"'),
        ("[privacy]", f'[privacy]\n"{hostile}" = 1'),
    ):
        path = write_study(tmp_path, change)
        for asked in ("check", "plan"):
            main([asked, str(path)])
        said = capsys.readouterr()
        told = said.out + said.err
        assert "\\x1b]0;pwned\\x07\\u202e" in told or "\\\\u001b" in told
        assert not {"\x1b", "\x07", "\u202e"} & set(told)
