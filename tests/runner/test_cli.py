"""The command line, in this process: exit codes, one sentence on standard error, help that shows the command in use."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import parquet as pq

from mpc_protocols.functionality import Event
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from runner.__main__ import main
from runner.commands.cli import parser
from runner.study import VerticalStudy, load
from runner.study.declared.tables import Alignment
from synth.algorithm import ALGORITHMS, proposed
from synth.budget.accounting import epsilon_of, rho_of
from synth.budget.rounding import rounded_up
from tests.runner.studies import write_study
from tests.worlds.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command; its exit code, standard output and standard error."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err and captured.err.count("\n") - captured.err.count(
            "WARNING: "
        ) == (code != 0)
        return code, captured.out, captured.err

    return call


def tables(directory: Path, rows: int = 400, header: str = "age,sex,work", odd: str = "") -> None:
    """Three custodians' tables; `odd` is one more line of the first."""
    draw = random.Random(5)
    for name in ("north", "south", "west"):
        lines = [f"{draw.randint(17, 90)},{draw.choice('fm')},{draw.choice('abc')}" for _ in range(rows)]
        (directory / f"{name}.csv").write_text(
            "\n".join([header, *lines, *([odd] if odd and name == "north" else [])]) + "\n"
        )


@pytest.mark.parametrize(
    "command",
    [
        "",
        "demo",
        "init",
        "check",
        "plan",
        "run",
        "certs",
        "certs make",
        "certs request",
        "certs sign",
        "certs show",
        "sample",
        "query",
        "infer",
        "report",
        "graph",
        "ledger",
        "ledger show",
    ],
)
def test_help(run: Run, command: str) -> None:
    code, out, _ = run(*command.split(), "--help")
    assert code == 0 and "cosynth" in out and (command in ("", "ledger") or "examples:" in out)
    assert all(len(line) <= 110 for line in out.splitlines())


def test_no_command_takes_the_beginning_of_an_option_for_it() -> None:
    """What a word stands for does not change when another option comes to begin like it."""
    asked = [parser()]
    for one in asked:
        assert not one.allow_abbrev or not one.add_help, one.prog  # `bench` leaves its words to the benchmark
        for action in one._actions:
            asked += action.choices.values() if isinstance(action, argparse._SubParsersAction) else ()
    assert len(asked) > 25


