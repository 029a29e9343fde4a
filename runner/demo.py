"""`python -m runner demo`: the main job on real data that ships with a dependency, no questions asked.

The data: R. Fair's survey of 6,366 married women (statsmodels' `fair`, public domain), answers people would not have given
by name; one row, one person. The rows are dealt at random to three custodians, each of which gets a file of its own and a
process of its own; from there on everything is as in any run on one machine. Only a demo can compare the result with the
real rows, since only here somebody holds them all: the comparison is marked so in the report, and kept (COMPARISON), so that
a report that is built again has it too.

With --vertical the columns are split instead: a counselling service and a register hold different answers of overlapping
women, and a third party without data computes with them. What the table is compared with is the women that both hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

CUSTODIANS = ("north", "south", "west")
STUDIES = {False: "fair-survey-demo", True: "fair-survey-vertical-demo"}
"""The name of the demo's study; by whether it is vertical."""
COMPARISON = Path("data", "comparison.json")
"""Where, in the demo's directory, its comparison with the real rows is kept: {"session": of its run, "comparison": {...}}."""
SPLIT_SEED = 1974  # the year of the survey; a demo is to be the same everywhere

RATING = ("very poor", "poor", "fair", "good", "very good")
RELIGIOUS = ("not", "mildly", "fairly", "strongly")
EDUCATION = {
    9: "grade school",
    12: "high school",
    14: "some college",
    16: "college graduate",
    17: "some graduate school",
    20: "advanced degree",
}
OCCUPATION = (
    "student",
    "farming or unskilled",
    "white-collar",
    "teacher, nurse, artist, skilled",
    "managerial",
    "professional",
)

HEAD = """\
# The study of `python -m runner demo`: every party holds this same file. `python -m runner init DIR` writes one with comments.

[study]
name = "{name}"
algorithm = "mosaic"
backend = "replicated"
partition = "{partition}"

[privacy]
epsilon = 1.0
delta = 1e-6
adjacency = "add-remove"
max_rows = 10000

{alignment}[workload]
degree = 2

[mosaic]
rounds = "adaptive"

[domain.columns]
marriage = {{ kind = "categorical", values = {rating} }}
age = {{ kind = "numeric", low = 15, high = 45, bins = 6, integral = true }}
years_married = {{ kind = "numeric", low = 0, high = 24, bins = 8 }}
children = {{ kind = "categorical", values = ["0", "1", "2", "3", "4", "5 or more"] }}
religious = {{ kind = "categorical", values = {religious} }}
education = {{ kind = "categorical", values = {education} }}
occupation = {{ kind = "categorical", values = {occupation} }}
husband_occupation = {{ kind = "categorical", values = {occupation} }}
affair = {{ kind = "categorical", values = ["no", "yes"] }}

[session]
connect_s = 60
silence_s = 10
"""

PARTY = """
[[party]]
name = "{name}"
address = "127.0.0.1:{port}"
"""
ALIGNMENT = """\
[alignment]                # how the two tables are joined: nobody learns who is in both
method = "psu"
id = "person"
population = "intersection"

"""
HOLDINGS = {
    "counsel": ("marriage", "years_married", "children", "religious", "affair"),
    "register": ("age", "education", "occupation", "husband_occupation"),
}
"""The vertical demo's owners and their columns."""
THIRD = "third"
HELD = 0.85
"""The share of the women that each owner holds, at random."""


def survey() -> pd.DataFrame:
    """The survey, one row a person, in the words of the study's domain. Raises `UsageError` without statsmodels."""
    import pandas as pd

    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise UsageError(
            "The demo's data come with statsmodels, which is not installed; type `pip install 'cosynth[demo]'` and start "
            "the demo again."
        ) from None
    raw = fair.load_pandas().data
    return pd.DataFrame(
        {
            "marriage": [RATING[int(v) - 1] for v in raw["rate_marriage"]],
            "age": raw["age"].astype(int),  # under 20 is 17.5 in the source
            "years_married": raw["yrs_married"],
            "children": ["5 or more" if v > 5 else str(int(v)) for v in raw["children"]],
            "religious": [RELIGIOUS[int(v) - 1] for v in raw["religious"]],
            "education": [EDUCATION[int(v)] for v in raw["educ"]],
            "occupation": [OCCUPATION[int(v) - 1] for v in raw["occupation"]],
            "husband_occupation": [OCCUPATION[int(v) - 1] for v in raw["occupation_husb"]],
            "affair": ["yes" if v > 0 else "no" for v in raw["affairs"]],
        }
    )


def prepare(directory: Path, ports: Sequence[int], vertical: bool = False) -> Path:
    """Write the study and the custodians' files into `directory`; returns the study's path."""
    tables = split() if vertical else dealt()
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(directory / f"{name}.csv", index=False)
    text = HEAD.format(
        name=STUDIES[vertical],
        partition="vertical" if vertical else "horizontal",
        alignment=ALIGNMENT if vertical else "",
        rating=json.dumps(RATING),
        religious=json.dumps(RELIGIOUS),
        education=json.dumps(list(EDUCATION.values())),
        occupation=json.dumps(OCCUPATION),
    )
    for name, port in zip((*HOLDINGS, THIRD) if vertical else CUSTODIANS, ports, strict=True):
        text += PARTY.format(name=name, port=port) + (f'data = "{name}.csv"\n' if name in tables else "")
    study = directory / "study.toml"
    study.write_text(text, encoding="utf-8")
    return study


