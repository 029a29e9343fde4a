"""`Synthesizer` as users of scikit-learn and SDV expect it: parameters, clones, files, metadata; no data in
any of them."""

from __future__ import annotations

import copy
import datetime
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cosynth import CosynthError, Synthesizer
from mpc_protocols.errors import StudyInvalid, UsageError
from runner.api import saved

COLUMNS = {"age": {"kind": "integer", "low": 0, "high": 99, "bins": 5}, "sick": {"kind": "boolean"}}
ODD = 71.0


def table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(0, 60, rows)
    age[0] = ODD
    return pd.DataFrame({"age": age, "sick": rng.random(rows) < 0.5})


def unfitted(**params: Any) -> Synthesizer:
    return Synthesizer(COLUMNS, **{"epsilon": 4.0, "delta": 1e-6, "aim": {"rounds": 2}, **params})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSYNTH_LEDGER", str(tmp_path_factory.mktemp("habits") / "ledger.db"))
        return unfitted().fit(table())


def test_parameters_are_the_objects_that_were_given_and_make_the_same_synthesizer_again() -> None:
    """What a clone of scikit-learn does and checks."""
    first = unfitted()
    params = first.get_params(deep=False)
    assert params["columns"] is COLUMNS and params["aim"] == {"rounds": 2} and params["workload"] is None
    copies = {name: copy.deepcopy(value) for name, value in params.items()}
    second = Synthesizer(**copies)
    again = second.get_params(deep=False)
    assert all(again[name] is value for name, value in copies.items())
    assert again == params and second.study.to_toml() == first.study.to_toml()


def test_set_params_changes_a_parameter_or_one_of_a_table_and_returns_itself() -> None:
    tables = {"rounds": 2}
    synthesizer = unfitted(aim=tables)
    assert synthesizer.set_params(epsilon=1.5, aim__rounds=5) is synthesizer
    assert synthesizer.get_params()["aim__rounds"] == 5 and float(synthesizer.study.privacy.epsilon) == 1.5
    assert tables == {"rounds": 2}, "what was given is not altered"
    assert synthesizer.set_params() is synthesizer


@pytest.mark.parametrize(
    "wrong", [{"epsilon": -1}, {"epsilonn": 2}, {"aim__roundz": 5}, {"algorithm": "none"}, {"columns": {}}]
)
def test_a_wrong_parameter_is_one_sentence_and_changes_nothing(wrong: dict[str, Any]) -> None:
    synthesizer = unfitted()
    before = synthesizer.get_params()
    with pytest.raises(StudyInvalid) as refused:
        synthesizer.set_params(**wrong)
    assert "\n" not in refused.value.sentence and refused.value.sentence.endswith(".")
    assert synthesizer.get_params() == before and synthesizer.study.to_toml() == unfitted().study.to_toml()


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [({"epsilom": 2}, "epsilon"), ({"algoritm": "aim"}, "algorithm"), ({"aim__round": 5}, "rounds")],
)
def test_a_mistyped_parameter_is_answered_by_the_one_that_was_meant(
    wrong: dict[str, Any], meant: str
) -> None:
    with pytest.raises(StudyInvalid, match=rf'did you mean "{meant}"'):
        unfitted().set_params(**wrong)
    if "aim__round" not in wrong:
        with pytest.raises(StudyInvalid, match=rf'did you mean "{meant}"'):
            unfitted(**wrong)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"epsilon": 100}, "epsilon"),
        ({"max_rows": 500, "delta": 0.1}, "delta"),
        ({"adjacency": "replace"}, "adjacency"),
    ],
)
def test_a_parameter_is_not_changed_by_a_table_behind_its_back(table: dict[str, Any], key: str) -> None:
    """What `get_params` says of epsilon is what is spent."""
    with pytest.raises(StudyInvalid, match=rf"\[privacy\] {key} is a parameter of its own"):
        unfitted(privacy=table)
    with pytest.raises(StudyInvalid, match="parameter of its own"):
        unfitted().set_params(**{f"privacy__{name}": value for name, value in table.items()})
    assert unfitted(privacy={"max_rows": 500}).study.privacy.max_rows == 500


