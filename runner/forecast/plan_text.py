"""A forecast in words: what will happen, what it costs, and who learns what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.process.resources import free_memory
from mpc_protocols.psu.method import METHODS, PSU
from runner.check.vertical import POPULATIONS
from runner.forecast.result import Forecast
from runner.study import Study, VerticalStudy
from runner.study.method import algorithm_of
from runner.study.study_warnings import warned_of
from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from synth.budget.rounding import rounded_up

SHOWN_CLOSES = 12
"""Rounds of arrivals that are listed."""


def words(study: Study, expected: Forecast) -> str:
    """The text that `plan` prints."""
    return "\n".join(
        [
            *_questions(study, expected),
            *_joined(study, expected),
            *_collected(expected),
            *_inputs(expected),
            *_counted_inside(study),
            "",
            *_costs(study, expected),
            "",
            *_learns(study, expected),
            "",
            f"claim: {expected.claim}",
        ]
    )


def _questions(study: Study, expected: Forecast) -> list[str]:
    privacy, asked, algorithm = expected.privacy, expected.questions, algorithm_of(study)
    secure = f" ({study.security})" if study.descriptor.malicious else ""
    whose = "" if study.linked is None else ", a person with all that is theirs"
    lines = [
        f"{study.name}: {study.algorithm} on {study.backend}{secure}, {len(study.parties)} parties, {len(study.domain)} columns",
        f"privacy    epsilon {privacy['epsilon']:g}, delta {privacy['delta']:g} ({privacy['adjacency']}; unit: "
        f"{privacy['unit']}{whose}); rho {privacy['rho']:.4g} "
        + ("and a training" if isinstance(algorithm, TrainedAlgorithm) else "in all"),
        f"questions  {asked['asked']}",
        f"noise      standard deviation {asked['noise_sd']:.3g} a count"
        + (", less in later rounds" if algorithm.adaptive(study.config) else ""),
    ]
    if asked["expected"] is not None:
        lines.insert(1, f"WARNING    {asked['expected']}")
    lines[1:1] = [f"WARNING    {one.text}" for one in warned_of(study)]
    if algorithm.alternative(study.config) is not None:
        lines.insert(1, f"RESEARCH   {expected.claim}")
    if isinstance(algorithm, TrainedAlgorithm):
        lines.insert(0, algorithm.limits)
    if asked["label"] is not None:
        lines.append(f"label      every marginal of the workload has the column {asked['label']}")
    if asked["offered"] is not None and asked["offered"][0] < asked["candidates"]:
        lines += _offered(expected)
    return lines + [
        f"too large  {' x '.join(clique)} exceeds max_model_mb: {algorithm.left_out}"
        for clique in expected.oversized
    ]


def _offered(expected: Forecast) -> list[str]:
    """Of how many marginals a round chooses one: fewer than are candidates, and the report of a run counts
    those."""
    low, high = expected.questions["offered"]
    count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return [
        f"choice     for about {expected.rows:,} rows a round chooses one of {count} of them; left out are those whose noise",
        "           would exceed twice the noisy number of rows (they cannot win) and those that the model cannot",
        "           hold yet, which may grow as budget is spent",
    ]


def _joined(study: Study, expected: Forecast) -> list[str]:
    """How a vertical study joins its owners' records; nothing for a horizontal one."""
    joining = expected.joining
    if joining is None:
        return []
    way = METHODS[joining["via"]].way if not BACKENDS[study.backend].ideal else "in the clear"
    by = f" by {', '.join(joining['id'])}" if joining["id"] else ""
    lines = [f"joining    records{by} {way}", f"population {POPULATIONS[joining['population']]}"]
    for owner in joining["owners"]:
        presumed = (
            " (presumed: neither the study nor this machine says it)"
            if owner["name"] in joining["presumed"]
            else ""
        )
        lines.append(f"owner      {owner['name']}: {', '.join(owner['columns'])}{presumed}")
    return lines


def _collected(expected: Forecast) -> list[str]:
    """What contributors leave; nothing for a study without bundles."""
    bundle = expected.bundle
    if bundle is None:
        return []
    may = bundle["contributors"] - bundle["earlier"]
    return [
        f"bundles    {may:,} contributors may each leave one of {in_bytes(bundle['bytes'])}: "
        f"{bundle['cells']:,} cells of {bundle['marginals']} marginals",
        *_closing(bundle["close"], bundle["min"]),
        *_waves(bundle),
    ]


