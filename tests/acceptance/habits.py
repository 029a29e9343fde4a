"""`Synthesizer` beside SDV's and SmartNoise's: the same six lines, times and quality; and scikit-learn's own
functions on it.

    make habits                              all on the demo's survey
    python -m tests.acceptance.habits --python INTERPRETER [--only sdv,aim,mst,sklearn]

The table is that of the demo (`runner/starting/demo/README.md`); nine tenths are fitted, one tenth is looked
at besides. The error is the mean total variation distance of all one- and two-way marginals, numbers in the
study's bins, from the rows that were fitted; "other rows" is that of the tenth, which no synthesizer is
expected to beat by much. SDV's Gaussian copula is not private. Limits and categories are given to ours and
SmartNoise's and read off the rows by SDV's. Seconds are CPU seconds of the fitting process, ours with the
processes it starts. Not a test: figures. What cannot be imported is named and left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cosynth import Synthesizer
from runner.starting.demo import survey

SIDE = Path(__file__).with_name("habits_side.py")
ROOT = Path(__file__).resolve().parents[2]
NUMBERS = {"age": (15, 45, 6), "years_married": (0, 24, 8)}
"""Of the study of the demo: low, high, bins."""
DELTA, SEED = 1e-9, 5
LIMIT_S = 600.0
"""For another synthesizer: SmartNoise's AIM may not end."""


def columns(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Of the demo's study, whose limits and categories are public."""
    found: dict[str, dict[str, Any]] = {}
    for name in frame.columns:
        if name in NUMBERS:
            low, high, bins = NUMBERS[name]
            found[name] = {"kind": "numeric", "low": low, "high": high, "bins": bins}
            if name == "age":
                found[name]["integral"] = True
        else:
            found[name] = {"kind": "categorical", "values": sorted(map(str, frame[name].unique()))}
    return found


def coded(frame: pd.DataFrame, study: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Numbers as the study's bins, everything as text."""
    made = {}
    for name in study:
        if name in NUMBERS:
            low, high, bins = NUMBERS[name]
            width = (high + (name == "age") - low) / bins
            places = np.floor((frame[name].to_numpy(float) - low) / width)
            made[name] = np.clip(places, 0, bins - 1).astype(int).astype(str)
        else:
            made[name] = frame[name].astype(str).to_numpy()
    return pd.DataFrame(made)


def errors(real: pd.DataFrame, other: pd.DataFrame) -> tuple[float, float]:
    """Mean total variation distance of the one-way and of the two-way marginals of coded tables."""
    found = []
    for degree in (1, 2):
        distances = [
            float(
                real.value_counts(list(names), normalize=True)
                .sub(other.value_counts(list(names), normalize=True), fill_value=0)
                .abs()
                .sum()
            )
            / 2
            for names in combinations(real.columns, degree)
        ]
        found.append(sum(distances) / len(distances))
    return found[0], found[1]


def cpu_s() -> float:
    """Of this process and those it has started and ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def ours(folder: Path, train: pd.DataFrame, study: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """The six lines, ours."""
    began = cpu_s()
    synthesizer = Synthesizer(study, epsilon=epsilon, delta=DELTA)
    synthesizer.fit(train, ledger={"file": str(folder / "ledger.db")})
    fitted = cpu_s()
    synthetic = synthesizer.sample(len(train), seed=SEED)
    synthesizer.save(folder / "ours.synth")
    Synthesizer.load(folder / "ours.synth").sample(1)
    said = {"fit_s": fitted - began, "sample_s": cpu_s() - fitted}
    synthetic.to_csv(folder / "ours.csv", index=False)
    return said


def side(python: Path, *arguments: object) -> dict[str, Any] | None:
    """What another interpreter says; None if it could not, or not in time."""
    try:
        ended = subprocess.run(
            [python, SIDE, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        print(f"{arguments[0]}: left out (it took longer than {LIMIT_S:g} s)")
        return None
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
        print(f"{arguments[0]}: left out ({reason})")
        return None
    said: dict[str, Any] = json.loads(lines[-1])
    return said


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with sdv and scikit-learn")
    parser.add_argument("--smartnoise", type=Path, help="one with smartnoise-synth (default: the same)")
    parser.add_argument("--only", default="sdv,aim,mst,sklearn")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    frame = survey().sample(frac=1, random_state=SEED).reset_index(drop=True)
    cut = len(frame) * 9 // 10
    train, rest = frame[:cut], frame[cut:]
    study = columns(frame)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "train.csv", index=False)
        settings = {"epsilon": options.epsilon, "delta": DELTA, "study": study, "columns": study}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        told: dict[str, dict[str, Any] | None] = {"ours": ours(folder, train, study, options.epsilon)}
        for other in options.only.split(","):
            if other == "sdv":
                told["sdv"] = side(options.python, "sdv", folder)
                if told["sdv"] is not None:
                    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
                    limits = {
                        name: {key: value for key, value in column.items() if key != "kind"}
                        for name, column in study.items()
                    }
                    same = Synthesizer.from_metadata(metadata, limits, epsilon=options.epsilon)
                    print(
                        f"SDV's metadata and public limits make {len(same.get_params()['columns'])} columns"
                    )
            elif other == "sklearn":
                said = side(options.python, "sklearn", folder, ROOT)
                print(
                    f"scikit-learn {said['version']}: clone, parameters, pipeline, tags agree" if said else ""
                )
            else:
                told[other] = side(options.smartnoise or options.python, "smartnoise", folder, other)
        real = coded(train, study)
        print(f"\n{len(train)} rows, {len(study)} columns, epsilon {options.epsilon:g}, delta {DELTA:g}")
        print(f"{'':34}{'1-way':>8}{'2-way':>8}{'fit s':>8}{'rest s':>8}")
        for who, figures in told.items():
            if figures is not None:
                one, two = errors(real, coded(pd.read_csv(folder / f"{who}.csv"), study))
                title = {"ours": "Cosynth", "sdv": f"SDV {figures.get('version')}, not private"}.get(
                    who, f"SmartNoise {figures.get('version')}, {who}"
                )
                print(f"{title:34}{one:8.4f}{two:8.4f}{figures['fit_s']:8.1f}{figures['sample_s']:8.1f}")
        one, two = errors(real, coded(rest, study))
        print(f"{'other rows':34}{one:8.4f}{two:8.4f}")
        rng = np.random.default_rng(SEED)
        apart = pd.DataFrame({name: rng.permutation(values.to_numpy()) for name, values in real.items()})
        one, two = errors(real, apart)
        print(f"{'columns without a relation':34}{one:8.4f}{two:8.4f}")


if __name__ == "__main__":
    main()
