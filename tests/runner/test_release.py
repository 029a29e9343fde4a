"""The release on the wire: it is read back as it was written, and whatever else a leader sends is a `ProtocolAborted`."""

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
from synth.run import Measured

DOMAIN = Domain.from_spec({"file": {"a": 3, "b": 4}})
VALUES = np.array([5, -1, 2])
MODEL = fit(
    DOMAIN.sizes,
    [Measurement(("a",), VALUES.astype(np.float64), 1.5)],
    total=6.0,
    warm_start=None,
    iterations=5,
)
RELEASE = Release(
    np.array([[0, 3], [2, 1]], np.uint8),
    MODEL.to_bytes(),
    (Measured(("a",), Fraction(3, 2), 0, VALUES),),
    (("a", "b"),),
    6.25,
    7,
    (Event("measure", Fraction(1, 3), Fraction(1, 10**20), {"cliques": [["a"]], "sigma2": "3/2"}),),
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
    assert (found.model, found.events, found.selected) == (RELEASE.model, RELEASE.events, RELEASE.selected)
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
        ("a model cut short", lambda header: header.update(model=header["model"] - 1)),
    ],
)
def test_refused(what: str, change: Callable[[dict[str, Any]], object]) -> None:
    read(with_header(lambda header: None))  # the same way of building is accepted unchanged
    with pytest.raises(ProtocolAborted, match=r"^Party south sent a result that does not fit the study"):
        read(with_header(change))


def test_a_model_of_another_domain_is_refused() -> None:
    other = fit(
        {"a": 3, "c": 4},
        [Measurement(("a",), VALUES.astype(np.float64), 1.5)],
        total=6.0,
        warm_start=None,
        iterations=5,
    )
    foreign = Release(
        RELEASE.codes, other.to_bytes(), RELEASE.measurements, RELEASE.selected, 6.25, 7, RELEASE.events
    )
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
    assert RELEASE.tells([VALUES], RELEASE.events)
    assert not RELEASE.tells([VALUES + np.array([0, 0, 1])], RELEASE.events)
    assert not RELEASE.tells([VALUES, VALUES], RELEASE.events)
    assert not RELEASE.tells([], RELEASE.events)
    assert not RELEASE.tells([VALUES], ())


def _coarse(level: Level) -> Release:
    measured = Measured(("a", level.name), Fraction(5), 1, np.arange(3 * level.size) - 2, (level,))
    return replace(RELEASE, measurements=(*RELEASE.measurements, measured), noise_share=0.25)


def test_a_marginal_over_bins_and_a_fallback_survive_the_way() -> None:
    sent = _coarse(Level("b/2", "b", (0, 1, 1, 0)))
    got = parse(memoryview(sent.to_bytes(DOMAIN)), DOMAIN, 100, "leader")
    assert got.measurements[1].levels == sent.measurements[1].levels
    assert got.measurements[1].columns == ("a", "b") and got.measurements[1].bins == {"b": (0, 1, 1, 0)}
    np.testing.assert_array_equal(got.measurements[1].values, sent.measurements[1].values)
    assert got.noise_share == 0.25


@pytest.mark.parametrize(
    "level",
    [Level("b/2", "b", (0, 1, 1)), Level("a", "b", (0, 1, 1, 0)), Level("x", "nobody", (0, 1, 1, 0))],
)
def test_bins_that_are_not_those_of_a_column_are_refused(level: Level) -> None:
    with pytest.raises(ProtocolAborted):
        parse(memoryview(_coarse(level).to_bytes(DOMAIN)), DOMAIN, 100, "leader")