def test_the_main_help_tells_the_sequence_and_the_exit_codes(run: Run) -> None:
    out = run("--help")[1]
    words = [
        "demo",
        "init",
        "check",
        "plan",
        "run",
        "certs",
        "sample",
        "query",
        "bench",
        "audit",
        "ledger",
        "report",
    ]
    assert all(f"    {word} " in out for word in words) and "130 interrupted" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["runn"], "invalid choice"),
        (["run"], "STUDY"),
        (["run", "x.toml", "--nonsense"], "--nonsense"),
        (["bench", "selec"], "did you mean"),
        (["audit", "Q"], "There is no group 'Q'"),
        (["audit", "--only", "A.event"], "did you mean"),
        (["audit", "--backend", "none"], "There is no backend 'none'"),
        (["audit", "--quick", "--deep"], "--quick"),
        (["demo", "--vertically"], "--vertically"),
        (["run", "x.toml", "--private", "p"], "--party NAME"),
        (["check", "x.toml", "--connect"], "--party NAME"),
        (["report", "nowhere"], "nowhere"),
        (["query", "nowhere", "x"], "nowhere"),
        (["sample", "nowhere", "--rows", "-1"], "--rows"),
        (["sample", "nowhere", "--rows", "5"], "nowhere holds no finished run"),
        (["plan", "x.toml", "--rows", "0"], "--rows"),
        (["ledger", "show", "--delta", "2"], "--delta"),
    ],
)
def test_usage(run: Run, arguments: list[str], words: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2 and words in err


def test_bad_studies_exit_with_10(run: Run, tmp_path: Path) -> None:
    study = write_study(tmp_path, ("epsilon = 1.0", "epsilon = 0"))
    for command in (
        ["run", study, "--out", tmp_path / "out"],
        ["plan", study],
        ["check", study],
        ["run", study, "--party", "north"],
        ["certs", "make", study, "--out", tmp_path / "certs"],
    ):
        code, _, err = run(*command)
        assert code == 10 and "epsilon must be a number greater than 0 and less than 1e+06, got 0" in err
    assert not (tmp_path / "out").exists()
    assert run("run", tmp_path / "nowhere.toml")[0] == 10


def test_party_names_and_the_ideal_backend(run: Run, tmp_path: Path) -> None:
    code, _, err = run("run", write_study(tmp_path), "--party", "nort", "--out", tmp_path / "o")
    assert code == 2 and '(did you mean "north"?); its parties: north, south, west' in err
    code, _, err = run(
        "run", write_study(tmp_path, ('"replicated"', '"ideal"')), "--party", "north", "--out", tmp_path / "o"
    )
    assert code == 2 and "without --party" in err


def test_a_deployment_without_a_certificate(run: Run, tmp_path: Path) -> None:
    code, _, err = run(
        "run",
        write_study(tmp_path, ("insecure-loopback", "mutual")),
        "--party",
        "north",
        "--out",
        tmp_path / "o",
    )
    assert code == 21 and "certs make" in err


def test_nobody_has_data(run: Run, tmp_path: Path) -> None:
    changes = [(f'data = "{name}.csv"\n', "") for name in ("north", "south", "west")]
    code, _, err = run("run", write_study(tmp_path, *changes), "--out", tmp_path / "o")
    assert code == 10 and "no party has data" in err


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_init_writes_a_valid_study_and_overwrites_nothing(run: Run, tmp_path: Path, partition: str) -> None:
    directory = tmp_path / "my study"
    code, out, _ = run("init", directory, *["--vertical"] * (partition == "vertical"))
    assert code == 0 and "cosynth check" in out
    study = load(directory / "study.toml")
    assert study.partition == partition and study.algorithm == proposed().name
    assert len(study.parties) == 3 and {"numeric", "categorical"} <= {
        column.kind for column in study.domain.columns
    }
    from runner.study import private_file

    assert private_file.problems(directory / "private.example.toml") == []
    code, _, err = run("init", directory)
    assert code == 2 and "left alone" in err


def test_the_settings_that_init_leaves_out_are_settings(run: Run, tmp_path: Path) -> None:
    """What stands in the vertical study as a comment is valid too, names every key of [alignment], and shows the defaults."""
    assert run("init", tmp_path, "--vertical")[0] == 0
    path = tmp_path / "study.toml"
    plain, text = load(path), path.read_text()
    path.write_text(re.sub(r"^# (?!cliques)(?=\w+ = )", "", text, flags=re.MULTILINE))
    full, keys = load(path), tomllib.loads(path.read_text())["alignment"]
    assert isinstance(plain, VerticalStudy) and isinstance(full, VerticalStudy)
    assert set(Alignment.options()) - {"security"} == set(keys)
    assert set(tomllib.loads(path.read_text())[full.algorithm]) == set(full.config.options())
    assert plain.config == ALGORITHMS[full.algorithm].config()
    for key in ("min_size", "size_epsilon", "size_delta"):
        assert getattr(plain.alignment, key) == getattr(full.alignment, key)
    assert full.party("north").columns == ("age", "income") and full.config.synthetic_rows == 10000


def test_certificates(run: Run, tmp_path: Path) -> None:
    study, certs = write_study(tmp_path), tmp_path / "certs"
    assert run("certs", "make", study, "--out", certs, "--days", 90)[0] == 0
    names = {f"{name}.{kind}" for name in ("north", "south", "west") for kind in ("crt", "key")}
    assert {path.name for path in certs.iterdir()} == {"ca.crt", *names}
    assert stat.S_IMODE((certs / "north.key").stat().st_mode) == 0o600
    code, out, _ = run("certs", "show", certs / "north.crt", certs / "ca.crt")
    assert code == 0 and "for         north" in out and "(89 days left)" in out and "(a CA)" in out
    before = (certs / "north.key").read_bytes()
    assert (
        run("certs", "make", study, "--out", certs)[0] == 2 and (certs / "north.key").read_bytes() == before
    )
    assert run("certs", "show", tmp_path / "none.crt")[0] == 21


def test_certificates_by_request(run: Run, tmp_path: Path) -> None:
    study, own, ca = write_study(tmp_path), tmp_path / "own", tmp_path / "ca"
    for name in ("north", "south"):
        assert run("certs", "request", name, "--out", own)[0] == 0
    assert stat.S_IMODE((own / "north.key").stat().st_mode) == 0o600
    assert run("certs", "sign", study, own / "north.csr", own / "south.csr", "--out", ca)[0] == 0
    assert {path.name for path in ca.iterdir()} == {"ca.crt", "ca.key", "north.crt", "south.crt"}
    import ssl

    context = ssl.create_default_context(cafile=str(ca / "ca.crt"))
    context.load_cert_chain(ca / "north.crt", own / "north.key")
    (own / "west.csr").write_bytes((own / "north.csr").read_bytes())
    assert (
        run("certs", "sign", study, own / "west.csr", "--out", ca)[0] == 21
    )  # another party's request under this name
    (own / "east.csr").write_bytes((own / "north.csr").read_bytes())
    assert run("certs", "sign", study, own / "east.csr", "--out", ca)[0] == 2
    none = tmp_path / "none"
    (own / "south.csr").unlink()
    for asked in ("east", "south"):  # of no party, and not there
        assert run("certs", "sign", study, own / "north.csr", own / f"{asked}.csr", "--out", none)[0] in (
            2,
            21,
        )
        assert not none.exists()


def test_a_private_file_may_be_named_beside_one_party_too(run: Run, tmp_path: Path) -> None:
    study, own = write_study(tmp_path), tmp_path / "north.toml"
    own.write_text("workers = 0\n")
    for given in (own, f"north={own}"):
        code, _, told = run("check", study, "--party", "north", "--private", given)
        assert code == 10 and f"{own}: workers" in told
    code, _, told = run("check", study, "--party", "north", "--private", f"south={own}")
    assert code == 2 and "is of south, and --party says north" in told


def test_check_finds_everything(run: Run, tmp_path: Path) -> None:
    ports = free_ports(3)
    moved = [(f"127.0.0.1:{7101 + i}", f"127.0.0.1:{port}") for i, port in enumerate(ports)]
    study = write_study(
        tmp_path,
        *moved,
        ("insecure-loopback", "mutual"),
        ("silence_s = 200", "silence_s = 200\nconnect_s = 1.5"),
    )
    tables(tmp_path)
    certs = tmp_path / "certs"
    assert run("certs", "make", study, "--out", certs)[0] == 0
    own = tmp_path / "north.toml"
    own.write_text(
        f'data = "north.csv"\ncert = "{certs}/north.crt"\nkey = "{certs}/north.key"\nca = "{certs}/ca.crt"\n'
        "[ledger]\ncap_epsilon = 2\ncap_delta = 1e-8\n"
    )
    code, out, _ = run("check", study, "--party", "north", "--private", own)
    assert code == 0 and "problem" not in out
    for words in (
        "its table fits the study",
        "is valid until",
        "cap 2",
        f"{ports[0]} is free",
        "is the certificate's key",
    ):
        assert words in out
    assert "chmod 600" not in out
    (certs / "north.key").chmod(0o640)
    code, out, err = run("check", study, "--party", "north", "--private", own)
    assert code == 21 and f"{certs}/north.key can be read by other users" in err and "--insecure-key" in err
    (certs / "north.key").chmod(0o600)
    code, out, err = run("check", study, "--party", "north", "--private", own, "--connect")
    assert (
        code == 20
        and f"Party south did not come to 127.0.0.1:{ports[0]} within 1.5 s" in err
        and out.count("problem ") == 2
    )
    assert "note     waiting for south, west to start the same command: 1 of 1.5 s" in out

    own.write_text(
        f'data = "north.csv"\ncert = "{certs}/west.crt"\nkey = "{certs}/north.key"\nca = "{certs}/ca.crt"\n'
        "[ledger]\ncap_epsilon = 0.1\ncap_delta = 1e-8\n"
    )
    tables(tmp_path, header="age,sex,work,shoe_size", odd="30,x,a,44")
    import socket

    with socket.create_server(("127.0.0.1", ports[0])):
        code, out, err = run("check", study, "--party", "north", "--private", own, "--connect")
    assert "the others are met once this party has its port" in out
    problems = [line for line in out.splitlines() if line.startswith("problem")]
    assert code == 21 and "belongs to 'west', not to party north" in err  # the first
    for words in (
        "belongs to 'west', not to party north",
        "north.csv",
        "would exceed the cap",
        "cannot listen on",
    ):
        assert any(words in line for line in problems), words


def test_check_without_a_party_looks_at_the_tables_that_are_here(run: Run, tmp_path: Path) -> None:
    study = write_study(tmp_path, ("bins = 8", "bins = 60000"), ("rounds = 4", "max_model_mb = 0.5"))
    code, out, _ = run("check", study)
    assert code == 0 and "age x work" in out and "never" in out and "only a deployment" in out
    tables(tmp_path, odd="30,x,a")
    code, out, err = run("check", write_study(tmp_path), "--json")
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    assert (
        code == 30
        and "north" in err
        and "x" not in err.replace("does not", "").split()
        and kinds.count("problem") == 1
    )


def test_a_party_that_neither_computes_nor_has_data_is_named_as_a_run_would(run: Run, tmp_path: Path) -> None:
    """Here at once; in a deployment its data may stand in its private file, and `check --party` tells."""
    given = [('backend = "replicated"', 'backend = "pair"'), ('data = "west.csv"\n', "")]
    tables(tmp_path)
    study = write_study(tmp_path, *given)
    words = "[[party]] west neither computes nor has data"
    for command in (["check", study], ["plan", study], ["run", study, "--out", tmp_path / "out"]):
        code, _, err = run(*command)
        assert code == 10 and words in err, (command, err)
    away = [("insecure-loopback", "mutual"), ("127.0.0.1:7103", "west.example:7103")]
    study = write_study(tmp_path, *given, *away)
    code, out, err = run("check", study)
    assert code == 0 and "west has its data in its private file, or none" in out, err
    assert words in run("check", study, "--party", "west")[1]


@pytest.fixture
def bad_ledgers(tmp_path: Path) -> list[Path]:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no ledger")
    return [
        Path("/proc/x/ledger.db"),
        tmp_path / "folder",
        tmp_path / "text",
        tmp_path / "text" / "ledger.db",
        tmp_path / ("long" * 80),
    ]


def test_a_ledger_that_cannot_be_made_is_named_as_a_run_would(
    run: Run, tmp_path: Path, bad_ledgers: list[Path]
) -> None:
    tables(tmp_path)
    study, own = write_study(tmp_path), tmp_path / "north.toml"
    for ledger in bad_ledgers:
        own.write_text(f'[ledger]\nfile = "{ledger}"\ncap_epsilon = 2\ncap_delta = 1e-8\n')
        before = sorted(tmp_path.rglob("*"))
        code, out, _ = run("check", study, "--party", "north", "--private", own)
        assert code == 50 and "ok       ledger" not in out, out
        assert f"problem  The ledger {ledger} cannot be used" in out
        assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished run on the ideal backend."""
    directory = tmp_path_factory.mktemp("finished")
    tables(directory)
    study = write_study(directory, ('"replicated"', '"ideal"'))
    earlier = os.environ.get("COSYNTH_LEDGER")
    os.environ["COSYNTH_LEDGER"] = str(directory / "ledger.db")
    try:
        assert main(["run", str(study), "--out", str(directory / "out")]) == 0
    finally:
        os.environ.pop("COSYNTH_LEDGER")
        if earlier is not None:
            os.environ["COSYNTH_LEDGER"] = earlier
    return directory


def test_an_ideal_run_says_that_it_protects_nothing(run: Run, tmp_path: Path) -> None:
    tables(tmp_path)
    code, out, _ = run("run", write_study(tmp_path, ('"replicated"', '"ideal"')), "--out", tmp_path / "out")
    assert code == 0 and "protects nothing" in out and "synthetic.csv" in out
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["study"] == "trial" and facts["public_study"]["aim"]["rounds"] == 4
    assert facts["rows"] == len((tmp_path / "out" / "synthetic.csv").read_text().splitlines()) - 1


def test_replicates_are_numbered_files(run: Run, finished: Path, tmp_path: Path) -> None:
    out, target = finished / "out", tmp_path / "made.csv"
    assert run("sample", out, "-n", 40, "--replicates", 3, "--seed", 5, "--out", target)[0] == 0
    made = sorted(tmp_path.glob("made.*.csv"))
    assert [file.name for file in made] == ["made.1.csv", "made.2.csv", "made.3.csv"]
    assert len({file.read_bytes() for file in made}) == 3
    assert {len(file.read_text().splitlines()) for file in made} == {41}
    for options, sentence in (((), "name --out"), (("--out", target, "--where", "sex=f"), "without --where")):
        code, _, err = run("sample", out, "-n", 40, "--replicates", 3, *options)
        assert code == 2 and sentence in err
    code, _, err = run("sample", out, "-n", 40, "--replicates", 1, "--out", target)
    assert code == 2 and "from 2 to" in err


def test_query(run: Run, finished: Path) -> None:
    out = finished / "out"
    total = json.loads(run("query", out, "sex", "--json")[1])["total"]
    code, text, _ = run("query", out, "work", "sex", "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert code == 0 and len(rows) == 8 and {row["work"] for row in rows} == {"a", "b", "c", "missing"}
    assert sum(float(row["count"]) for row in rows) == pytest.approx(total, rel=1e-3)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1, abs=1e-4)
    code, text, _ = run("query", out, "age")
    assert code == 0 and len(text.splitlines()) == 1 + 8 + 2 and " %" in text
    told = json.loads(run("query", out, "age", "--json")[1])
    assert told["basis"] == "measured" and f"by the noise: {told['standard_error']:,.3g} rows" in text
    for cell in told["cells"]:
        (low, high), half = cell["interval"], 1.96 * told["standard_error"]
        assert low == pytest.approx(max(0, cell["count"] - half), rel=1e-3, abs=0.01)
        assert high == pytest.approx(max(0, cell["count"] + half), rel=1e-3, abs=0.01)
    rows = list(csv.DictReader(io.StringIO(run("query", out, "age", "--csv")[1])))
    assert {row["standard_error"] for row in rows} == {f"{told['standard_error']:.3f}"}
    apart = json.loads(run("query", out, "age", "sex", "work", "--json")[1])
    assert apart["basis"] == "not measured together" and apart["standard_error"] is None
    assert all(cell["interval"] is None for cell in apart["cells"])
    code, text, _ = run("query", out, "age", "sex", "work")  # the workload has pairs only
    assert code == 0 and "age x sex x work was not measured together" in text
    code, _, err = run("query", out, "sexx")
    assert code == 2 and '(did you mean "sex"?)' in err


def test_infer_needs_released_files_only(run: Run, finished: Path, tmp_path: Path) -> None:
    """No custodian's table, no study, no ledger: three files of the result, somewhere else."""
    for name in ("run.json", "measurements.json", "model.npz"):
        (tmp_path / name).write_bytes((finished / "out" / name).read_bytes())
    code, text, _ = run(
        "infer", tmp_path, "mean(age)", "share(sex == 'f')", "mean(age | sex == 'f' & work == 'a')"
    )
    assert code == 0 and "95 % interval" in text and text.count(" to ") >= 2
    assert "age x sex x work would have to be measured" in text  # the workload has pairs only
    told = json.loads(run("infer", tmp_path, "share(sex == 'f')", "--json", "--rows", "--level", 0.9)[1])
    [answer] = told["answers"]
    assert told["level"] == 0.9 and told["target"] == "rows" and answer["licence"] == "measured"
    assert 0 < answer["low"] < answer["estimate"] < answer["high"] < 1 and answer["noise_share"] == 1
    wide = json.loads(run("infer", tmp_path, "share(sex == 'f')", "--json")[1])["answers"][0]
    assert wide["high"] - wide["low"] > answer["high"] - answer["low"]
    both = json.loads(run("infer", tmp_path, "share(sex == 'f')", "mean(age)", "--json", "--joint")[1])[
        "answers"
    ]
    assert both[0]["high"] - both[0]["low"] > wide["high"] - wide["low"] and len(both) == 2


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("mean(agee)", "no column agee"),
        ("mean(work)", "holds texts"),
        ("age ~ sex + C(sex)", "collinear"),
        ("share(sex == 'x')", "not a value of it"),
        ("mean(age | age < 3)", "No row can meet"),
        ("mean age", "needs"),
    ],
)
def test_a_bad_question_to_infer_is_one_sentence(
    run: Run, finished: Path, question: str, sentence: str
) -> None:
    code, out, err = run("infer", finished / "out", question)
    assert (code, out) == (2, "") and sentence in err and len(err.strip().splitlines()) == 1