def test_fitted_attributes_are_there_after_fit_alone(fitted: Synthesizer) -> None:
    assert list(fitted.feature_names_in_) == ["age", "sick"] and fitted.n_features_in_ == 2
    assert fitted.__sklearn_is_fitted__() and not unfitted().__sklearn_is_fitted__()
    assert not hasattr(unfitted(), "feature_names_in_")
    assert "not fitted" not in repr(fitted)


def test_a_label_apart_is_refused() -> None:
    with pytest.raises(UsageError, match="into the frame"):
        unfitted().fit(table(), [1, 0])  # type: ignore[arg-type]


def test_nothing_that_a_synthesizer_holds_has_a_row_of_the_table(fitted: Synthesizer) -> None:
    """Not even of an odd one: parameters are as before, and attributes are the study and the run's public
    facts."""
    assert fitted.get_params() == unfitted().get_params()
    assert set(vars(fitted)) == {"_params", "study", "_run"}
    assert not any(isinstance(value, pd.DataFrame) for value in vars(fitted).values())


def test_what_is_saved_opens_as_the_same_synthesizer_and_holds_released_files_alone(
    fitted: Synthesizer, tmp_path: Path
) -> None:
    file = fitted.save(tmp_path / "people.synth")
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    assert names == {
        *("params.toml", "run.json", "model.npz", "synthetic.csv", "measurements.json", "report.html")
    }
    opened = Synthesizer.load(file)
    assert opened.sample(50, seed=1).equals(fitted.sample(50, seed=1))
    given = {name: value for name, value in fitted.get_params().items() if value is not None}
    assert {name: value for name, value in opened.get_params().items() if value is not None} == given
    assert opened.study.to_toml() == fitted.study.to_toml()
    assert opened.run.synthetic.equals(fitted.run.synthetic)
    with pytest.raises(UsageError, match="already"):
        fitted.save(file)
    with pytest.raises(UsageError, match="call fit first"):
        unfitted().save(tmp_path / "none.synth")
    assert not (tmp_path / "none.synth").exists()


def test_dates_among_the_columns_are_saved(tmp_path: Path, fitted: Synthesizer) -> None:
    day = {
        "kind": "date",
        "low": datetime.date(2000, 1, 1),
        "high": datetime.date(2009, 12, 31),
        "step": "year",
    }
    synthesizer = Synthesizer({"day": day}, epsilon=1.0)
    synthesizer._run = fitted.run  # the file's parameters are what this is about
    assert Synthesizer.load(synthesizer.save(tmp_path / "days.synth")).get_params()["columns"] == {"day": day}


def test_a_file_that_is_none_of_ours_is_refused_and_writes_nowhere_else(
    tmp_path: Path, fitted: Synthesizer
) -> None:
    whole = fitted.save(tmp_path / "whole.synth").read_bytes()
    broken = {"missing.synth": None, "text.synth": b"hello", "cut.synth": whole[: len(whole) // 2]}
    for name, content in broken.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError):
            Synthesizer.load(tmp_path / name)
    evil = tmp_path / "evil.synth"
    with zipfile.ZipFile(evil, "w") as archive:
        archive.writestr("../outside.txt", "x")
        for name in ("params.toml", "run.json", "model.npz", "synthetic.csv"):
            archive.writestr(name, "{}")
    with pytest.raises(UsageError):
        Synthesizer.load(evil)
    assert not (tmp_path / "outside.txt").exists() and not (tmp_path.parent / "outside.txt").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b'{"parties": []}'),
        ("run.json", b'{"parties": [], "rows": "many", "columns": 5}'),
        ("run.json", b"[" * 100_000),
        ("params.toml", b"[params]\na = " + b"[" * 20_000 + b"]" * 20_000),
        ("params.toml", b"params = [1]"),
    ],
)
def test_a_saved_file_with_a_member_of_another_kind_is_refused(
    tmp_path: Path, fitted: Synthesizer, name: str, content: bytes
) -> None:
    with zipfile.ZipFile(fitted.save(tmp_path / "whole.synth")) as whole:
        members = {member: whole.read(member) for member in whole.namelist()}
    with zipfile.ZipFile(tmp_path / "odd.synth", "w") as odd:
        for member, its in {**members, name: content}.items():
            odd.writestr(member, its)
    with pytest.raises(UsageError, match=r"odd\.synth is no saved synthesizer, or it is damaged"):
        Synthesizer.load(tmp_path / "odd.synth")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_saved_file_with_bytes_that_cannot_be_unpacked_is_refused(
    tmp_path: Path, fitted: Synthesizer, method: int
) -> None:
    file = tmp_path / "odd.synth"
    with zipfile.ZipFile(file, "w", method) as odd:
        for member in ("run.json", "model.npz", "synthetic.csv", "params.toml"):
            odd.writestr(member, b"x" * 5_000)
    content = bytearray(file.read_bytes())
    content[45:60] = bytes(byte ^ 0x5A for byte in content[45:60])
    file.write_bytes(content)
    with pytest.raises(UsageError, match="no saved synthesizer"):
        Synthesizer.load(file)


