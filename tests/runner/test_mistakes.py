"""Mistakes that people make, each answered by one sentence that says what to do, and a code that is not 0."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from cosynth import Study, load, run_study
from mpc_protocols.errors import DataRefused, StudyInvalid, UsageError
from runner.commands.cli import main
from runner.commands.using.where import conditions
from runner.results import outdir
from runner.version import VERSION
from synth.domain import Domain
from tests.runner.studies import STUDY

IDEAL = ('backend = "replicated"', 'backend = "ideal"')


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, its tables, a finished run `out`, and what people take for them."""
    directory = tmp_path_factory.mktemp("world")
    draw = random.Random(5)
    for name in ("north", "south", "west"):
        lines = [f"{draw.randint(17, 90)},{draw.choice('fm')},{draw.choice('abc')}" for _ in range(300)]
        (directory / f"{name}.csv").write_text("\n".join(["age,sex,work", *lines]) + "\n")
    (directory / "study.toml").write_text(STUDY.replace(*IDEAL))
    (directory / "north.toml").write_text('data = "north.csv"\n')
    columns = STUDY[STUDY.index("[domain.columns.age]") : STUDY.index("[session]")]
    (directory / "proposed.toml").write_text(columns)
    (directory / "empty").mkdir()
    (directory / "coded").mkdir()
    (directory / "coded" / "tiny.csv").write_text("a,b\n" + "0,1\n1,1\n1,0\n" * 40)
    (directory / "coded" / "tiny-domain.json").write_text('{"a": 2, "b": 2}')
    (directory / "stub.db").write_text("")
    (directory / "notes.txt").write_text("no ledger\n")
    (directory / "twice.csv").write_text("age,sex,age\n40,f,41\n")
    (directory / "alike.csv").write_text("age,sex,AGE,work\n40,f,41,a\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSYNTH_LEDGER", str(directory / "ledger.db"))
        assert main(["run", str(directory / "study.toml"), "--out", str(directory / "out"), "-q"]) == 0
        assert main(["certs", "request", "north", "--out", str(directory)]) == 0
    return directory


