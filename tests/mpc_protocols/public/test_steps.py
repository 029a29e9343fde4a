"""Steps on the wire: what is written is read back, and nothing else is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Level
from mpc_protocols.public.steps import (
    MAX_BYTES,
    MAX_ITEMS,
    MAX_KEYS,
    EndStep,
    MeasureStep,
    PrepareStep,
    SelectStep,
    Step,
    TotalStep,
    parse,
)

F = Fraction
numbers = st.integers(0, 2**32 - 1)
positives = st.fractions(min_value=F(1, 10**30)) | st.floats(1e-300, 1e300).map(F)
names = st.text(min_size=1, max_size=8)
keys = st.integers(0, MAX_KEYS)
handle_lists = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=6, unique=True).map(tuple)


@st.composite
def selections(draw: st.DrawFn) -> SelectStep:
    handles = draw(handle_lists)
    n = len(handles)

    def as_many(values: st.SearchStrategy[object]) -> tuple[object, ...]:
        return tuple(draw(st.lists(values, min_size=n, max_size=n)))

    return SelectStep(
        draw(numbers),
        handles,
        as_many(positives),  # type: ignore[arg-type]
        as_many(st.just(F(0)) | positives),  # type: ignore[arg-type]
        draw(positives),
        as_many(st.integers(0, 2**62 - 1)),  # type: ignore[arg-type]
        tuple(draw(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=3))),
        **draw(st.sampled_from([{}, {"expected": F(3, 2)}, {"expected": F(3, 2), "promised": True}])),
    )


steps: st.SearchStrategy[Step] = st.one_of(
    st.lists(st.lists(names, min_size=1, max_size=4).map(tuple), min_size=1, max_size=5).map(
        lambda c: PrepareStep(tuple(c))
    ),
    selections(),
    st.builds(MeasureStep, numbers, handle_lists, positives, keys),
    st.builds(TotalStep, numbers, positives, keys),
    st.just(EndStep()),
)


@given(steps)
def test_round_trip(step: Step) -> None:
    raw = step.to_bytes()
    assert parse(raw) == step and parse(memoryview(raw)) == step
    assert raw.isascii() and b"\n" not in raw


@given(steps, st.data())
def test_a_changed_byte_gives_another_step_or_none(step: Step, data: st.DataObject) -> None:
    """No two byte strings mean the same step."""
    raw = bytearray(step.to_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        assert parse(bytes(raw)) != step
    except ProtocolAborted as aborted:
        assert aborted.sentence.count("\n") == 0


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_noise_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolAborted):
        parse(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(steps, st.data())
def test_a_field_of_another_type_is_refused(step: Step, data: st.DataObject) -> None:
    body = json.loads(step.to_bytes())
    name = data.draw(st.sampled_from(sorted(body)))
    value = data.draw(json_values)
    if value == body[name] and type(value) is type(body[name]):
        return
    body[name] = value
    raw = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    with suppress(ProtocolAborted):
        assert parse(raw).to_bytes() == raw  # by chance another valid step


MEASURE = b'{"handles":[1,2],"number":3,"sigma2":[9,2],"step":"measure"}'
SELECT = SelectStep(1, (0,), (F(1),), (F(0),), F(1, 2), (7,), (bytes(32),)).to_bytes()


def test_the_encodings_are_fixed() -> None:
    """The wire format itself: changing it is a change of version."""
    assert MeasureStep(3, (1, 2), F(9, 2)).to_bytes() == MEASURE
    assert (
        PrepareStep((("a", "é"), ("b",))).to_bytes()
        == b'{"cliques":[["a","\\u00e9"],["b"]],"step":"prepare"}'
    )
    assert TotalStep(0, F(3)).to_bytes() == b'{"number":0,"sigma2":[3,1],"step":"total"}'
    assert EndStep().to_bytes() == b'{"step":"end"}'
    assert SELECT == (
        b'{"answer_sums":[7],"answers_digests":["'
        + b"0" * 64
        + b'"],"epsilon":[1,2],"handles":[0],"number":1,'
        b'"penalties":[[0,1]],"step":"select","weights":[[1,1]]}'
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'{"step":"nothing"}',
        b'{"step":["end"]}',
        b'{"step":"end"} ',
        b' {"step":"end"}',
        b'{"step":"end","step":"end"}',
        b'{"step":"end","x":1}',
        MEASURE.replace(b"[9,2]", b"[18,4]"),  # not in lowest terms
        MEASURE.replace(b"[9,2]", b"[9,0]"),
        MEASURE.replace(b"[9,2]", b"[9,-2]"),
        MEASURE.replace(b"[9,2]", b"[-9,2]"),
        MEASURE.replace(b"[9,2]", b"[0,1]"),
        MEASURE.replace(b"[9,2]", b"[9.0,2]"),
        MEASURE.replace(b"[9,2]", b"[9,2,1]"),
        MEASURE.replace(b"[9,2]", b"4.5"),
        MEASURE.replace(b"[9,2]", b"[9,%d]" % (1 << 2049)),
        MEASURE.replace(b"[9,2]", b"[%d,1]" % (1 << 1024)),  # no float, so no sentence could show it
        MEASURE.replace(b"[9,2]", b"[" + b"9" * 5000 + b",2]"),
        MEASURE.replace(b"[1,2]", b"[1,1]"),  # a handle twice
        MEASURE.replace(b"[1,2]", b"[]"),
        MEASURE.replace(b"[1,2]", b"[-1]"),
        MEASURE.replace(b"[1,2]", b"[65536]"),
        MEASURE.replace(b"[1,2]", b"[true]"),
        MEASURE.replace(b"[1,2]", b"[1.0]"),
        MEASURE.replace(b"[1,2]", b"[NaN]"),
        MEASURE.replace(b"[1,2]", b"[01]"),
        MEASURE.replace(b"[1,2]", b"[1, 2]"),
        MEASURE.replace(b":3", b":true"),
        MEASURE.replace(b":3", b":-0"),
        MEASURE.replace(b":3", b":4294967296"),
        SELECT.replace(b"[7]", b"[7,7]"),
        SELECT.replace(b"[7]", b"[-7]"),
        SELECT.replace(b"[[0,1]]", b"[[-1,1]]"),
        SELECT.replace(b"[[1,1]]", b"[[0,1]]"),
        SELECT.replace(b"0" * 64, b"0" * 62),
        SELECT.replace(b"0" * 64, b"A" * 64),
        SELECT.replace(b"0" * 64, b"0" * 62 + b" 0"),
        b'{"cliques":[],"step":"prepare"}',
        b'{"cliques":[[]],"step":"prepare"}',
        b'{"cliques":[[1]],"step":"prepare"}',
        b'{"cliques":[[""]],"step":"prepare"}',
        b'{"cliques":["ab"],"step":"prepare"}',
        b'{"cliques":[["' + b"a" * 1025 + b'"]],"step":"prepare"}',
        b'{"cliques":[[' + b",".join([b'"a"'] * 65) + b']],"step":"prepare"}',
        b'{"cliques":' + b"[" * 100_000 + b"]" * 100_000 + b',"step":"prepare"}',
        '{"cliques":[["é"]],"step":"prepare"}'.encode(),
    ],
    ids=lambda raw: f"{len(raw)} bytes",
)
def test_odd_steps_are_refused_in_one_sentence(raw: bytes) -> None:
    with pytest.raises(ProtocolAborted) as aborted:
        parse(raw)
    assert "\n" not in aborted.value.sentence and len(aborted.value.sentence) < 300


def test_equal_rationals_of_a_step_are_read_once() -> None:
    half, third = F(1, 2), F(1, 3)
    step = SelectStep(0, (0, 1, 2), (half, third, half), (F(0),) * 3, F(1), (1, 1, 1), (bytes(32),))
    read = parse(step.to_bytes())
    assert isinstance(read, SelectStep) and read == step and read.weights[0] is read.weights[2]


def test_size_is_limited_before_anything_is_read() -> None:
    with pytest.raises(ProtocolAborted, match="at most"):
        parse(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    "build",
    [
        lambda: PrepareStep(()),
        lambda: PrepareStep((["a"],)),  # type: ignore[arg-type]
        lambda: MeasureStep(0, (0, 0), F(1)),
        lambda: MeasureStep(0, (0,), 1.5),  # type: ignore[arg-type]
        lambda: MeasureStep(True, (0,), F(1)),
        lambda: MeasureStep(0, (0,), F(1, 1 << 2049)),
        lambda: PrepareStep((("a",),), [Level("b", "a", (0,))]),  # type: ignore[arg-type]
        lambda: PrepareStep((("a",),), (Level("b", "a", (0,)),) * (MAX_ITEMS + 1)),
        lambda: PrepareStep((("a",),), (Level("b" * 1025, "a", (0,)),)),
        lambda: PrepareStep((("a",),), (Level("b", "a" * 1025, (0,)),)),
        lambda: TotalStep(0, F(0)),
        lambda: SelectStep(0, (0, 1), (F(1),), (F(1),), F(1), (1,), (bytes(32),)),
        lambda: SelectStep(0, (0,), (F(1),), (F(1),), F(1), (1,), ()),
        lambda: SelectStep(0, (0,), (F(1),), (F(1),), F(1), (1,), (bytes(31),)),
        lambda: SelectStep(0, (0,), (F(1),), (F(1),), F(1), (1,), (bytes(32),), promised=True),
        lambda: SelectStep(0, (0,), (F(1),), (F(1),), F(1), (1,), (bytes(32),), 1, (), F(1), 1),  # type: ignore[arg-type]
        lambda: SelectStep(0, (0,), (F(1),), (F(1),), F(1), (1,), bytes(32)),  # type: ignore[arg-type]
    ],
)
def test_steps_are_validated_where_they_are_built(build: Callable[[], Step]) -> None:
    with pytest.raises(ValueError):
        build()
