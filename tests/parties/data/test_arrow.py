"""Arrow's buffers read as NumPy arrays: against Arrow's own conversion to Python, whatever the offset; and
what is not loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parties.data.files.arrow import entries, present, truths
from tests.parties.data.tables import write_csv, write_parquet


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float64()])
@settings(deadline=None)  # the first array loads pandas
@given(
    values=st.lists(st.none() | st.integers(0, 100), max_size=40),
    start=st.integers(0, 20),
    length=st.integers(0, 30),
)
def test_numbers_and_what_is_null(
    kind: pa.DataType, values: list[int | None], start: int, length: int
) -> None:
    array = pa.array(values, kind).slice(start, length)
    known = present(array)
    found = entries(array, np.float64 if kind == pa.float64() else str(kind))
    assert [
        int(entry) if there else None for entry, there in zip(found, known, strict=True)
    ] == array.to_pylist()


@settings(deadline=None)  # the first array loads pandas
@given(
    values=st.lists(st.none() | st.booleans(), max_size=40),
    start=st.integers(0, 20),
    length=st.integers(0, 30),
)
def test_truth_values(values: list[bool | None], start: int, length: int) -> None:
    array = pa.array(values, pa.bool_()).slice(start, length)
    pairs = zip(truths(array), present(array), strict=True)
    assert [bool(entry) if there else None for entry, there in pairs] == array.to_pylist()


def test_arrays_without_a_value() -> None:
    for array in (pa.array([], pa.int64()), pa.nulls(3), pa.nulls(3, pa.int64()), pa.nulls(3, pa.string())):
        assert not present(array).any() and len(present(array)) == len(array)


def test_counting_a_table_loads_no_pandas(tmp_path: Path) -> None:
    """A party's start-up: half of its seconds went there."""
    texts = {"a": ["1", "2.5", ""], "b": ["x", "", "y"], "c": ["0", "1", "1"], "who": ["p", "q", "p"]}
    typed: dict[str, list[object]] = {
        "a": [1.0, 2.5, None],
        "b": ["x", None, "y"],
        "c": [0, 1, 1],
        "who": [7, 8, 7],
    }
    files = [
        str(write_csv(tmp_path / "t.csv", texts).path),
        str(write_parquet(tmp_path / "t.parquet", typed).path),
    ]
    code = f"""if True:
        import sys
        from parties.data.counting.local_marginals import count
        from parties.data.location import locate
        from parties.data.linked.opening import open_source
        from synth.domain import Categorical, Codes, Domain, Numeric
        domain = Domain(("a", "b", "c"), (Numeric(0, 3, 3, missing=True), Categorical(("x", "y"), missing=True), Codes(2)))
        for path in {files}:
            with open_source(locate(path)) as source:
                print(count(source, domain, [("a", "b")], max_rows=5, unit=("who", 2)).counts([("b",)])[0].tolist())
        print([name for name in ("pandas", "networkx") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[1, 1, 1]", "[1, 1, 1]", "[]"]