@pytest.fixture
def here(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(world)
    monkeypatch.setenv("COSYNTH_LEDGER", str(world / "ledger.db"))
    return world


def one_sentence(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """What standard error says, besides notes of a `check` on standard output."""
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.rstrip().endswith(".") and "Traceback" not in err, err
    for word in words:
        assert word in err, err


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        # the command
        ("", 2, "name a COMMAND"),
        ("chek study.toml", 2, 'did you mean "check"'),
        ("sampel out", 2, 'did you mean "sample"'),
        ("ledger shwo", 2, 'did you mean "show"'),
        ("RUN study.toml", 2, 'did you mean "run"'),
        ("help chek", 2, 'did you mean "check"'),
        ("frobnicate", 2, "invalid choice"),
        ("--hlep", 2, 'unrecognized arguments: --hlep (did you mean "--help"?)'),
        ("--verison", 2, 'did you mean "--version"'),
        ("-v run study.toml", 2, "-v; options stand after the COMMAND"),
        ("run study.toml -out x", 2, 'did you mean "--out"'),
        ("run study.toml \N{EM DASH}out x", 2, 'did you mean "--out"'),
        ("run study.toml \N{EN DASH}quiet", 2, 'did you mean "--quiet"'),
        ("run study.toml -o a -o b", 2, "-o/--out: is given twice"),
        ("check study.toml -p north --party south", 2, "-p/--party: is given twice"),
        ("sample out -n 5 --rows 6", 2, "-n/--rows: is given twice"),
        # what a variable of the shell leaves that is not set
        ("check study.toml -p ''", 2, "the value of -p is empty"),
        ("check study.toml --party=", 2, "the value of --party is empty"),
        ("run study.toml --out ' '", 2, "the value of --out is empty"),
        ("check ''", 2, "an argument is empty"),
        ("certs", 2, "COMMAND"),
        # its options
        ("run study.toml --replce", 2, 'did you mean "--replace"'),
        ("run study.toml --outt=x", 2, 'did you mean "--out"'),
        ("sample out -n 5 --sed 3", 2, 'did you mean "--seed"'),
        ("demo --vertically", 2, 'did you mean "--vertical"'),
        ("run study.toml -v -q", 2, "not allowed with"),
        ("run study.toml --json -q", 2, "not allowed with"),
        ("run study.toml --resume --replace", 2, "not allowed with"),
        ("run", 2, "STUDY"),
        ("sample out", 2, "--rows"),
        ("run study.toml --out", 2, "expected one argument"),
        ("report out --html", 2, "unrecognized arguments: --html; see `cosynth report --help`"),
        ("ledger show --datset x", 2, '(did you mean "--dataset"?); see `cosynth ledger show --help`'),
        ("graph out --format gexf", 2, "--format gexf; see `cosynth graph --help`"),
        ("demo extra", 2, "unrecognized arguments: extra; see `cosynth demo --help`"),
        # counts
        ("sample out -n 5 --seed x", 2, "a whole number"),
        ("watch out --port abc", 2, "a whole number"),
        ("certs sign none.csr -o signed --days soon", 2, "a whole number"),
        ("sample out -n many", 2, "a whole number such as 1000 or 1e5"),
        ("sample out -n 1.5", 2, "a whole number"),
        ("sample out -n -1", 2, "--rows"),
        ("sample out -n 1e12", 2, "--rows must be from 0 to"),
        ("sample out -n nan", 2, "a whole number"),
        ("sample out -n 5 --seed -1", 2, "--seed must be at least 0"),
        ("plan study.toml -n 0", 2, "--rows must be at least 1"),
        ("plan study.toml -n ten", 2, "a whole number"),
        ("plan study.toml -n 1,000", 2, "a whole number such as 1000 or 1e5"),
        ("plan study.toml -n 1.000", 2, "a whole number such as 1000 or 1e5"),
        ("plan study.toml -p nroth", 2, 'the study has no party nroth (did you mean "north"?)'),
        ("plan study.toml --private nroth=north.toml", 2, 'did you mean "north"'),
        # rows of a kind
        ("sample out -n 5 --where age", 2, "must be COLUMN=VALUE"),
        ("sample out -n 5 --where agee=40", 2, 'did you mean "age"'),
        ("sample out -n 5 --where sex=x", 2, "is not a value of it"),
        ("sample out -n 5 --where sex=F", 2, "'F' is not a value of it (did you mean \"f\"?)"),
        ("sample out -n 5 --where age=40..", 2, "both named"),
        ("sample out -n 5 --where age=60..40", 2, "in the wrong order"),
        ("sample out -n 5 --where sex=f..m", 2, "has no order"),
        ("sample out -n 5 --where age=20..30 --where age=40", 2, "has a range already"),
        ("sample out -n 5 --where age=200", 2, "is outside 17 to 90"),
        ("sample out -n 5 --where age==40", 2, "is written otherwise here: --where age=40."),
        ("sample out -n 5 --where 'age >= 40'", 2, "otherwise here: --where age=40..90."),
        ("sample out -n 5 --where 'age<40'", 2, "otherwise here: --where age=17..40."),
        ("sample out -n 5 --where age=30-40", 2, "otherwise here: --where age=30..40."),
        ("sample out -n 5 --where 'age=30 to 40'", 2, "otherwise here: --where age=30..40."),
        ("sample out -n 5 --where sex=f,age=40", 2, "otherwise here: --where sex=f --where age=40."),
        ("sample out -n 5 --where 'sex == \"f\" and age > 40'", 2, "--where sex=f --where age=40..90."),
        ("sample out -n 5 --where work=a,b", 2, "otherwise here: --where work=a --where work=b."),
        ("sample out -n 5 --where 'work = a'", 2, "otherwise here: --where work=a."),
        ("sample out -n 5 --where work!=a", 2, "name the values of work that rows may have"),
        ("sample out -n 5 --where agee==40", 2, 'did you mean "age"'),
        ("sample out -n 5 --where 'sex > f'", 2, "must be COLUMN=VALUE"),
        ("sample out -n 5 -o rows.xlsx", 2, ".csv or .parquet"),
        ("sample out -n 5 -o rows.parquet --csv-safe", 2, "--csv-safe is about CSV"),
        ("sample nowhere -n 5", 2, "nowhere holds no finished run"),
        ("sample empty -n 5", 2, "empty holds no finished run"),
        ("query out aeg", 2, 'did you mean "age"'),
        ("query out age,sex", 2, "write age sex, with blanks between them"),
        ("report nowhere", 2, "nowhere"),
        ("report out/report.html", 2, "is a file of a run; name its directory, out."),
        ("sample out/synthetic.csv -n 5", 2, "name its directory, out."),
        ("verify out/run.json", 2, "name its directory, out."),
        ("evaluate out --real nroth.csv", 30, 'did you mean "north.csv"'),
        ("graph empty", 2, "holds no finished run"),
        # a study that is none
        ("check none.toml", 10, "cannot be read"),
        ("check north.csv", 10, "looks like a table, not like a study"),
        ("run south.csv", 10, "`cosynth init DIR --from south.csv`"),
        ("check .", 10, "is a directory; name study.toml"),
        ("run out", 10, "is a directory; name a file in it"),
        (
            "plan north.toml",
            10,
            "north.toml: looks like a party's private file, not like a study; name it by --private",
        ),
        # private files
        ("check study.toml --private north.toml", 2, "--party NAME"),
        ("check study.toml --private nroth=north.toml", 2, 'did you mean "north"'),
        ("check study.toml -p north --private south=north.toml", 2, "is of south, and --party says north"),
        ("check study.toml -p north --private a.toml --private b.toml", 2, "given twice"),
        ("check study.toml -p nroth", 2, 'did you mean "north"'),
        ("check study.toml -p NORTH", 2, 'did you mean "north"'),
        ("check study.toml --private north.toml=north", 2, 'no party north.toml (did you mean "north"?)'),
        ("check study.toml -p north --private none.toml", 10, "cannot be read"),
        ("check study.toml --private north=north.csv", 10, "a private file, which names it as `data`"),
        ("check study.toml --connect", 2, "--party NAME"),
        ("check study.toml --rehearsal", 2, "--party NAME"),
        ("check study.toml -p north --rehearsal --connect", 2, "leave --rehearsal out"),
        ("plan study.toml -p north --private south=north.toml", 2, "is of south"),
        # where results go
        ("run study.toml -o out", 2, "holds a finished run"),
        ("run study.toml -o north.csv", 2, "north.csv"),
        ("run study.toml --resume -o otu", 2, "no run was ever started in otu"),
        ("run study.toml --resume -o empty", 2, "no run was ever started in empty"),
        # starting
        ("init . --from none.csv", 30, "does not exist"),
        ("init new --from notes.txt", 30, "must end in .csv, .tsv, .parquet or .xlsx"),
        ("init new --from twice.csv", 30, "twice.csv: columns 1 and 3 have the same name; rename one."),
        (
            "init new --from a=north.csv --from b=alike.csv",
            30,
            "b: the names of columns 1 and 3 differ in capitals or blanks",
        ),
        ("init new --from north.csv south.csv", 2, "arguments: south.csv; write --from before each"),
        (
            "init new --from north.csv,south.csv",
            2,
            "write --from before each: --from north.csv --from south.csv.",
        ),
        ("sample out -n 5 --where sex=f age=40", 2, "arguments: age=40; write --where before each"),
        ("infer out 'mean(aeg)'", 2, 'has no column aeg (did you mean "age"?)'),
        ("infer out 'mean(age)' --level high", 2, "--level: must be a number such as 0.5, got 'high'"),
        ("infer out 'mean(age)' --level nan", 2, "from 0.5 to below 1, got nan"),
        ("infer out --level 0.9 'mean(aeg)'", 2, 'has no column aeg (did you mean "age"?)'),
        ("infer out 'mean(age)' --level 0.9 'mean(aeg)'", 2, 'has no column aeg (did you mean "age"?)'),
        ("infer out 'mean(age'", 2, "needs ')'"),
        ("infer out 'mean(sex)'", 2, "ask for a share"),
        ("plan study.toml --delay-ms fast", 2, "--delay-ms: must be a number such as 0.5, got 'fast'"),
        ("plan study.toml --delay-ms nan", 2, "--delay-ms must be from 0 to 1,000,000, got nan"),
        ("plan study.toml --compare -p north", 2, "leave --party out"),
        ("ledger show --delta nan", 2, "--delta must lie between 0 and 1, got nan"),
        (
            "bench paper flaim --data . --seeds two",
            2,
            "--seeds: must be a whole number such as 10, got 'two'",
        ),
        ("evaluate out --real north.csv --label aeg", 2, 'no such column (did you mean "age"?)'),
        ("evaluate out --real .", 30, "must end in .csv"),
        ("evaluate out --real study.toml", 30, "must end in .csv"),
        ("evaluate study.toml --real north.csv", 2, "holds no finished run"),
        ("certs make study.toml --out north.csv", 2, "name another directory"),
        ("tally study.toml -p north --data nroth.csv -o t.tally", 30, 'did you mean "north.csv"'),
        # what would write over a run
        ("sample out -n 5 -o out/synthetic.csv", 2, "is a file of a finished run, which nothing replaces"),
        ("graph out -o out/run.json", 2, "is a file of a finished run, which nothing replaces"),
        ("graph out -o .", 2, "is a directory; name a file in it"),
        (
            "graph out -o nowhere/g.graphml",
            2,
            "cannot be written (no such file or directory); name another file",
        ),
        ("sample out -n 5 -o nowhere/rows.csv", 2, "name another file"),
        ("infer out 'mean(age)' --level 95", 2, "The level must be from 0.5 to below 1, got 95."),
        ("init new --from .", 2, "that is a directory; name a table in it"),
        ("init new --from a=empty", 2, "that is a directory; name a table in it"),
        ("init study.toml", 2, "name another directory"),
        ("init new --codes sex", 2, "COLUMN=FILE"),
        ("init new --from a=north.csv --from a=south.csv", 2, "names a twice"),
        (
            "init new --from north.csv --codes sex=north.csv",
            2,
            "is a custodian's own table, and what a code book",
        ),
        ("init new --from north.csv --codes sex=./south.csv --from south.csv", 2, "lists becomes public"),
        (
            "init --from north.csv south.csv",
            2,
            "south.csv is a file, and init makes a directory; write --from",
        ),
        ("plan proposed.toml", 10, "has columns only, which belong to a study"),
        (
            "run study.toml --private north=study.toml -o new",
            10,
            "looks like a study, not like a party's private",
        ),
        # what real rows are
        (
            "evaluate out --real out/synthetic.csv",
            2,
            "is the run's own synthetic table, and real rows judge it",
        ),
        (
            "evaluate out --real north.csv --test ./out/synthetic.csv",
            2,
            "--test ./out/synthetic.csv is the run's",
        ),
        # what is asked of a table
        ("query out age:sex", 2, "out has no column age:sex; write age sex, with blanks between them."),
        ("query out 'age x sex'", 2, "write age sex, with blanks between them."),
        ("query out age:sxe", 2, "its columns: "),
        ("sample out -n 5 -w sex=F", 2, """'F' is not a value of it (did you mean "f"?)."""),
        ("sample out -n 5 -w sex=", 2, "Column sex: a missing value is not a value of it ("),
        ("infer out 'share(sex)'", 2, "needs a comparison, such as sex == ..., where it has ')'"),
        ("infer out 'mean(age | work > 2019-12-31)'", 2, "has a day without quotes"),
        ("infer out \"mean(age | sex == 'x')\"", 2, "'x' is not a value of it; it has f, m."),
        ("graph out -o graph.png", 2, "GraphML is written, which is no picture; name a .graphml file"),
        ("infer out 'mean(age) by sex'", 2, "ends before 'by'; a condition stands inside its brackets"),
        ("infer out 'mean(age): sex'", 2, "ends before ':'; a condition stands inside its brackets"),
        ("infer out 'share(sex = f)'", 2, "has a single =; a comparison is written ==."),
        # the ledger
        ("ledger check --private north=north.toml --ledger none.db", 2, "none.db does not exist"),
        ("ledger show --ledger none.db", 2, "does not exist"),
        ("ledger check --ledger none.db", 2, "does not exist"),
        ("ledger check --ledger notes.txt", 30, "restore it from a backup"),
        (
            "ledger check --ledger stub.db",
            30,
            "stub.db is empty or cut, and no ledger; restore it from a backup",
        ),
        ("ledger show --ledger stub.db", 30, "stub.db is empty or cut, and no ledger"),
        ("ledger show --ledger empty", 50, "check that it is a Cosynth ledger"),
        ("ledger show --delta 2", 2, "--delta must lie between 0 and 1"),
        ("ledger show --json --csv", 2, "not allowed with"),
        ("ledger show --dataset trial/nroth", 2, 'did you mean "trial/north"'),
        ("watch nowhere", 2, "nowhere"),
        ("init new.toml --from north.csv", 2, "init writes study.toml; name it without .toml."),
        ("certs request nor/th --out new", 2, "nor/th is not a party's name"),
        ("infer out 'mean(AGE)'", 2, 'no column AGE (did you mean "age"?)'),
        ("check stduy.toml", 10, '(did you mean "study.toml"?); check the path.'),
        ("init new --from north=", 2, "--from must be FILE or NAME=FILE, got north=."),
        ("init new --from =north.csv", 2, "--from must be FILE or NAME=FILE, got =north.csv."),
        (
            "certs make study.toml --out out",
            2,
            "out holds the results of a run, which are passed on, and keys are not",
        ),
        ("conformance algorithm aimm", 2, 'did you mean "aim"'),
        ("sample out -n 5 --where age=20..30,40..50", 2, "and the only condition on its column"),
        ("watch .", 2, '. holds files, and no run (did you mean "out"?); name'),
        (
            "watch coded",
            2,
            "coded holds files, and no run; name the --out directory of a run, or an empty one",
        ),
        (
            "sample outt -n 5",
            2,
            'outt holds no finished run (no run.json) (did you mean "out"?); name the directory',
        ),
        ("query . age", 2, 'holds no finished run (no run.json) (did you mean "out"?)'),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, words: str
) -> None:
    assert main(shlex.split(line)) == code
    one_sentence(capsys, words)
    assert not (here / "new").exists()


@pytest.mark.parametrize(
    ("before", "after", "code", "words"),
    [
        ('kind = "numeric"', 'kind = "float"', 10, 'did you mean "numeric"'),
        ('kind = "numeric"', 'kind = "interger"', 10, 'did you mean "integer"'),
        ('kind = "numeric"', 'kind = "catagorical"', 10, 'did you mean "categorical"'),
        ('kind = "numeric"', 'kind = "Double"', 10, 'did you mean "numeric"'),
        ('kind = "numeric"', 'kind = "int"', 10, 'did you mean "integer"'),
        ('kind = "categorical"\nvalues = ["f", "m"]', 'kind = "bool"', 10, 'did you mean "boolean"'),
        ('kind = "categorical"\nvalues = ["f", "m"]', 'kind = "str"', 10, 'did you mean "categorical"'),
        ('algorithm = "aim"', 'algorithm = "amm"', 10, 'did you mean "aim"'),
        ('backend = "ideal"', 'backend = "idael"', 10, 'did you mean "ideal"'),
        ("epsilon = 1.0", 'epsilon = "1.0"', 10, "epsilon"),
        ("epsilon = 1.0", "epsilon = 0", 10, "epsilon"),
        ("delta = 1e-9", "delta = 2", 10, "delta"),
        ("epsilon = 1.0", "epsilon = 1e400", 10, "epsilon must be a number greater than 0"),
        ("epsilon = 1.0", "epsilon = nan", 10, "got nan"),
        ("bins = 8", "bins = 100000000000000000000", 10, "bins must be an integer from 1 to"),
        ("bins = 8", "bins = 2.5", 10, "bins must be an integer"),
        ("high = 90", "high = inf", 10, "high must be a finite number"),
        ("high = 90", 'high = "90"', 10, "high must be a finite number"),
        ("low = 17", "low = 2020-02-30", 10, "Invalid date"),
        ('values = ["f", "m"]', "values = []", 10, "at least one value"),
        ('values = ["f", "m"]', 'values = "fm"', 10, "values must be a list"),
        ("rounds = 4", 'rounds = "four"', 10, "rounds must be a whole number"),
        ("rounds = 4", "rounds = 100000000000", 10, "at most 65536"),
        ("degree = 2", "degree = 9", 10, "at most 3"),
        ("degree = 2", 'degree = 2\nlabel = "aeg"', 10, 'did you mean "age"'),
        ("degree = 2", 'cliques = [["age", "sexx"]]', 10, 'did you mean "sex"'),
        (
            "degree = 2",
            'degree = 2\nalgorithm = "aim"',
            10,
            'unknown key "algorithm"; it belongs under [study]',
        ),
        (
            'algorithm = "aim"',
            'algorithm = "aim"\nepsilon = 2.0',
            10,
            '"epsilon"; it belongs under [privacy]',
        ),
        ("[privacy]", "[privacy]\nsilence_s = 9", 10, '"silence_s"; it belongs under [session]'),
        ("127.0.0.1:7101", "127.0.0.1:99999", 10, "a port from 1 to 65535"),
        ("127.0.0.1:7101", "http://127.0.0.1:7101", 10, 'must be "host:port"'),
        ('name = "north"', 'name = "no/rth"', 10, "files are named after it"),
        ('data = "north.csv"', "data = 5", 10, "must name a .csv"),
        ("silence_s = 200", 'silence_s = "long"', 10, "silence_s must be a number"),
        ("[aim]", "[amm]", 10, 'did you mean "aim"'),
        ('adjacency = "add-remove"', 'adjacency = "add_remove"', 10, 'did you mean "add-remove"'),
        ("low = 17", "low = 170", 10, "low"),
        ('values = ["f", "m"]', 'values = ["f", "f"]', 10, "values"),
        ("rounds = 4", "roundz = 4", 10, 'did you mean "rounds"'),
        (
            'data = "north.csv"',
            'data = "nroth.csv"',
            30,
            'does not exist (did you mean "north.csv"?), and the data of',
        ),
        ('data = "north.csv"', 'data = "North.CSV"', 30, 'did you mean "north.csv"'),
        ('data = "north.csv"', "data = 'C:\\Users\\me\\north.csv'", 30, "(folders are separated by / here)"),
        ('data = "north.csv"', 'data = "C:\\Users\\me\\north.csv"', 10, "single quotation marks"),
        # TOML as people write it who are used to something else
        (
            "epsilon = 1.0",
            "epsilon = 1,0",
            10,
            "line {line}, column 12: Expected newline or end of document after a statement; a number",
        ),
        ("epsilon = 1.0", "epsilon: 1.0", 10, "; write key = value."),
        ("epsilon = 1.0", "epsilon =", 10, "a value is missing after ="),
        ("epsilon = 1.0", "epsilon = 1.0\nepsilon = 2.0", 10, "this name is there already; leave one out"),
        ("delta = 1e-9", "delta = 0.001%", 10, "such as 0.01 for 1 %"),
        ('algorithm = "aim"', "algorithm = \u201caim\u201d", 10, "write plain quotation marks"),
        ('algorithm = "aim"', "algorithm = aim", 10, "write a text between quotation marks"),
        ('algorithm = "aim"', 'algorithm = "aim"\nresearch = True', 10, "truth values are true and false"),
        (
            "epsilon = 1.0",
            "\u00e9psilon = 1.0",
            10,
            "other letters than A to Z stands between quotation marks",
        ),
        ("[[party]]", "[party]", 10, "such as [[party]], have two brackets"),
        ('values = ["f", "m"]', 'values = ["f", "m"', 10, "line"),
        ('data = "north.csv"', 'data = "~/nobody-has-this.csv"', 30, "does not exist, and the data of south"),
        ('data = "north.csv"', 'data = "north.doc"', 10, "must name a .csv, .tsv, .parquet or .xlsx file"),
        ('values = ["f", "m"]', 'values = ["f", "x"]', 30, "sex"),
        ('name = "south"', 'name = "north"', 10, "north"),
        ("127.0.0.1:7102", "127.0.0.1:7101", 10, "7101"),
    ],
)
def test_a_mistake_in_a_study_is_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, code: int, words: str
) -> None:
    text = (here / "study.toml").read_text()
    assert before in text
    (here / "wrong.toml").write_text(text.replace(before, after, 1))
    assert main(["check", "wrong.toml"]) == code
    one_sentence(capsys, words.format(line=text[: text.index(before)].count("\n") + 1))