def test_parameters_that_unpack_to_more_than_any_has_are_not_read(
    tmp_path: Path, fitted: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fitted.save(tmp_path / "whole.synth")
    monkeypatch.setattr(saved, "MAX_PARAMS", 10)
    with pytest.raises(UsageError, match=r"a params\.toml of more than 10 bytes"):
        Synthesizer.load(file)


@pytest.mark.parametrize("place", ["columns", "workload", "aim", "aim__rounds", "columns__age", "name"])
def test_rows_given_for_a_parameter_are_not_told_to_anybody(place: str) -> None:
    synthesizer = unfitted()
    for rows in (table(), table().age, table().age.to_numpy()):
        with pytest.raises(StudyInvalid) as refused:
            synthesizer.set_params(**{place: rows})
        assert "71" not in refused.value.sentence and type(rows).__name__ in refused.value.sentence
    assert synthesizer.get_params() == unfitted().get_params()


def test_a_part_of_a_parameter_that_is_no_table_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="epsilon is no table"):
        unfitted().set_params(epsilon__rounds=3)
    assert unfitted().set_params(workload__degree=2).get_params()["workload"] == {"degree": 2}


METADATA = {
    "tables": {
        "people": {
            "primary_key": "who",
            "columns": {
                "who": {"sdtype": "id"},
                "mail": {"sdtype": "email", "pii": True},
                "age": {"sdtype": "numerical", "computer_representation": "Int64"},
                "sick": {"sdtype": "boolean"},
                "grade": {"sdtype": "categorical", "order": ["low", "mid", "top"]},
                "work": {"sdtype": "categorical"},
            },
        }
    },
    "relationships": [],
    "METADATA_SPEC_VERSION": "V1",
}
LIMITS: dict[str, Any] = {"age": {"low": 0, "high": 99}, "work": {"values": ["yes", "no"]}}


def test_sdv_s_metadata_and_public_limits_make_the_columns() -> None:
    synthesizer = Synthesizer.from_metadata(METADATA, LIMITS, epsilon=1.0)
    assert synthesizer.get_params()["columns"] == {
        "age": {"kind": "integer", "low": 0, "high": 99},
        "sick": {"kind": "boolean"},
        "grade": {"kind": "categorical", "values": ["low", "mid", "top"]},
        "work": {"kind": "categorical", "values": ["yes", "no"]},
    }
    single = METADATA["tables"]["people"]  # type: ignore[index]
    bare = Synthesizer.from_metadata(single, {**LIMITS, "age": 10}, epsilon=1.0).get_params()
    assert bare["columns"]["age"] == 10


@pytest.mark.parametrize(
    ("metadata", "limits", "sentence"),
    [
        (METADATA, {}, "do not say low and high of the column 'age'"),
        (METADATA, {"age": {"low": 0, "high": 9}}, "do not say values of the column 'work'"),
        (METADATA, {**LIMITS, "wage": 3}, "'wage', which the metadata do not have"),
        ({"tables": {"a": {}, "b": {}}}, {}, "2 tables"),
        ({"columns": {}}, {}, "no columns"),
        ("metadata.json", {}, "no columns"),
        ({"columns": {"who": {"sdtype": "id"}}}, {}, "alone"),
        ({"columns": {"who": {"sdtype": ["x"]}}}, {}, "alone"),
        (METADATA, ["age"], "Limits map a column's name"),
        (METADATA, {**LIMITS, "age": [0, 99]}, "limits of the column 'age' are its size or a table"),
    ],
)
def test_metadata_that_say_too_little_are_one_sentence(metadata: Any, limits: Any, sentence: str) -> None:
    with pytest.raises(CosynthError, match=re.escape(sentence)):
        Synthesizer.from_metadata(metadata, limits, epsilon=1.0)
