"""Questions to a finished run, with intervals: `infer` and `Run.infer` (`docs/howto/answer-a-question.md`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import pip_install
from mpc_protocols.process.later import Later
from parties.data.libraries import pd
from runner.api.conditions import allowed
from runner.results.linked import check_of_people
from runner.results.outdir import RUN
from synth.inference import NOT_COMPUTED, infer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from runner.results import replay
    from runner.results.finished_run import FinishedRun
    from synth.inference import Answer, Target, unmeasured
    from synth.synthesis import Measured
else:
    replay = Later("runner.results.replay")
    unmeasured = Later("synth.inference.unmeasured")

COLUMNS = (
    "name",
    "estimate",
    "low",
    "high",
    "licence",
    "standard_error",
    "noise_share",
    "bound_low",
    "bound_high",
    "table",
    "note",
    "reason",
    "unmeasured_bound",
)
"""Of `Run.infer`'s frame, after `question`."""
MAX_FIT_S = 30.0
"""Of a run whose models are fitted again for a question that they leave open: what its own fits took."""


def answers(
    run: FinishedRun,
    measurements: Sequence[Measured],
    questions: Sequence[str],
    *,
    level: float = 0.95,
    target: Target = "population",
    joint: bool = False,
) -> list[Answer]:
    """See `synth.inference.infer`, of which this is the run's. Reads released values only.

    questions: of none, those that the study has registered. Raises `UsageError` if there are none either.
    """
    check_form(run.facts)
    domain, questions = run.domain, questions or registered(run.facts)
    if not questions:
        raise UsageError(
            'No question was asked, and the study has registered none; ask one, such as "mean(age)".'
        )

    def codes_of(name: str, value: Any) -> NDArray[np.bool_]:
        return allowed(domain, {name: value})[name]

    found = infer(
        questions,
        domain,
        run.model,
        measurements,
        run.facts,
        codes_of,
        level=level,
        target=target,
        joint=joint,
        check=_of_people(run),
    )
    return [_with_command(each) for each in _bounded(run, measurements, found)]


def _with_command(answer: Answer) -> Answer:
    """Of a question that waits for a package: also what gets it, as this copy was installed."""
    command = pip_install(["inference"]) if answer.licence == NOT_COMPUTED else None
    return replace(answer, reason=f"{answer.reason.rstrip('.')}; run `{command}`.") if command else answer


def check_form(facts: Mapping[str, Any]) -> None:
    """Raise `UsageError` unless what intervals rest on has the form that runs write; facts: run.json."""
    if not _well_formed(facts):
        raise UsageError(f"{RUN} is damaged: it does not tell as runs do what was selected and what it cost.")


def _well_formed(facts: Mapping[str, Any]) -> bool:
    """The files may be anybody's."""
    privacy, selected, study = facts.get("privacy"), facts.get("selected", []), facts.get("public_study", {})
    if not isinstance(privacy, Mapping) or not isinstance(study, Mapping):
        return False
    inference = study.get("inference") or {}
    events = [privacy.get("events"), privacy.get("all_events", [])]
    return (
        all(isinstance(each, list) and all(isinstance(event, Mapping) for event in each) for each in events)
        and isinstance(facts.get("contributors") or {}, Mapping)
        and isinstance(inference, Mapping)
        and _is_texts(inference.get("queries", []))
        and isinstance(selected, list)
        and all(map(_is_texts, selected))
    )


def _is_texts(listed: object) -> bool:
    return isinstance(listed, list) and all(isinstance(each, str) for each in listed)


def _bounded(run: FinishedRun, measurements: Sequence[Measured], found: Sequence[Answer]) -> list[Answer]:
    """The answers; a refusal for want of a pair says what was selected instead tells of it, where that is
    worth saying: where it halves what the single columns leave open of a cell."""
    told, far = list(found), dict[tuple[str, ...], float]()
    missing = {pair for answer in found if len(pair := run.domain.ordered(answer.missing)) == 2}
    if missing and replay.fit_s(run) <= MAX_FIT_S and (picks := replay.picks_of(run, measurements)):
        known = unmeasured.bounds(picks, measurements, run.model, run.domain.names)
        far = {
            pair: known[pair]
            for pair in missing & known.keys()
            if known[pair] < unmeasured.widest(run.model, pair) / 2
        }
    for place, answer in enumerate(told):
        if (most := far.get(run.domain.ordered(answer.missing))) is not None:
            sentence = (
                f"By what was selected instead, the share of these rows with any values of {' x '.join(answer.missing)} is at "
                f"most {math.ceil(1000 * most) / 10:g} percentage points from what the model says, but for a chance of "
                f"{unmeasured.CHANCE:g}."
            )
            told[place] = replace(answer, reason=f"{answer.reason} {sentence}", unmeasured_bound=most)
    return told


def _of_people(run: FinishedRun) -> Callable[[Sequence[str]], None]:
    """Of a run of linked tables, refuses columns of a single child drawn (`check_of_people`): by what a question reads, not
    by what it names, or one that cannot be set up beforehand would be answered."""
    told: set[str] = set()

    def check(columns: Sequence[str]) -> None:
        if "linked" in run.facts and not told.issuperset(columns):
            check_of_people(run.facts, run.domain, columns, "`infer`")
            told.update(columns)

    return check


def registered(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The questions that the study of a run has registered. facts: run.json."""
    return tuple(((facts.get("public_study") or {}).get("inference") or {}).get("queries", ()))


def note(facts: Mapping[str, Any]) -> str:
    """What is to be known of all answers of a run; "" if nothing is. facts: run.json."""
    prior = facts.get("prior")
    if not isinstance(prior, Mapping) or not prior.get("inherited"):
        return ""
    return (
        "Intervals rest on what this run has counted alone: what it inherited ([prior]) is in its table only."
    )


def row(answer: Answer) -> dict[str, Any]:
    """An answer as a row of a frame, or an object of JSON; numbers that there are not are None."""
    low, high = answer.bounds or (None, None)
    beside = {"bound_low": low, "bound_high": high}
    return {"question": answer.question} | {
        name: beside[name] if name in beside else getattr(answer, name) for name in COLUMNS
    }


def frame(found: Sequence[Answer], level: float, target: Target, facts: Mapping[str, Any]) -> pd.DataFrame:
    """Answers as a data frame, one row a number; `attrs` has level, target and `note`. facts: run.json."""
    table = pd.DataFrame([row(answer) for answer in found], columns=["question", *COLUMNS])
    numbers = ["estimate", "low", "high", "standard_error", "noise_share", "bound_low", "bound_high", "table"]
    numbers.append("unmeasured_bound")
    table[numbers] = table[numbers].astype(float)
    table.attrs.update(level=level, target=target, note=note(facts))
    return table
