"""Make a table for the demo: R. Fair's survey (statsmodels' `fair`, public domain), through Cosynth itself.

    python -m release.demo_table FILE.csv.gz

Three party processes compute on shares (`replicated`) and the table that they release is what ships
(`runner/starting/demo/README.md`). Its noise is fresh: every call makes another table. Prints how near it is
to the survey.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import pandas as pd
from statsmodels.datasets import fair

from runner.launch.launcher import launch
from runner.launch.ports import free_ports
from runner.starting.demo import tables
from runner.study import load
from synth.judgement.metrics import workload_error

EDUCATION = dict(zip((9, 12, 14, 16, 17, 20), tables.EDUCATION, strict=True))
"""By years of school, which is how the survey has it."""
PROMISE = {"epsilon = 1.0": "epsilon = 4.0", 'adjacency = "add-remove"': 'adjacency = "replace"'}
"""Where the study differs from the demo's own."""


def survey() -> pd.DataFrame:
    """The survey, one row a person, in the words of the demo's domain."""
    raw = fair.load_pandas().data
    return pd.DataFrame(
        {
            "marriage": [tables.RATING[int(v) - 1] for v in raw["rate_marriage"]],
            "age": raw["age"].astype(int),  # under 20 is 17.5 in the source
            "years_married": raw["yrs_married"],
            "children": ["5 or more" if v > 5 else str(int(v)) for v in raw["children"]],
            "religious": [tables.RELIGIOUS[int(v) - 1] for v in raw["religious"]],
            "education": [EDUCATION[int(v)] for v in raw["educ"]],
            "occupation": [tables.OCCUPATION[int(v) - 1] for v in raw["occupation"]],
            "husband_occupation": [tables.OCCUPATION[int(v) - 1] for v in raw["occupation_husb"]],
            "affair": ["yes" if v > 0 else "no" for v in raw["affairs"]],
        }
    )


def main(target: Path) -> None:
    """Run the survey through Cosynth and write its table. Raises `CosynthError`, `OSError`."""
    rows = survey()
    with tempfile.TemporaryDirectory(prefix="cosynth-") as name:
        study = tables.prepare(Path(name), free_ports(len(tables.CUSTODIANS)), people=rows)
        text = study.read_text(encoding="utf-8")
        for demos, ours in PROMISE.items():
            if demos not in text:
                raise SystemExit(f"The demo's study has no `{demos}` any more; correct PROMISE.")
            text = text.replace(demos, ours)
        study.write_text(text, encoding="utf-8")
        os.environ["COSYNTH_LEDGER"] = str(
            Path(name) / "ledger.db"
        )  # the survey is public: no account of anybody's
        run = launch(study, Path(name) / "out")
        written = (Path(name) / "out" / "synthetic.csv").read_bytes()
        domain, cliques = load(study).domain, load(study).workload.cliques
    target.write_bytes(gzip.compress(written, 9, mtime=0))
    made = tables.survey(target)
    distance = workload_error(tables.coded(rows, domain), tables.coded(made, domain), domain, cliques)
    print(
        f"{target}: {len(made):,} people, SHA-256 of the table {hashlib.sha256(written).hexdigest()}\n"
        f"version {run['version']}, session {run['session']}\n"
        f"mean L1 distance of the pairs of columns {distance:.3f}; an affair: "
        f"{(made['affair'] == 'yes').mean():.1%} here, {(rows['affair'] == 'yes').mean():.1%} in the survey"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