def test_a_key_above_all_tables_is_told_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bare.toml").write_text((here / "study.toml").read_text().replace("[study]\n", ""))
    assert main(["check", "bare.toml"]) == 10
    one_sentence(capsys, 'bare.toml: unknown key "name"; it belongs under [study]; known here: ')


def test_nothing_is_written_over_what_was_released(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.is_file()}
    for line in (
        "sample out -n 5 -o out/synthetic.csv",
        "sample out -n 5 -o ./out/../out/synthetic.csv",
        "graph out -o out/model.npz",
        "graph out -o out/report.html",
    ):
        assert main(shlex.split(line)) == 2, line
        one_sentence(capsys, "which nothing replaces")
    assert before == {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("sample out -n 5 -o table.csv", "table.csv"),
        ("sample out -n 5 -o table.parquet", "table.parquet"),
        ("sample out -n 5 --replicates 2 -o table.csv", "table.2.csv"),
        ("graph out -o table.graphml", "table.graphml"),
        ("tally study.toml --data north.csv -o table.csv", "table.csv"),
        ("evaluate out --real north.csv --html table.html", "table.html"),
        ("certs sign study.toml north.csr --out .", "north.crt"),
        ("audit --only A.conversion --quick --json table.json", "table.json"),
        ("audit --only A.conversion --quick --out .", "audit.html"),
        ("bench utility --data coded --algorithms independent --seeds 1 --json table.jsonl", "table.jsonl"),
        ("bench utility --data coded --algorithms mst --seeds 1 --parts --html table.html", "table.html"),
    ],
)
def test_a_file_that_is_there_is_replaced_on_request_only(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, file: str
) -> None:
    """It may be the table that the run was made from."""
    words = shlex.split(line)
    words[-1] = str(tmp_path / words[-1])
    option = words[-2] if words[-2] != "-o" else "--out"
    (tmp_path / file).write_text("a precious table\n")
    assert main(words) == 2
    one_sentence(
        capsys,
        f"{option} {tmp_path / file} is there already; name another file, or let this one take its "
        "place with --replace.",
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(file, "a precious table\n")]
    assert main([*words, "--replace"]) == 0
    assert b"precious" not in (tmp_path / file).read_bytes()
    if line.startswith("tally"):  # counts of new data take the place of the last ones
        assert main(words) == 0
    if line.startswith("evaluate"):
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    if file.endswith(".jsonl"):  # lines may go into a pipe
        return
    (tmp_path / file).unlink()
    os.mkfifo(tmp_path / file)
    assert main([*words, "--replace"]) == 2
    one_sentence(capsys, "is no file that could be replaced")