def dealt() -> dict[str, pd.DataFrame]:
    """Every woman at one of three custodians."""
    import numpy as np

    rows = survey()
    owner = np.random.default_rng(SPLIT_SEED).integers(len(CUSTODIANS), size=len(rows))
    return {name: rows[owner == number] for number, name in enumerate(CUSTODIANS)}


def split() -> dict[str, pd.DataFrame]:
    """Most women at each of two owners, in another order, under identifiers that the two write differently."""
    import numpy as np

    rows, rng, tables = survey(), np.random.default_rng(SPLIT_SEED), {}
    for name, columns in HOLDINGS.items():
        held = rng.permutation(np.flatnonzero(rng.random(len(rows)) < HELD))
        people = [f"W-{number:05}" if name == "counsel" else f" w-{number:05}" for number in held]
        tables[name] = rows.iloc[held][list(columns)].assign(person=people)
    return tables


def real_rows(vertical: bool) -> pd.DataFrame:
    """The rows that the synthetic table stands for: everybody, or the women that both owners hold."""
    if not vertical:
        return survey()
    counsel, register = (
        table.assign(person=table["person"].str.strip().str.upper()) for table in split().values()
    )
    return counsel.merge(register, on="person", validate="one_to_one")


def compare(directory: Path, vertical: bool = False) -> dict[str, Any]:
    """What only a demo can say: the synthetic table in `directory` against the real rows, for the report's `comparison`."""
    import numpy as np
    import pandas as pd

    from runner.study import load
    from synth.metrics import workload_error

    study = load(directory / "data" / "study.toml")
    domain = study.domain
    real = coded(real_rows(vertical), domain)
    synthetic = coded(pd.read_csv(directory / "synthetic.csv", dtype={"children": str}), domain)
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    cliques = study.workload.cliques
    affair, marriage = domain.names.index("affair"), domain.names.index("marriage")

    def share(codes: Any, rating: str) -> float:
        return float(codes[codes[:, marriage] == RATING.index(rating), affair].mean())

    return {
        "metrics": {
            "error of all pairs of columns": (
                workload_error(real, synthetic, domain, cliques),
                workload_error(real, shuffled, domain, cliques),
                "mean L1 distance between the real and the synthetic two-way marginals, from 0 (equal) to 2 (disjoint); "
                "beside it the error of a table with perfect single columns and no relation between them",
            ),
            **{
                f"women with an affair, marriage rated {rating}": (
                    share(synthetic, rating),
                    share(real, rating),
                    "share in the synthetic table; beside it that in the real one",
                )
                for rating in ("poor", "very good")
            },
        },
        "counts": {
            name: np.bincount(real[:, j], minlength=domain.sizes[name]).tolist()
            for j, name in enumerate(domain.names)
        },
    }


def coded(table: pd.DataFrame, domain: Any) -> Any:
    """Codes of a table in the study's words, (rows, columns) in the domain's order."""
    import numpy as np

    from synth.domain import Categorical

    coded = []
    for name, column in zip(domain.names, domain.columns, strict=True):
        if isinstance(column, Categorical):
            code = {value: number for number, value in enumerate(column.values)}
            coded.append([code[value] for value in table[name]])
        else:
            coded.append([column.bin_of(value) for value in table[name]])
    return np.array(coded, dtype=np.int64).T


def demo(out: Path, vertical: bool = False) -> None:
    """Run the demo into `out` and say where its report is; an earlier demo there is replaced. Raises `CosynthError`."""
    import os

    from runner.launch.launcher import launch
    from runner.launch.ports import free_ports
    from runner.report import render
    from runner.results.outdir import claim, state
    from runner.results.warnings import tell, texts_of

    survey()
    if state(out) != "free" and not _is_ours(out):
        raise UsageError(f"--out {out} holds a run that is not the demo's; name another directory.")
    with claim(out, replace=True):
        study = prepare(out / "data", free_ports(3), vertical)
        # a demo's data is public: it has an account of its own, not one in the user's ledger
        os.environ.setdefault("COSYNTH_LEDGER", str((out / "data" / "ledger.db").resolve()))
    run = launch(study, out, replace=True)
    kept = {"session": run["session"], "comparison": compare(out, vertical)}
    (out / COMPARISON).write_text(json.dumps(kept) + "\n", encoding="utf-8")
    report = render(out, comparison=comparison_of(out))
    print(
        f"done: {run['rows']:,} synthetic rows in {out / 'synthetic.csv'}\n"
        f"the study that was run: {study}\nopen the report in a browser: {report.resolve().as_uri()}"
    )
    tell(texts_of(run))


def comparison_of(directory: Path) -> Mapping[str, Any] | None:
    """What the demo whose results are in `directory` has found out about them; None for any other run."""
    from runner.results.outdir import finished

    try:
        kept = json.loads((directory / COMPARISON).read_text(encoding="utf-8"))
        ours = kept["session"] == finished(directory)["session"]
        return kept["comparison"] if ours else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or of somebody else's making
        return None


def _is_ours(out: Path) -> bool:
    """Whether the run in a directory, finished or not, is a demo's."""
    from runner.results.outdir import RUN, finished

    if (out / RUN).exists():
        return finished(out).get("study") in STUDIES.values()
    return (out / "data" / "study.toml").exists()
