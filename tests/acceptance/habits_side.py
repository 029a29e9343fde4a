"""SDV, SmartNoise or scikit-learn on a file: run by an interpreter that has them and none of our environment
(`habits.py`).

python habits_side.py sdv FOLDER                   SDV's Gaussian copula, not private
python habits_side.py smartnoise FOLDER METHOD     SmartNoise's METHOD (aim, mst) at the settings of FOLDER/settings.json
python habits_side.py sklearn FOLDER ROOT          scikit-learn's own functions on the `Synthesizer` of ROOT, unfitted and saved
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd


def sdv(folder: Path) -> None:
    """The six lines, SDV's."""
    metadata_of: Any = importlib.import_module("sdv.metadata").Metadata
    kind: Any = importlib.import_module("sdv.single_table").GaussianCopulaSynthesizer
    train = pd.read_csv(folder / "train.csv")
    began = time.process_time()
    metadata = metadata_of.detect_from_dataframes({"people": train})
    synthesizer = kind(metadata)
    synthesizer.fit({"people": train})
    fitted = time.process_time()
    synthetic = synthesizer.sample(len(train))
    synthesizer.save(str(folder / "sdv.pkl"))
    importlib.import_module("sdv.utils").load_synthesizer(str(folder / "sdv.pkl")).sample(1)
    frame = synthetic["people"] if isinstance(synthetic, dict) else synthetic
    frame.to_csv(folder / "sdv.csv", index=False)
    (folder / "metadata.json").write_text(json.dumps(metadata.to_dict()), encoding="utf-8")
    say(importlib.import_module("sdv").__version__, began, fitted)


def smartnoise(folder: Path, method: str) -> None:
    """The six lines, SmartNoise's; the columns' limits are given to its transformer, as they are to ours."""
    kind: Any = importlib.import_module("snsynth").Synthesizer
    transformers: Any = importlib.import_module("snsynth.transform")
    train = pd.read_csv(folder / "train.csv")
    settings: dict[str, Any] = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    parts = [
        transformers.BinTransformer(bins=column["bins"], lower=column["low"], upper=column["high"])
        if "low" in column
        else transformers.LabelTransformer()
        for column in settings["columns"].values()
    ]
    began = time.process_time()
    synthesizer = kind.create(method, epsilon=settings["epsilon"], delta=settings["delta"])
    synthesizer.fit(train, transformer=transformers.TableTransformer(parts), preprocessor_eps=0.0)
    fitted = time.process_time()
    synthetic = synthesizer.sample(len(train))
    synthetic.to_csv(folder / f"{method}.csv", index=False)
    say(importlib.import_module("importlib.metadata").version("smartnoise-synth"), began, fitted)


def sklearn(folder: Path, root: str) -> None:
    """What scikit-learn's own functions make of a `Synthesizer`: clone, tags, pipelines, whether it is
    fitted."""
    sys.path.insert(0, root)
    base: Any = importlib.import_module("sklearn.base")
    validation: Any = importlib.import_module("sklearn.utils.validation")
    pipelines: Any = importlib.import_module("sklearn.pipeline")
    ours: Any = importlib.import_module("cosynth").Synthesizer
    settings: dict[str, Any] = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    first = ours(settings["study"], epsilon=1.0, mosaic={"rounds": 3})
    copy = base.clone(first)
    assert copy is not first and copy.get_params() == first.get_params()
    assert base.clone(first.set_params(mosaic__rounds=4)).get_params()["mosaic__rounds"] == 4
    pipeline = pipelines.Pipeline([("synthesizer", copy)])
    assert pipeline.set_params(synthesizer__epsilon=2.5) and float(copy.study.privacy.epsilon) == 2.5
    assert base.clone(pipeline).get_params()["synthesizer__epsilon"] == 2.5
    assert not importlib.import_module("sklearn.utils").get_tags(copy).target_tags.required
    try:
        validation.check_is_fitted(copy)
    except importlib.import_module("sklearn.exceptions").NotFittedError:
        pass
    else:
        raise AssertionError("a synthesizer that has seen nothing counts as fitted")
    opened = ours.load(folder / "ours.synth")
    validation.check_is_fitted(opened)
    assert base.clone(opened)._run is None, "a clone is not fitted"
    say(importlib.import_module("sklearn").__version__, 0.0, 0.0)


def say(version: str, began: float, fitted: float) -> None:
    """A JSON line: version, CPU seconds of fitting and of the rest."""
    now = time.process_time()
    print(json.dumps({"version": version, "fit_s": fitted - began, "sample_s": now - fitted}))


if __name__ == "__main__":
    task: Any = {"sdv": sdv, "smartnoise": smartnoise, "sklearn": sklearn}[sys.argv[1]]
    task(Path(sys.argv[2]), *sys.argv[3:])