def _closing(close: Mapping[str, Any] | Sequence[Mapping[str, Any]], least: int) -> list[str]:
    """When lists of bundles are fixed."""
    if isinstance(close, Mapping):
        return [f"closing    {_ends(close)}; never for fewer than {least}"]
    rounds = [
        f"round {number:<4} closes {_ends(each)}{f'; never for fewer than {least}' * (number == 1)}"
        for number, each in enumerate(close, 1)
    ]
    shown = (
        rounds if len(rounds) <= SHOWN_CLOSES else [*rounds[: SHOWN_CLOSES - 1], f"...        {rounds[-1]}"]
    )
    return [
        "arriving   each round selects on the bundles that are there; the run waits in between, and fewer than "
        f"{least} newcomers wait for a later round",
        *shown,
    ]


def _ends(close: Mapping[str, Any]) -> str:
    ends = [f"at {close['at']}"] if "at" in close else []
    ends += [f"with {close['bundles']} bundles"] if "bundles" in close else []
    return f"{' or '.join(ends)}{', whichever is first' * (len(ends) > 1)}"


def _waves(bundle: Mapping[str, Any]) -> list[str]:
    """The earlier waves of the table; nothing for a first one."""
    return [
        f"wave       after one of {wave['took_part']:,} contributors with about {wave['rows']:,} rows: what that measured is "
        "measured of the newcomers, and added"
        for wave in bundle["after"]
    ]


def _inputs(expected: Forecast) -> list[str]:
    """Whether contributors' counts are checked; nothing where all compute."""
    inputs = expected.inputs
    if inputs is None:
        return []
    if "columns" in inputs:
        return [
            "inputs     owners' columns are checked on shares: a run in which one names two values in a row ends"
        ]
    if "unchecked" in inputs:
        return [f"inputs     of contributors are not checked: {inputs['unchecked']}"]
    bad = "ends the run" if inputs["bad_input"] == "end" else "is left out"
    return [
        f"inputs     counts of {', '.join(inputs['checked'])} are checked on shares, {inputs['rounds']:,} rounds and "
        f"{in_bytes(inputs['bytes_sent'])};",
        f"           who sends counts that no table of at most max_rows rows has {bad}",
    ]


def _counted_inside(study: Study) -> list[str]:
    """Whose tables stay in their databases, as far as the study says where they are."""
    names = [party.name for party in study.parties if party.data is not None and party.data.push_down]
    if not names:
        return []
    return [
        f"tables     of {', '.join(names)} are counted inside their databases by GROUP BY (push_down = true):",
        "           no row leaves them, only counts",
    ]


def _costs(study: Study, expected: Forecast) -> list[str]:
    joining = expected.joining
    lines = [f"for about {expected.rows:,} rows (from {expected.rows_from}):"]
    if joining is not None:
        half = "" if joining["method"] != PSU else ", half of them common to all"
        half += f"; a table of about {joining['population_rows']:,} rows"
        lines = [f"for about {expected.rows:,} records at each owner (from {expected.rows_from}){half}:"]
        if not BACKENDS[study.backend].ideal:
            lines.append(
                f"  joining    {joining['rounds']:,} rounds, {in_bytes(joining['bytes_sent'])}, {joining['seconds']:.2g} "
                "s of computing; included below"
            )
    if BACKENDS[study.backend].ideal:
        lines.append(
            f"  messages   none: the {study.backend} backend runs in one process, and protects nothing"
        )
    else:
        lines.append(
            f"  messages   {expected.rounds:,} rounds, {in_bytes(expected.bytes_sent)} in all"
            + _bounds(study, expected)
        )
        width = max(10, *(len(party.name) for party in expected.parties))
        lines += [
            f"  {party.name:<{width}} sends {in_bytes(party.bytes_sent)}"
            + (" (computes)" if party.role == "compute" else " (contributes)")
            for party in expected.parties
        ]
    if expected.soundness is not None:
        proofs, lg_chance = expected.soundness["proofs"], expected.soundness["lg_chance"]
        lines.append(
            f"  proofs     {proofs:,} batches; a deviation passes them with a chance below 2^{lg_chance:g}"
        )
    free = free_memory()
    short = free is not None and free < expected.memory_mb << 20
    here = f"; this machine has {free >> 20:,} MB left" if free is not None and short else ""
    lines.append(f"  memory     about {expected.memory_mb:,} MB at the party that takes most{here}")
    lines.append(
        "  time       "
        + ", ".join(f"{_seconds(seconds)} ({name})" for name, seconds in expected.time_s.items())
    )
    return lines


