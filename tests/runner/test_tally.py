"""`tally`, and studies whose custodians have counts of parts in place of a table."""

from __future__ import annotations

import glob
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.counting.counters import Counters
from parties.data.tallies.counting import Counting
from parties.data.tallies.engine import ENGINES
from parties.data.tallies.places import EngineTallies, TallyFiles
from runner.commands.cli import main
from runner.party.custodian import Custodian
from runner.party.synthesis import counted, plan_of
from runner.study import DataLocation, load, private_file
from tests.runner.studies import write_study
from tests.toys import folder_engine

UNIT = (
    'adjacency = "add-remove"',
    'adjacency = "add-remove"\nunit = { id = "who", max_rows = 1, max_custodians = 1 }',
)
HEADER = "who,age,sex,work\n"
ROWS = [
    f"p{number},{17 + number % 80},{'fm'[number % 2]},{('a', 'b', 'c', '')[number % 4]}\n"
    for number in range(90)
]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """North's table whole, and in three parts; its private file names the counts of these."""
    (tmp_path / "north.csv").write_text(HEADER + "".join(ROWS))
    for part in range(3):
        (tmp_path / f"part{part}.csv").write_text(HEADER + "".join(ROWS[part::3]))
    (tmp_path / "north.toml").write_text('data = { tallies = "*.tally", parts = 3 }\n')
    return write_study(tmp_path)


def tally(study: Path, part: int, *more: str) -> int:
    out = study.parent / f"part{part}.tally"
    return main(
        [
            "tally",
            str(study),
            "--party",
            "north",
            "--data",
            str(study.parent / f"part{part}.csv"),
            "--out",
            str(out),
            *more,
        ]
    )


def counts(study: Path, private: Path | None) -> list[list[int]]:
    """What north's custodian would share."""
    read, own = load(study), private_file.load(private)
    data = private_file.location(read, "north", own)
    assert isinstance(data, DataLocation)
    custodian, cliques = Custodian(read, "north", own, data), counted(plan_of(read))
    custodian.ready(cliques)
    found = custodian.counts()
    assert found is not None
    assert all(one.dtype == np.int64 for one in found(cliques))
    return [one.tolist() for one in found(cliques)]


