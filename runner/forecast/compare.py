"""One study by every backend: what each would cost, who must not work together, and what would have to change
in the study.

`plan --compare`. Everything is asked of the backends' descriptors and of dry runs (`predict`). A backend is
tried with the study as it is but for the line that names it; if other parties would have to compute, with the
roles dealt anew: those that compute today first, then those with data, then the others, and with parties
added that only compute where there are too few. What such a study is told is what its reader would say of the
changed file. Costs are those of the changed study.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from mpc_protocols.backend import BACKENDS, Backend, DistributedBackend
from mpc_protocols.errors import StudyInvalid
from runner.forecast.alignment import owners
from runner.forecast.plan_text import in_bytes
from runner.forecast.predict import forecast
from runner.forecast.result import NETWORKS, Forecast
from runner.forecast.shared_course import SharedCourse
from runner.report.number_format import listed
from runner.study import Study, VerticalStudy, private_file
from runner.study.read import changed

_HEAD = (
    ("", ""),
    ("parties", ""),
    ("who must", "not collude"),
    ("rounds", ""),
    ("computing", "sends"),
    ("contributor", "sends"),
    ("CPU", "s"),
)


@dataclass(frozen=True)
class Alternative:
    """The study by one backend.

    own: whether the study names it. ideal: nobody is protected. claim: the backend's own. changes: what must
    change in the study besides the backend's name; empty if nothing. problem: why it cannot run the study all
    the same; then there are no costs. computing, contributing: names of parties. together: what the computing
    parties must not do. colluding: who must not work together. computing_bytes, contributor_bytes: what the
    busiest of each sends; None if there is none. cpu_s, time_s: as in `Forecast`.
    """

    backend: str
    own: bool
    ideal: bool
    summary: str
    claim: str
    changes: tuple[str, ...] = ()
    problem: str | None = None
    computing: tuple[str, ...] = ()
    contributing: tuple[str, ...] = ()
    together: str | None = None
    colluding: str | None = None
    assumption: str | None = None
    rounds: int | None = None
    computing_bytes: int | None = None
    contributor_bytes: int | None = None
    cpu_s: float | None = None
    time_s: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Comparison:
    """All backends, in the registry's order. networks: the names of those that times are told for."""

    study: str
    rows: int
    rows_from: str
    networks: tuple[str, ...]
    alternatives: tuple[Alternative, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def compare(
    study: Study,
    rows: int | None = None,
    networks: Mapping[str, tuple[float, float]] = NETWORKS,
    tell: Callable[[float], None] = lambda _: None,
    delay_us: int = 0,
) -> Comparison:
    """The study by every backend. rows, networks, tell, delay_us: as for `forecast`.

    Raises `StudyInvalid`: not by its own backend.
    """
    shared = SharedCourse()
    foretold = partial(forecast, networks=networks, tell=tell, shared=shared, delay_us=delay_us)
    own = foretold(study, rows)
    found = [
        _alternative(
            study,
            study.descriptor
            if backend.name == study.backend
            else backend.configured(backend.options(), study.partition),
            own,
            foretold,
        )
        for backend in BACKENDS
    ]
    return Comparison(study.name, own.rows, own.rows_from, tuple(networks), tuple(found))


def _alternative(
    study: Study, backend: Backend, own: Forecast, foretold: Callable[[Study, int], Forecast]
) -> Alternative:
    mine = backend.name == study.backend
    if not isinstance(backend, DistributedBackend):
        return Alternative(backend.name, mine, backend.ideal, backend.summary, backend.claim)
    if mine:
        return _alternative_of(backend, own, ())
    problem = None
    for tree, changes in _trials(study, backend):
        other, sentences = changed(study, tree)
        idle = (
            sorted(private_file.idle_here(other).keys() - private_file.idle_here(study))
            if other is not None
            else []
        )
        if idle:  # who only computed is not needed any more
            tree["party"] = [entry for entry in tree["party"] if entry["name"] not in idle]
            changes = (*changes, f"no party {listed(idle)}")
            other, sentences = changed(study, tree)
        if other is not None:
            try:
                return _alternative_of(backend, foretold(other, own.rows), changes, own=False)
            except StudyInvalid as error:
                sentences = [error.sentence]
        problem = problem or sentences[0]
    return Alternative(backend.name, mine, False, backend.summary, backend.claim, problem=problem)


def _alternative_of(
    backend: DistributedBackend, expected: Forecast, changes: tuple[str, ...], own: bool = True
) -> Alternative:
    computing, contributing = (
        tuple(party for party in expected.parties if party.role == role) for role in ("compute", "contribute")
    )
    return Alternative(
        backend.name,
        own,
        False,
        backend.summary,
        backend.claim,
        changes,
        None,
        tuple(party.name for party in computing),
        tuple(party.name for party in contributing),
        backend.together,
        backend.colluding(len(computing)),
        backend.assumption,
        expected.rounds,
        max(party.bytes_sent for party in computing),
        max((party.bytes_sent for party in contributing), default=None),
        expected.cpu_s,
        expected.time_s,
    )


# -- the study with another backend
# ----------------------------------------------------------------------------------------


def _trials(study: Study, backend: Backend) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Trees of the study with this backend, the least changed first, and what was changed besides the
    backend's name."""
    flags = [entry.get("compute") for entry in study.tree["party"]]
    names = [party.name for party in study.parties]
    roles = backend.roles(flags)
    computing = [name for name, computes in zip(names, roles, strict=True) if computes]
    if backend.misfit(computing, study.partition) is None:
        yield _tree(study, backend, None), ()
    first = [
        *(party.name for party in study.computing),
        *(party.name for party in study.contributing if party.data is not None),
        *names,
    ]
    orders = [first]
    if isinstance(study, VerticalStudy):  # owners may have to compute themselves
        orders.append([*owners(study)[0].owners, *first])
    for order in orders:
        chosen = list(dict.fromkeys(order))
        least, most = backend.computing
        wanted = max(least, min(most, len(study.computing)))
        added = [f"party-{number}" for number in range(len(names) + 1, len(names) + 1 + wanted - len(chosen))]
        chosen = [*chosen[:wanted], *added]
        yield _tree(study, backend, chosen), tuple(_changes(names, chosen, added))


def _changes(names: Sequence[str], computing: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    if len(added) == 1:
        yield "one more party that computes, and needs no data of its own"
    elif added:
        yield f"{len(added)} more parties that compute, and need no data of their own"
    kept = [name for name in names if name in computing]
    if len(kept) < len(names):
        yield f"compute = true for {listed(kept)} only"


def _tree(study: Study, backend: Backend, computing: Sequence[str] | None) -> dict[str, Any]:
    """The study's file with another backend. computing: who is to compute, new parties included; None: as it
    says itself."""
    tree = copy.deepcopy(dict(study.tree))
    tree["study"]["backend"] = backend.name
    tree.pop(study.backend, None)
    if computing is not None:
        entries = {entry["name"]: entry for entry in tree["party"]}
        ports = {party.port for party in study.parties}
        for name in computing:
            if name not in entries:
                port = next(number for number in range(1, 65536) if number not in ports)
                ports.add(port)
                entries[name] = {"name": name, "address": f"127.0.0.1:{port}"}
        for name, entry in entries.items():
            entry["compute"] = name in computing
        tree["party"] = list(entries.values())
    return tree


# -- in words
# --------------------------------------------------------------------------------------------------------------


def comparison(of: Comparison) -> str:
    """The text that `plan --compare` prints."""
    costed = [each for each in of.alternatives if each.rounds is not None]
    rows = [_cells(each, of.networks) for each in costed]
    above, below = zip(*_HEAD, *((name, "s") for name in of.networks), strict=True)
    widths = [max(map(len, column)) for column in zip(above, below, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        left, rest = cells[:3], list(zip(cells, widths, strict=True))[3:]
        text = [f"{cell:<{width}}" for cell, width in zip(left, widths, strict=False)]
        return "  ".join([*text, *(f"{cell:>{width}}" for cell, width in rest)]).rstrip()

    return "\n".join(
        [
            f"{of.study} by each backend, for about {of.rows:,} rows (from {of.rows_from})",
            *(line(cells) for cells in (above, below, *rows)),
            "",
            *(text for each in of.alternatives for text in _notes(each)),
            "",
            "parties: computing + contributing; sends: the busiest of them; CPU: of a computing party, for the secure",
            "part; then seconds of the whole run, start-up and model fits included. Every backend gives answers of the",
            "same distribution, for the same epsilon and delta.",
        ]
    )


def _cells(of: Alternative, networks: Sequence[str]) -> list[str]:
    assert of.computing_bytes is not None and of.cpu_s is not None and of.time_s is not None
    return [
        of.backend + (" *" if of.own else ""),
        f"{len(of.computing)} + {len(of.contributing)}" if of.contributing else f"{len(of.computing)}",
        str(of.colluding),
        f"{of.rounds:,}",
        in_bytes(of.computing_bytes),
        "-" if of.contributor_bytes is None else in_bytes(of.contributor_bytes),
        f"{of.cpu_s:.2g}",
        *(f"{of.time_s[name]:.3g}" for name in networks),
    ]


def _notes(of: Alternative) -> Iterator[str]:
    """What stands below the table about a backend."""
    mark = " (the study as it is)" if of.own else ""
    yield f"{of.backend}{mark}: {of.summary}"
    if of.ideal:
        yield f"  not private: {of.claim}"
    elif of.problem is not None:
        yield f"  cannot run this study: {of.problem.rstrip('.')}"
    else:
        others = (
            f"; {listed(of.contributing)} contribute{'s' * (len(of.contributing) == 1)}"
            if of.contributing
            else ""
        )
        verb = "computes" if len(of.computing) == 1 else "compute"
        yield f"  {listed(of.computing)} {verb}{others}"
        yield f"  protects as long as {of.together} and all follow the protocol; rests on {of.assumption}"
        if not of.own:
            changes = [f'backend = "{of.backend}"', *of.changes]
            yield f"  to change: {'; '.join(changes)}"