def _bounds(study: Study, expected: Forecast) -> str:
    if not algorithm_of(study).adaptive(study.config):
        return ""
    rounds, sent = expected.range["rounds"], expected.range["bytes_sent"]
    return f"; from {rounds[0]:,} to at most {rounds[1]:,} rounds, {in_bytes(sent[0])} to {in_bytes(sent[1])}"


def _learns(study: Study, expected: Forecast) -> list[str]:
    joining, backend = expected.joining, study.descriptor
    if joining is not None and "exposes" in expected.questions:
        return _exposed(study, expected, joining)
    if not isinstance(backend, DistributedBackend):
        return ["who learns what", "  whoever can read this process learns every record"]
    if views := ALGORITHMS[study.algorithm].views(study.config):
        return [
            "who learns what",
            *(f"  {who}: {learns} Not: {hidden}" for who, learns, hidden in views),
            *([] if joining is None else _sizes(study, joining)),
        ]
    if isinstance(ALGORITHMS[study.algorithm], TrainedAlgorithm):
        return [
            "who learns what, all of it within (epsilon, delta)",
            f"  {study.leader.name} (the server): how many rows each owner has, noisily; in each round gradients of its critic",
            "  each owner: the trunk of the generator and its own branch, as they grow",
            "  everybody, and whoever they give it to: synthetic table, model, report",
            "  nobody: another owner's records; the noise; which records a step looks at",
        ]
    computing = ", ".join(party.name for party in study.computing)
    return [
        "who learns what",
        f"  {computing} (they compute): the marginals that were chosen and their noisy counts, as they come; nothing",
        "      else"
        + (" but what joining tells (below)" if joining is not None else "")
        + f", as long as {backend.together}"
        + (" and all follow the protocol" if not backend.malicious else ", whatever one of them does"),
        *(
            [
                f"  {', '.join(party.name for party in study.contributing)}: which marginals are shared, and the result"
            ]
            if study.contributing
            else []
        ),
        *([] if joining is None else _sizes(study, joining)),
        *(
            [
                "  each contributor: who else took part, and the result; its file is sealed, each of its parts alone is random"
            ]
            if expected.bundle is not None
            else []
        ),
        *(
            [
                f"  those that compute: of {'everybody' if backend.malicious else 'each contributor'} whether its counts can be "
                "those of a table, nothing else of them"
            ]
            if study.checks_inputs
            else []
        ),
        "  everybody, and whoever they give it to: synthetic table, model, noisy counts, report: what (epsilon, delta) covers",
        "  nobody: another party's records, counts or number of rows; the noise"
        if joining is None
        else f"  nobody: another owner's {METHODS[joining['via']].hidden}; the noise",
    ]


def _exposed(study: Study, expected: Forecast, joining: dict[str, Any]) -> list[str]:
    """Who can read off what of a training, beyond what is released."""
    first, second = expected.questions["training_bytes"]
    return [
        "who learns what, beyond what (epsilon, delta) covers",
        *(f"  {who}: {what}" for who, what in expected.questions["exposes"]),
        *_sizes(study, joining),
        f"training: {expected.questions['training_rounds']:,} rounds; {in_bytes(first)} of embeddings one way, "
        f"{in_bytes(second)} of gradients the other",
    ]


def _sizes(study: Study, joining: dict[str, Any]) -> list[str]:
    """What joining tells each party, and what that adds to the study's claim."""
    owners, noisy = [owner["name"] for owner in joining["owners"]], study.privacy.adjacency == "add-remove"
    padded = isinstance(study, VerticalStudy) and study.alignment.pad_to is not None
    method = METHODS[joining["via"]]
    lines = [f"  the owners, from joining: {method.reveals}"] if method.reveals else []
    for view in joining["views"]:
        name = view["name"]
        words = method.sizes_shown(name in owners, len(owners), noisy, padded)
        sums = (
            f"together with the results epsilon {rounded_up(view['epsilon']):g}, delta {rounded_up(view['delta']):g}"
            if view["sizes"]
            else ""
        )
        lines += [
            f"  {name}, from joining: {words}" + (";" if sums else ""),
            *([f"      {sums}"] if sums else []),
        ]
    return lines


def in_bytes(count: int) -> str:
    """Three digits and a unit: 5 B, 1.2 kB, 34 MB."""
    power = min(4, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
