"""The release on the wire: it is read back as it was written, and whatever else a leader sends is a
`ProtocolAborted`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Event, Level
from runner.results.release import Release, parse
from synth.domain import Domain
from synth.mrf import Measurement, fit
from synth.prior.inheritance import Verdict
from synth.synthesis import Measured

DOMAIN = Domain.from_spec({"file": {"a": 3, "b": 4}})
VALUES = np.array([5, -1, 2])
COARSE = np.array([3, 1, 0, 0, 1, 1])
HALVES = Level("b/2", "b", (0, 1, 1, 0))
MODEL = fit(
    DOMAIN.sizes,
    [
        Measurement(("a",), VALUES.astype(np.float64), 1.5),
        Measurement(("a", "b/2"), COARSE.astype(np.float64), 5.0),
    ],
    total=6.0,
    warm_start=None,
    levels={"b/2": HALVES},
    iterations=5,
)
RELEASE = Release(
    np.array([[0, 3], [2, 1]], np.uint8),
    MODEL.to_bytes(),
    (Measured(("a",), Fraction(3, 2), 0, VALUES), Measured(("a", "b/2"), Fraction(5), 1, COARSE, (HALVES,))),
    (("a", "b/2"), (), ("b",)),
    6.25,
    7,
    (
        Event("measure", Fraction(1, 3), Fraction(1, 10**20), {"cliques": [["a"]], "sigma2": "3/2"}),
        *(
            Event("select", Fraction(1, 9), Fraction(0), {"candidates": 4, "pick": pick, "picks": 3})
            for pick in (1, 2, 3)
        ),
        Event("measure", Fraction(1, 10), Fraction(0), {"cliques": [["a", "b/2"]], "sigma2": ["5/1"]}),
    ),
    0.25,
    (HALVES,),
)
WHOLE = RELEASE.to_bytes(DOMAIN)
SIZE = int.from_bytes(WHOLE[:4], "big")
ODD: list[Any] = [
    0,
    1,
    -1,
    True,
    None,
    "",
    "a",
    [],
    {},
    [1, 0],
    [0, 0],
    [-1, 2],
    [1, 2.5],
    1e308,
    float("inf"),
    float("nan"),
    2**70,
    -(2**70),
    10**4000,
    [10**400, 1],
    [[]],
    [["a"], 3, 0, 0],
    ["b/2", "b", [0, 1, 1, 0]],
    [0, 0, 1, 1],
    "b/2",
    "1e999999999",
]


def with_header(change: Callable[[dict[str, Any]], object]) -> memoryview:
    header = json.loads(WHOLE[4 : 4 + SIZE])
    change(header)
    text = json.dumps(header).encode()
    return memoryview(len(text).to_bytes(4, "big") + text + WHOLE[4 + SIZE :])


def read(payload: memoryview, rows: int = 2) -> Release:
    return parse(payload, DOMAIN, rows, "south")


def test_what_was_written_is_read() -> None:
    found = read(memoryview(WHOLE))
    np.testing.assert_array_equal(found.codes, RELEASE.codes)
    np.testing.assert_array_equal(found.measurements[0].values, VALUES)
    assert (found.model, found.events) == (RELEASE.model, RELEASE.events)
    assert (found.selections, found.levels, found.noise_share) == (RELEASE.selections, (HALVES,), 0.25)
    assert found.selected == (("a", "b"), ("b",)) and found.bins(found.picked[0]) == {"b": 2}
    coarse = found.measurements[1]
    assert (coarse.clique, coarse.columns) == (("a", "b/2"), ("a", "b"))
    assert coarse.bins == {"b": HALVES.bins} and coarse.shape(DOMAIN.sizes) == (3, 2)
    np.testing.assert_array_equal(coarse.values, COARSE)
    assert (found.noisy_total, found.decode_seed, found.measurements[0].sigma2) == (6.25, 7, Fraction(3, 2))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("more rows than the study allows", lambda header: header.update(rows=3)),
        ("a rho without denominator", lambda header: header["events"][0].update(rho=[1, 0])),
        (
            "a negative rho, which would lower a contributor's ledger",
            lambda header: header["events"][0].update(rho=[-1, 2]),
        ),
        (
            "clients' choices that were not measured",
            lambda header: [
                each.update(what="choices") for each in header["events"] if each["what"] == "select"
            ],
        ),
        ("a negative beta", lambda header: header["events"][0].update(beta=[-1, 2])),
        ("a rho beyond floats", lambda header: header["events"][0].update(rho=[2**1024, 1])),
        (
            "a detail that stands for the charge in run.json",
            lambda header: header["events"][0]["detail"].update(rho=0),
        ),
        ("noise of variance 0", lambda header: header["measurements"][0].__setitem__(1, 0)),
        ("a negative seed, which no generator takes", lambda header: header.update(decode_seed=-1)),
        ("an endless seed", lambda header: header.update(decode_seed=2**64)),
        ("a total that is no number", lambda header: header.update(noisy_total=float("nan"))),
        ("a total in words", lambda header: header.update(noisy_total="6.25")),
        ("a key that nobody knows", lambda header: header.update(zzz=1)),
        ("a model cut short", lambda header: header.update(model=header["model"] - 1)),
        ("levels that the model needs", lambda header: header.update(levels=[])),
        ("bins of too few values", lambda header: header["levels"][0][2].pop()),
        ("a bin that is no number", lambda header: header["levels"][0][2].__setitem__(0, True)),
        ("bins with a gap", lambda header: header["levels"][0].__setitem__(2, [0, 2, 2, 0])),
        ("other bins than the model's", lambda header: header["levels"][0].__setitem__(2, [0, 0, 1, 1])),
        ("a level named like a column", lambda header: header["levels"].append(["a", "b", [0, 0, 1, 1]])),
        ("a level of no column", lambda header: header["levels"].append(["c/2", "c", [0, 1]])),
        ("a level twice", lambda header: header["levels"].append(header["levels"][0])),
        (
            "more levels of a column than a run may have, of which each holds a list of all before it",
            lambda header: (
                header["levels"].extend(["b/2" + "'" * n, "b", [0, 1, 1, 0]] for n in range(1, 17)),
                header["selections"].extend(["b/2" + "'" * n] for n in range(1, 17)),
                header["events"].extend([header["events"][1]] * 16),
            ),
        ),
        ("a level that nothing names", lambda header: header["levels"].append(["b/3", "b", [0, 1, 1, 2]])),
        ("a column at two levels", lambda header: header["selections"].__setitem__(2, ["b", "b/2"])),
        ("an unknown level", lambda header: header["selections"].__setitem__(2, ["b/3"])),
        ("a selection too many", lambda header: header["selections"].append(["b"])),
        ("a selection too few", lambda header: header["selections"].pop()),
        ("a measurement of another pick", lambda header: header["measurements"][1].__setitem__(3, 2)),
        ("a round after all", lambda header: header["measurements"][1].__setitem__(3, 4)),
        (
            "a marginal at a resolution that nobody charged",
            lambda header: header["events"][4]["detail"].update(cliques=[["a", "b"]]),
        ),
        ("less noise than was charged", lambda header: header["measurements"][1].__setitem__(1, 4)),
        ("a charge without its marginal", lambda header: header["measurements"].pop()),
        ("a share beyond reason", lambda header: header.update(noise_share=1e9)),
    ],
)
def test_refused(what: str, change: Callable[[dict[str, Any]], object]) -> None:
    read(with_header(lambda header: None))  # the same way of building is accepted unchanged
    with pytest.raises(ProtocolAborted, match=r"^Party south sent a result that does not fit the study"):
        read(with_header(change))


@pytest.mark.parametrize("text", [b"[]", b'{"codes": 0, ', b"{ "], ids=["list", "a key twice", "a space"])
def test_a_header_in_another_form_is_refused(text: bytes) -> None:
    """What one reader takes the first of, another one takes the last of."""
    header = text if text == b"[]" else text + WHOLE[5 : 4 + SIZE]
    with pytest.raises(ProtocolAborted, match=r"^Party south sent a result that does not fit the study"):
        read(memoryview(len(header).to_bytes(4, "big") + header + WHOLE[4 + SIZE :]))


def test_a_model_of_another_domain_is_refused() -> None:
    other = fit(
        {"a": 3, "c": 4},
        [Measurement(("a",), VALUES.astype(np.float64), 1.5)],
        total=6.0,
        warm_start=None,
        iterations=5,
    )
    foreign = replace(RELEASE, model=other.to_bytes())
    with pytest.raises(ProtocolAborted):
        read(memoryview(foreign.to_bytes(DOMAIN)))


@given(st.data())
def test_any_entry_of_the_header_may_be_anything(data: st.DataObject) -> None:
    """Nothing but a `ProtocolAborted` comes of it, or a release whose costs can be charged and shown."""

    def change(header: dict[str, Any]) -> None:
        place: Any = header
        while True:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.booleans()):
                place[key] = data.draw(st.sampled_from(ODD))
                return
            place = place[key]

    try:
        found = read(with_header(change))
    except ProtocolAborted:
        return
    assert all(
        event.rho >= 0 and event.beta >= 0 and float(event.rho + event.beta) >= 0 for event in found.events
    )
    assert all(float(m.sigma2) > 0 for m in found.measurements) and 0 <= found.decode_seed < 2**64


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_bytes_altered_on_the_way(changes: list[tuple[int, int]]) -> None:
    altered = bytearray(WHOLE)
    for place, value in changes:
        altered[place] = value
    with suppress(ProtocolAborted):
        read(memoryview(bytes(altered)))


def test_a_release_tells_just_what_was_opened_and_authorised() -> None:
    assert RELEASE.tells([VALUES, COARSE], RELEASE.events)
    assert not RELEASE.tells([VALUES + np.array([0, 0, 1]), COARSE], RELEASE.events)
    assert not RELEASE.tells([VALUES, COARSE, VALUES], RELEASE.events)
    assert not RELEASE.tells([VALUES], RELEASE.events)
    assert not RELEASE.tells([VALUES, COARSE], ())


def test_levels_that_are_not_nested_are_refused() -> None:
    """Each is bins of its column; together they are none of one hierarchy."""
    crossing = Level("b/3", "b", (0, 0, 1, 2))
    found = replace(
        RELEASE, selections=(*RELEASE.selections[:2], (crossing.name,)), levels=(HALVES, crossing)
    )
    with pytest.raises(ProtocolAborted):
        read(memoryview(found.to_bytes(DOMAIN)))
    nested = replace(found, levels=(HALVES, Level("b/3", "b", (0, 1, 1, 2))))
    assert read(memoryview(nested.to_bytes(DOMAIN))).bins(("b/3",)) == {"b": 3}


def test_only_a_run_with_a_prior_has_a_level_that_nobody_measured() -> None:
    alone = replace(RELEASE, measurements=RELEASE.measurements[:1], selections=(), events=RELEASE.events[:1])
    with pytest.raises(ProtocolAborted):
        read(memoryview(alone.to_bytes(DOMAIN)))
    begun = replace(alone, prior=Verdict(0, 1.0, 0.0, False, ()))
    assert read(memoryview(begun.to_bytes(DOMAIN))).levels == (HALVES,)


def test_a_table_or_a_model_that_breaks_the_studys_constraints_is_refused() -> None:
    spec = {"columns": {"a": 3, "b": 4}, "constraints": [{"if": {"a": 2}, "then": {"b": [2, 3]}}]}
    domain = Domain.from_spec(spec)
    model = fit(domain.sizes, [], total=6.0, impossible=domain.impossible).to_bytes()
    kept = replace(RELEASE, codes=np.array([[0, 3], [2, 2]], np.uint8), model=model, levels=())
    kept = replace(kept, measurements=kept.measurements[:1], selections=(), events=kept.events[:1])
    assert np.array_equal(parse(memoryview(kept.to_bytes(domain)), domain, 2, "P1").codes, kept.codes)
    for broken in (
        replace(kept, codes=RELEASE.codes),
        replace(kept, model=fit(domain.sizes, [], total=6.0).to_bytes()),
    ):
        with pytest.raises(ProtocolAborted):
            parse(memoryview(broken.to_bytes(domain)), domain, 2, "P1")