def test_a_benchmark_is_refused_before_anything_is_measured(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the benchmarks of parties, and before the other option's file is emptied."""
    lines, page = tmp_path / "lines.jsonl", tmp_path / "page.html"
    page.write_text("precious")
    assert main(["bench", "rounds", "--json", str(lines), "--html", str(page)]) == 2
    one_sentence(capsys, f"--html {page} is there already")
    assert page.read_text() == "precious" and not lines.exists()
    assert main(["bench", "rounds", "--json", str(page)]) == 2
    one_sentence(capsys, f"--json {page} is there already")


@pytest.fixture
def apart(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study of custodians whose tables are named in their private files alone, and a ledger of its own."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    text = (here / "study.toml").read_text()
    for name in ("north", "south", "west"):
        text = text.replace(f'data = "{name}.csv"\n', "")
        (tmp_path / f"{name}.toml").write_text(f'data = "{here / name}.csv"\n')
    (tmp_path / "study.toml").write_text(text)
    return tmp_path


def test_a_budget_is_not_spent_on_one_custodian_alone_without_a_word(
    apart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A forgotten --private is told before anything is spent; that it was none is said with --alone."""
    study, out = str(apart / "study.toml"), apart / "alone"
    north = ("--private", f"north={apart / 'north.toml'}")
    assert main(["run", study, "--out", str(out), *north]) == 2
    one_sentence(capsys, "Only north has a table here", "south and west", "too (--private)", "--alone")
    assert not out.exists() and not (apart / "ledger.db").exists()
    assert main(["check", study, *north]) == 0
    assert "WARNING: only north has a table here" in capsys.readouterr().out
    assert main(["run", study, "--out", str(out), *north, "--alone"]) == 0
    assert "no table here, so these only compute: south, west\n" in capsys.readouterr().out
    assert main(["run", study, "--party", "north", "--alone"]) == 2
    one_sentence(capsys, "--alone is for a run of all parties here")


def test_a_run_without_its_private_files_says_how_they_are_named(
    apart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(apart / "study.toml"), "--out", str(apart / "none")]) == 10
    one_sentence(capsys, "no party has data; give each custodian's [[party]] a data file", "(--private)")


def test_two_custodians_of_three_may_run_and_the_third_is_named(
    apart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"--private={name}={apart / name}.toml" for name in ("north", "south")]
    assert main(["run", str(apart / "study.toml"), "--out", str(apart / "two"), *given]) == 0
    assert "no table here, so these only compute: west\n" in capsys.readouterr().out


def test_in_python_one_table_of_several_parties_is_meant_or_refused(apart: Path) -> None:
    private = {"north": apart / "north.toml"}
    with pytest.raises(UsageError, match=r"Only north has a table here.*alone=True"):
        run_study(apart / "study.toml", out=apart / "python", private=private)
    assert run_study(apart / "study.toml", out=apart / "python", private=private, alone=True).summary["rows"]


def test_a_call_of_another_shape_is_answered_with_the_shape(here: Path, tmp_path: Path) -> None:
    """What else would be three parties of a letter each, or an error of somebody's library."""
    with pytest.raises(UsageError, match=r"data names each party's, .* got list"):
        run_study(here / "study.toml", [1, 2], out=tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(StudyInvalid, match=r"parties are a list of names, .* got the text 'abc'"):
        Study.of("trial", {"a": 2, "b": 2}, "abc", epsilon=1, delta=1e-6)
    with pytest.raises(UsageError, match=r"A sample has from 0 to .* rows, got '10'"):
        load(here / "out").sample("10")  # type: ignore[arg-type]
    with pytest.raises(DataRefused, match="The frame has no rows"):
        Study.propose(pd.DataFrame())


def test_a_number_whose_thousands_are_set_apart_is_one_number() -> None:
    domain = Domain.from_spec(
        {"columns": {"cost": {"kind": "numeric", "low": 0, "high": 20_000, "bins": 20}}}
    )
    for text in ("1,000", "1'000", "1 000", "1\N{NO-BREAK SPACE}000"):
        with pytest.raises(UsageError, match=r"is written otherwise here: --where cost=1000\."):
            conditions([f"cost={text}"], domain)
    with pytest.raises(UsageError, match=r"--where cost=10 --where cost=20\."):
        conditions(["cost=10,20"], domain)


def test_questions_may_stand_behind_an_option(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for line in (
        "infer out --json 'mean(age)' 'median(age)'",
        "infer out 'mean(age)' --json 'median(age)'",
        "infer out 'mean(age)' 'median(age)' --json",
    ):
        assert main(shlex.split(line)) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2] and "median(age)" in told[0]


@pytest.fixture(scope="module")
def certified(world: Path) -> Path:
    """The study between parties with certificates, which lie in `certs`."""
    text = (world / "study.toml").read_text().replace('backend = "ideal"', 'backend = "replicated"')
    (world / "tls.toml").write_text(text.replace('tls = "insecure-loopback"\n', ""))
    assert main(["certs", "make", str(world / "tls.toml"), "--out", str(world / "certs")]) == 0
    return world


@pytest.mark.parametrize(
    ("cert", "key", "ca", "words"),
    [
        ("south.crt", "south.key", "ca.crt", "south.crt belongs to 'south', not to party north"),
        ("north.crt", "south.key", "ca.crt", "south.key does not belong to the certificate"),
        ("north.key", "north.crt", "ca.crt", "north.key, holds no PEM certificate"),
        ("north.crt", "north.key", "../north.csv", "north.csv, holds no PEM certificate"),
        (".", "north.key", "ca.crt", "cannot be read: Is a directory; correct its path in the private file"),
        ("nroth.crt", "north.key", "ca.crt", "nroth.crt does not exist"),
    ],
)
def test_certificates_of_another_are_refused_before_anything_is_sent(
    here: Path, certified: Path, capsys: pytest.CaptureFixture[str], cert: str, key: str, ca: str, words: str
) -> None:
    (here / "wrong.toml").write_text(
        f'data = "north.csv"\ncert = "certs/{cert}"\nkey = "certs/{key}"\nca = "certs/{ca}"\n'
    )
    for line in (
        "check tls.toml -p north --private wrong.toml",
        "run tls.toml -p north --private wrong.toml -o apart",
    ):
        assert main(shlex.split(line)) == 21
        one_sentence(capsys, words)
    left = {path.name for path in (here / "apart").iterdir()}
    assert left <= {outdir.MARK, outdir.LOG, outdir.EVENTS, outdir.PRIVATE_LOG}


@pytest.mark.parametrize(
    ("file", "content", "line", "words"),
    [
        ("run.json", b"{", "sample damaged -n 3", "is not the file of a finished run"),
        ("run.json", b"{", "verify damaged", "is not the file of a finished run"),
        ("run.json", b"[]", "report damaged", "damaged or belongs to another version"),
        ("model.npz", b"", "sample damaged -n 3", "is damaged or of another version"),
        ("model.npz", b"PK", "infer damaged 'mean(age)'", "is damaged or of another version"),
        ("measurements.json", b"", "infer damaged 'mean(age)'", "damaged"),
        ("measurements.json", None, "infer damaged 'mean(age)'", "measurements.json is missing"),
        ("measurements.json", None, "report damaged", "measurements.json is missing"),
        ("synthetic.csv", None, "evaluate damaged --real north.csv", "synthetic.csv"),
        ("synthetic.csv", b"", "evaluate damaged --real north.csv", "synthetic.csv"),
    ],
)
def test_a_run_that_lost_a_file_says_which(
    here: Path, capsys: pytest.CaptureFixture[str], file: str, content: bytes | None, line: str, words: str
) -> None:
    shutil.rmtree(here / "damaged", ignore_errors=True)
    shutil.copytree(here / "out", here / "damaged")
    (here / "damaged" / file).unlink()
    if content is not None:
        (here / "damaged" / file).write_bytes(content)
    assert main(shlex.split(line)) in (2, 30)
    one_sentence(capsys, words)


HEAD, ROW = "age,sex,work", "40,f,a"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{HEAD}\n{ROW}\n".replace(",", ";"), 'delimiter = ";" under [csv]'),
        (f"{HEAD}\n{ROW}\n".encode("utf-16"), 'is UTF-16; write encoding = "utf-16" under [csv]'),
        (
            f"{HEAD}\n{ROW}\n40,f,\u00e4\n".encode("latin-1"),
            "line 3 is not UTF-8 text; save the file as UTF-8, or write",
        ),
        ("", "is empty; a table has at least a header line"),
        ("\n\n", "is empty"),
        (f"{HEAD}\n", "has no rows; if that is right, set allow_empty = true"),
        (f"{HEAD}\n{ROW},x\n", "line 2 does not have as many fields as the header line"),
        (f"{HEAD}\n40,f\n", "line 2 does not have as many fields as the header line"),
        (f"{HEAD}\n1e400,f,a\n", 'column "age", line 2: the value is not a finite number'),
        (f"{HEAD}\nNaN,f,a\n", 'column "age", line 2: the value is not a finite number'),
        (f"{HEAD}\n,f,a\n", "line 2: the value is missing"),
        (f"{HEAD}\n40, f,a\n", "spaces and capitals included"),
        (f'{HEAD}\n"40,f,a\n', "line 2 has a quotation mark that is not closed"),
        (f"{HEAD},age\n{ROW},41\n", 'more than one column "age"; rename'),
        ("age,sex\n40,f\n", 'no column "work"'),
        ("1,2,3\n40,f,a\n", "line 1 must be a header line"),
        (bytes(range(256)) * 9, "line 1 must be a header line"),
        (b"PK\x03\x04\x14\x00\x06\x00\xff\xfe", "is a workbook, not CSV; name it .xlsx"),
        (b"PAR1\x15\x04\x15\xff", "is Parquet, not CSV; name it .parquet"),
        (
            f"{HEAD.upper()}\n{ROW}\n",
            'none of the study\'s columns, but for capitals; write names = "ignore case"',
        ),
        (f"Age,sex,work\n{ROW}\n", 'no column "age", which the study declares; one differs in capitals only'),
        (f"age, sex,work\n{ROW}\n", 'write from = " sex" under [harmonise.columns.sex] of the private file'),
        (f"sep=,\n{HEAD}\n{ROW}\n", "line 1 is a remark; delete it"),
        (f"# exported on Monday\n{HEAD}\n{ROW}\n", "line 1 is a remark; delete it"),
        (f'{HEAD}\n"40,5",f,a\n', 'decimal = "," under [csv]'),
        (f'{HEAD}\n"1,240",f,a\n', 'if it groups digits, thousands = ","'),
        (f'{HEAD}\n"1,240.50",f,a\n', "its digits stand in groups: say by what, as thousands under [csv]"),
    ],
)
def test_a_table_that_is_written_otherwise_is_answered_by_what_to_write(
    here: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, words: str
) -> None:
    (here / "odd.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    text = (here / "study.toml").read_text()
    (here / "odd.toml").write_text(text.replace('data = "north.csv"', 'data = "odd.csv"'))
    assert main(["check", "odd.toml"]) == 30
    one_sentence(capsys, words)


def test_tabs_separate_the_fields_of_a_tsv(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (here / "north.tsv").write_text((here / "north.csv").read_text().replace(",", "\t"))
    text = (here / "study.toml").read_text()
    (here / "tabs.toml").write_text(text.replace('data = "north.csv"', 'data = "north.tsv"'))
    (here / "marked.toml").write_text('[csv]\nencoding = "utf-8"\n[harmonise]\nmissing = ["NA"]\n')
    assert main(["check", "tabs.toml"]) == 0
    assert main(["check", "tabs.toml", "--private", "north=marked.toml"]) == 0
    assert main(["init", str(tmp_path / "new"), "--from", "north.tsv"]) == 0
    proposed = (tmp_path / "new" / "domain.proposed.toml").read_text()
    assert all(f"[domain.columns.{name}]" in proposed for name in ("age", "sex", "work"))
    assert main(["evaluate", "out", "--real", "north.tsv"]) == 0
    capsys.readouterr()
    (here / "north.tsv").write_text((here / "north.csv").read_text())
    assert main(["check", "tabs.toml"]) == 30
    one_sentence(capsys, "line 1 has commas and no other separator; name the file .csv")


@pytest.mark.parametrize("line", ["-V", "--version", "version"])
def test_the_version_is_told_as_people_ask_for_it(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main([line]) == 0
    assert capsys.readouterr().out == f"cosynth {VERSION}\n"


def test_a_run_that_had_released_nothing_begins_anew_and_says_so(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(here / "another.db"))
    with outdir.claim(here / "early"):
        pass  # it died here
    assert main(["run", "study.toml", "-o", "early", "--resume"]) == 0
    assert "nothing to resume in early: no release is on record there" in capsys.readouterr().out
    assert main(["run", "study.toml", "-o", "early", "--resume"]) == 0
    assert "nothing to resume" not in capsys.readouterr().out


def test_a_home_directory_is_expanded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    text = (here / "study.toml").read_text()
    (here / "home.toml").write_text(text.replace('data = "north.csv"', 'data = "~/north.csv"'))
    assert main(["check", "home.toml", "--private", "south=~/south.toml"]) == 10  # named, and not there
    assert main(["check", "home.toml"]) == 0


def test_a_custodian_alone_with_a_study_that_names_other_files_is_told_where_they_are_looked_at(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.toml").write_text((here / "study.toml").read_text())
    assert main(["check", str(tmp_path / "study.toml")]) == 0
    assert "north.csv is not on this machine" in capsys.readouterr().out


def test_a_rehearsal_needs_no_certificates_and_says_what_was_not_looked_at(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (here / "study.toml").read_text().replace('backend = "ideal"', 'backend = "replicated"')
    (here / "certified.toml").write_text(text.replace('tls = "insecure-loopback"\n', ""))
    asked = ["check", "certified.toml", "-p", "north", "--private", "north=north.toml"]
    assert main(asked) == 21
    capsys.readouterr()
    assert main([*asked, "--rehearsal"]) == 0
    assert "these were not looked at: certificate, key, CA" in capsys.readouterr().out


def test_rows_of_a_kind_come_from_the_command_line_as_from_python(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from runner.api import between, load

    asked = ["--where", "age=40..60", "--where", "work=a", "--where", "work=", "--seed", "7"]
    assert main(["sample", "out", "-n", "1e2", *asked, "-o", "kind.csv"]) == 0
    frame = load(here / "out").sample(100, {"age": between(40, 60), "work": ["a", None]}, seed=7)
    lines = (here / "kind.csv").read_text().splitlines()
    assert len(lines) == 101 and {line.split(",")[2] for line in lines[1:]} <= {"a", ""}
    assert [float(line.split(",")[0]) for line in lines[1:]] == [float(age) for age in frame["age"]]


def test_a_line_for_each_data_set_and_all_of_it_when_asked(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "show"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 6 and told[1].startswith("data set") and "--all" in told[-1]
    assert main(["ledger", "show", "--all"]) == 0
    assert capsys.readouterr().out.count("data set: ") == 3
    assert main(["ledger", "show", "--csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4 and rows[0].startswith("dataset,time,study,run,")
    assert main(["ledger", "check"]) == 0
    assert "whole, 3 data sets" in capsys.readouterr().out


def test_a_shell_completes_what_the_parser_knows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("shtab")
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        told = capsys.readouterr().out
        assert "_cosynth_parties" in told and "allow-retry" in told and "evaluate" in told
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    one_sentence(capsys, "shtab, which is not installed")


def test_help_shows_commands_by_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert (
        told.index("begin:") < told.index("prepare:") < told.index("use the result") < told.index("judge it")
    )
    for asked in (["help"], ["help", "run"]):
        assert main(asked) == 0
        assert capsys.readouterr().out.startswith(" ".join(["usage: cosynth", *asked[1:]]))
    assert main([]) == 2
    bare = capsys.readouterr()
    assert bare.out.startswith("usage: ") and "    demo " in bare.out