def test_counts_of_parts_stand_for_the_table(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in range(3):
        assert tally(study, part) == 0
    file = study.parent / "part0.tally"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    private = study.parent / "north.toml"
    assert counts(study, private) == counts(study, None)
    own = private_file.load(private)
    assert own.data is not None and own.data.dataset == str(study.parent.resolve() / "*.tally")
    assert main(["check", str(study), "--party", "north", "--private", str(private)]) == 0
    assert "the counts of its table's parts fit the study" in capsys.readouterr().out


def test_rows_are_looked_at_before_anybody_asks(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small table, too: who asks sees how long an answer takes, and thousands of marginals can be asked
    for at levels."""
    expected = counts(study, None)
    read = load(study)
    data = private_file.location(read, "north", private_file.load(None))
    custodian, cliques = Custodian(read, "north", private_file.load(None), data), counted(plan_of(read))
    custodian.ready(cliques)
    monkeypatch.setattr(Counters, "_numbers", None)
    found = custodian.counts()
    assert found is not None and [one.tolist() for one in found(cliques)] == expected


def test_what_is_wrong_with_tallies_is_said_in_one_sentence(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = study.parent / "north.toml"
    for part in range(2):
        assert tally(study, part) == 0
    with pytest.raises(DataRefused, match="has 2 parts"):
        counts(study, private)
    assert tally(study, 2) == 0
    (study.parent / "copy.tally").write_bytes((study.parent / "part2.tally").read_bytes())
    capsys.readouterr()
    assert main(["check", str(study), "--party", "north", "--private", str(private)]) == 30
    assert "count twice" in capsys.readouterr().out
    (study.parent / "copy.tally").unlink()
    write_study(study.parent, ("epsilon = 1.0", "epsilon = 2.0"))
    with pytest.raises(DataRefused, match=r"part0\.tally was counted for another study"):
        counts(study, private)


def test_a_part_that_does_not_fit_the_study_is_refused(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (study.parent / "part0.csv").write_text(HEADER + "p1,30,SECRET,a\n")
    assert tally(study, 0) == 30
    said = capsys.readouterr().err
    assert 'part0.csv, column "sex", line 2' in said and "SECRET" not in said
    assert not (study.parent / "part0.tally").exists()
    assert (
        main(["tally", str(study), "--data", "x.csv", "--out", str(study.parent / "none" / "x.tally")]) == 2
    )
    assert tally(study, 1, "--party", "east") == 2


def test_rules_of_the_private_file_are_part_of_a_tally(study: Path) -> None:
    private = study.parent / "north.toml"
    private.write_text(private.read_text() + "[harmonise]\nfilter = \"sex = 'f'\"\n")
    for part in range(3):
        assert tally(study, part) == 0
    with pytest.raises(DataRefused, match="other rules"):
        counts(study, private)
    for part in range(3):
        assert tally(study, part, "--private", str(private)) == 0
    ruled = study.parent / "whole.toml"
    ruled.write_text('data = "north.csv"\n[harmonise]\nfilter = "sex = \'f\'"\n')
    assert counts(study, private) == counts(study, ruled)


def test_parts_of_a_study_of_people_must_be_cut_by_people(study: Path) -> None:
    write_study(study.parent, UNIT)
    private = study.parent / "north.toml"
    for part in range(3):
        assert tally(study, part) == 0
    with pytest.raises(StudyInvalid, match="partitioned_by"):
        counts(study, private)
    private.write_text('data = { tallies = "*.tally", parts = 3, partitioned_by = "id" }\n')
    with pytest.raises(DataRefused, match="overlap"):
        counts(study, private)
    (study.parent / "part0.csv").write_text(HEADER + "".join(ROWS))
    (study.parent / "part1.csv").write_text(HEADER)
    (study.parent / "part2.csv").write_text(HEADER)
    for part in range(3):
        assert tally(study, part) == 0
    assert counts(study, private) == counts(study, None)
    write_study(study.parent)
    with pytest.raises(StudyInvalid, match="no meaning"):
        counts(study, private)


DASK = 'data = { dask = "tls://host:8786", ca = "ca.crt", cert = "n.crt", key = "n.key", url = "/mnt/p/*.parquet" }\n'


def test_a_dask_cluster_is_named_in_full(study: Path) -> None:
    private = study.parent / "north.toml"
    private.write_text(DASK)
    own = private_file.load(private)
    assert own.data is not None and own.data.cluster is not None and own.data.dataset == "/mnt/p/*.parquet"
    assert own.data.cluster.key == study.parent.resolve() / "n.key" and not own.data.cluster.by_unit
    for old, new, words in (
        ("tls://", "tcp://", "with TLS"),
        (":8786", "", "host:port"),
        ("/mnt/p/", "s3://bucket/", "mount them"),
        ("*.parquet", "*.xlsx", "absolute path of .csv or .parquet"),
        (', key = "n.key"', "", "key is missing"),
        ("ca =", "authority =", 'unknown key "authority"'),
    ):
        private.write_text(DASK.replace(old, new))
        assert any(words in sentence for sentence in private_file.problems(private)), words


def test_tables_that_the_study_does_not_have_are_not_counted_by_a_cluster(study: Path) -> None:
    private = study.parent / "north.toml"
    private.write_text(DASK.replace('"/mnt/p/*.parquet"', '{ patients = "/mnt/p/*.parquet" }'))
    with pytest.raises(StudyInvalid, match="data names several tables"):
        private_file.location(load(study), "north", private_file.load(private))


def test_a_cluster_does_not_trust_the_parties_of_the_session(study: Path) -> None:
    private, folder = study.parent / "north.toml", study.parent
    for name in ("ca.crt", "copy.crt"):
        (folder / name).write_text("of the session")
    (folder / "cluster-ca.crt").write_text("of the cluster")
    for name, found in (("ca.crt", 1), ("copy.crt", 1), ("cluster-ca.crt", 0)):
        private.write_text('ca = "ca.crt"\n' + DASK.replace('ca = "ca.crt"', f'ca = "{name}"'))
        assert len(private_file.problems(private)) == found


@pytest.mark.parametrize("data", [DASK.removeprefix("data = ").strip(), '{ tallies = "*.tally" }'])
def test_whose_counts_are_added_is_not_for_the_study_to_say(tmp_path: Path, data: str) -> None:
    write_study(tmp_path, ('data = "north.csv"', f"data = {data}"))
    with pytest.raises(StudyInvalid, match="say it in the private file"):
        load(tmp_path / "study.toml")


def test_a_folder_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "br[1]").mkdir()
    (tmp_path / "br1").mkdir()
    private = tmp_path / "br[1]" / "north.toml"
    private.write_text('data = { tallies = "*.tally" }\n')
    for folder in ("br[1]", "br1"):
        (tmp_path / folder / "x.tally").touch()
    data = private_file.load(private).data
    assert data is not None and isinstance(data.tallies, TallyFiles)
    assert glob.glob(data.tallies.pattern) == [str(tmp_path / "br[1]" / "x.tally")]


def test_an_engine_from_outside_counts_the_parts(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private = study.parent / "north.toml"
    private.write_text('data = { tallies = { engine = "folder", files = "part*.csv" }, parts = 3 }\n')
    with ENGINES.registered(folder_engine.ENGINE):
        assert counts(study, private) == counts(study, None)
        assert main(["check", str(study), "--party", "north", "--private", str(private)]) == 0
        (study.parent / "part2.csv").unlink()
        with pytest.raises(DataRefused, match=r"has 2 parts, and data\.parts says 3"):
            counts(study, private)
    assert "the counts of its table's parts fit the study" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            'engine = "folders", files = "*.csv"',
            'names "folders", which is not installed here (did you mean "folder"?)',
        ),
        ('files = "*.csv"', "engine is missing: it must be the name of an engine that is installed here"),
        (
            "engine = 5",
            "engine must be the name of an engine that is installed here, got 5.",
        ),
        (
            'engine = "folder", place = "x"',
            'data tallies must name the parts and nothing else: files = "parts/*.csv"',
        ),
    ],
)
def test_an_engine_that_cannot_count_is_refused_as_it_is_read(
    tmp_path: Path, settings: str, sentence: str
) -> None:
    private = tmp_path / "north.toml"
    private.write_text(f"data = {{ tallies = {{ {settings} }} }}\n")
    with ENGINES.registered(folder_engine.ENGINE), pytest.raises(StudyInvalid, match=re.escape(sentence)):
        private_file.load(private)


class Failing(folder_engine.Folder):
    """Hands back what it is told to, or raises it."""

    def __init__(self, *found: object) -> None:
        self.found = found

    def tallies(self, place: EngineTallies, counting: Counting) -> Iterator[bytes]:
        for one in self.found:
            if isinstance(one, Exception):
                raise one
            yield one  # type: ignore[misc]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            [ValueError("a record of p7")],
            "The table of the engine folder could not be counted (ValueError); see",
        ),
        ([3], "handed back int where a part's tally is due"),
        ([b"nonsense"], "The table of the engine folder, part 1"),
    ],
)
def test_what_an_engine_hands_back_is_not_believed(study: Path, found: list[object], sentence: str) -> None:
    """And what it raises is not told: it may quote a record."""
    private = study.parent / "north.toml"
    private.write_text('data = { tallies = { engine = "folder", files = "part*.csv" } }\n')
    with ENGINES.registered(Failing(*found)), pytest.raises(DataRefused) as refused:
        counts(study, private)
    assert sentence in refused.value.sentence and "p7" not in refused.value.sentence
    assert refused.value.__context__ is None and refused.value.__cause__ is None


def test_workers_are_counted_and_belong_to_tables_of_rows(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for user in ("runner.check.parts", "runner.party.own_counts"):
        monkeypatch.setattr(f"{user}.cores", lambda: 2)
    private = study.parent / "north.toml"
    private.write_text("workers = 8\n")
    assert main(["check", str(study), "--party", "north", "--private", str(private)]) == 0
    assert "workers = 8, and this machine has 2 cores" in capsys.readouterr().out
    assert counts(study, private) == counts(study, None)
    private.write_text("workers = 0\n")
    assert any("workers must be a whole number" in one for one in private_file.problems(private))