def test_a_regression_that_cannot_be_read_here_leaves_the_other_questions_their_answers(
    run: Run, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    code, out, err = run("infer", finished / "out", "mean(age)", "age ~ sex", "share(sex == 'f')", "--json")
    answers = json.loads(out)["answers"]
    assert [answer["licence"] for answer in answers] == ["measured", "not computed", "measured"]
    assert answers[0]["low"] < answers[0]["high"] and answers[1]["reason"].endswith(
        "not installed; run `python -m pip install 'formulaic>=1.1'`."
    )
    last = err.strip().splitlines()[-1]
    assert code == 2 and last == answers[1]["reason"] and err.count("formulaic") == last.count("formulaic")


def test_sample(run: Run, finished: Path, tmp_path: Path) -> None:
    target = tmp_path / "more.csv"
    assert run("sample", finished / "out", "--rows", 500, "--out", target, "--seed", 3)[0] == 0
    rows = list(csv.DictReader(target.open()))
    assert len(rows) == 500 and {row["sex"] for row in rows} == {"f", "m"}
    assert {row["work"] for row in rows} <= {"a", "b", "c", ""}
    again = tmp_path / "again.csv"
    run("sample", finished / "out", "--rows", 500, "--out", again, "--seed", 3)
    assert again.read_bytes() == target.read_bytes()
    assert run("sample", finished / "out", "--rows", 500, "--out", again, "--replace")[0] == 0
    assert again.read_bytes() != target.read_bytes()


@pytest.mark.parametrize(
    "asked",
    [("sample", "--rows", "500"), ("query", "work", "--csv"), ("query", "work", "sex"), ("query", "work")],
)
def test_values_command_no_terminal(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Sequence[str]
) -> None:
    """Of a study whose author has put an escape sequence into a category; a pipe gets the value as it is."""
    copy = Path(shutil.copytree(finished / "out", tmp_path / "out"))
    facts = json.loads((copy / "run.json").read_text())
    [work] = [column for column in facts["columns"] if column["name"] == "work"]
    work["values"][0] = "\x1b]0;owned\x07"
    (copy / "run.json").write_text(json.dumps(facts))

    def said(terminal: bool) -> str:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
        monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main([asked[0], str(copy), *asked[1:]]) == 0
        return raw.getvalue().decode()

    at_terminal = said(terminal=True)
    assert "\x1b" not in at_terminal and "\x07" not in at_terminal and "\\x1b]0;owned\\x07" in at_terminal
    if asked[0] == "sample" or "--csv" in asked:
        assert "\x1b]0;owned\x07" in said(terminal=False)


def test_samples_are_parquet_where_the_file_says_so(run: Run, finished: Path, tmp_path: Path) -> None:
    text, table = tmp_path / "more.csv", tmp_path / "more.PARQUET"
    for target in (text, table):
        assert run("sample", finished / "out", "--rows", 700, "--out", target, "--seed", 3)[0] == 0
    assert table.read_bytes()[:4] == b"PAR1" == table.read_bytes()[-4:]
    read, frame = pq.read_table(table), pd.read_csv(text, keep_default_na=False, na_values=[""])
    assert [str(kind) for kind in read.schema.types] == ["double", "string", "string"]
    pd.testing.assert_frame_equal(read.to_pandas().fillna("none"), frame.fillna("none"), check_dtype=False)
    assert read.column("work").null_count == frame["work"].isna().sum()
    assert run("sample", finished / "out", "--rows", 0, "--out", table, "--replace")[0] == 0
    assert pq.read_table(table).shape == (0, 3)


def test_samples_of_another_kind_or_place_are_refused(run: Run, finished: Path, tmp_path: Path) -> None:
    for name in ("more.xlsx", "more", "more.parquet.gz"):
        code, _, err = run("sample", finished / "out", "--rows", 5, "--out", tmp_path / name)
        assert code == 2 and err == (
            f"--out {tmp_path / name} must end in .csv or .parquet, which says what is written.\n"
        )
    code, _, err = run("sample", finished / "out", "--rows", 5, "--out", tmp_path / "no" / "more.csv")
    assert code == 2 and "cannot be written (no such file or directory)" in err
    assert not list(tmp_path.iterdir())


def test_report_is_rebuilt_and_damage_is_named(run: Run, finished: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(finished / "out", copy)
    (copy / "report.html").unlink()
    assert run("report", copy)[0] == 0
    first = (copy / "report.html").read_bytes()
    assert run("report", copy)[0] == 0 and (copy / "report.html").read_bytes() == first
    assert first == (finished / "out" / "report.html").read_bytes()  # the page that the run wrote
    (copy / "model.npz").write_bytes(b"PK nonsense")
    code, _, err = run("query", copy, "sex")
    assert code == 2 and "model.npz is damaged" in err
    (copy / "run.json").write_text("{}")
    code, _, err = run("sample", copy, "--rows", 5)
    assert code == 2 and "run.json" in err


def test_ledger_show(run: Run, finished: Path, tmp_path: Path) -> None:
    code, out, _ = run("ledger", "show")
    assert code == 0 and "nothing spent" in out
    code, out, _ = run("ledger", "show", "--all", "--ledger", finished / "ledger.db")
    assert code == 0 and out.count("no cap is known here") == 3 and "trial" in out and "closed" in out
    datasets = json.loads(
        run("ledger", "show", "--ledger", finished / "ledger.db", "--delta", "1e-9", "--json")[1]
    )["datasets"]
    assert len(datasets) == 3 and all(0 < entry["epsilon"] <= 1 for entry in datasets)
    assert all(entry["delta"] == 1e-9 and entry["size_delta"] == 0 for entry in datasets)
    assert run("ledger", "show", "--ledger", tmp_path / "none.db")[0] == 2


def test_ledger_show_converts_at_the_studies_delta_and_counts_sizes(run: Run, tmp_path: Path) -> None:
    rho, size_delta = rho_of(1.0, 1e-6), Fraction(1, 10**7)
    notion = Notion(ProtectedUnit(), "add-remove")
    asked = Reservation("patients", "1", "trial", "ab", 1.0, 1e-6, notion, rho, Fraction(0), ("south",))
    ledger = Ledger(tmp_path / "ledger.db")
    for number, aligns in enumerate((False, True)):
        sizes = {"aligns": True, "size_rho": Fraction(1, 8), "size_delta": size_delta} if aligns else {}
        open_run = ledger.reserve(replace(asked, run=str(number), **sizes))  # type: ignore[arg-type]
        open_run.begin(Event("measure", rho, Fraction(0)))
        if aligns:
            open_run.begin(Event("alignment.size", Fraction(1, 8), size_delta, {"of": "intersection"}))
        open_run.settle()
    (shown,) = json.loads(run("ledger", "show", "--ledger", ledger.path, "--json")[1])["datasets"]
    # a size of rho 1/8 is 1/2-DP: less, added after the conversion, than its rho before it
    assert shown["epsilon"] == pytest.approx(epsilon_of(2 * rho, 1e-6) + 0.5)
    assert shown["epsilon"] < epsilon_of(2 * rho + Fraction(1, 8), 1e-6)
    assert shown["delta"] == pytest.approx(1.1e-6)
    assert (shown["size_rho"], shown["size_delta"]) == (0.125, 1e-7)
    first, second = shown["runs"]
    assert first["epsilon_spent"] == pytest.approx(1.0) and first["delta_spent"] == 1e-6
    assert second["epsilon_spent"] == pytest.approx(1.5) and second["aligns"]
    assert second["delta_spent"] == pytest.approx(1.1e-6)
    out = run("ledger", "show", "--ledger", ledger.path)[1]
    assert (
        "at delta 1.1e-06" in out
        and "sizes of alignments included: rho 0.125, delta 1e-07" in out
        and "(1, 1e-06)" in out
    )
    assert "above any number" in run("ledger", "show", "--ledger", ledger.path, "--delta", "1e-8")[1]
    own = f'[ledger]\nfile = "{ledger.path}"\ndataset = "patients"\ncap_epsilon = 5\ncap_delta = '
    (tmp_path / "own.toml").write_text(own + "1e-5\n")
    used = epsilon_of(2 * rho + Fraction(1, 8), Fraction(1e-5) - size_delta)
    out = run("ledger", "show", "--private", tmp_path / "own.toml")[1]
    assert f"cap: epsilon 5 at delta 1e-05, of which {rounded_up(used):g} is taken (counted by rho)" in out
    (tmp_path / "own.toml").write_text(own + "1e-8\n")
    (shown,) = json.loads(run("ledger", "show", "--private", tmp_path / "own.toml", "--json")[1])["datasets"]
    assert shown["cap_used"] is shown["epsilon"] is None


def test_a_cap_refuses_with_50(run: Run, tmp_path: Path) -> None:
    tables(tmp_path)
    own = tmp_path / "north.toml"
    own.write_text("[ledger]\ncap_epsilon = 0.5\ncap_delta = 1e-9\n")
    moved = [(f"127.0.0.1:{7101 + i}", f"127.0.0.1:{port}") for i, port in enumerate(free_ports(3))]
    code, _, err = run("check", write_study(tmp_path, *moved), "--party", "north", "--private", own)
    assert code == 50 and "would exceed the cap" in err


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    ended = subprocess.run(
        f"{sys.executable} -m runner --help | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert ended.stdout.startswith("usage:") and ended.stderr == ""


def test_start_up_is_light() -> None:
    script = (
        "import sys; from runner.__main__ import main; code = main(['--help']); "
        "heavy = {'numpy', 'pandas', 'psycopg', 'duckdb', 'networkx', 'cryptography', 'mpyc', 'mpmath', 'rich'}; "
        "sys.exit(code or bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT).returncode == 0
