"""What run.json says of its own release: recomputed from the table, the measurements and the model beside it
and the study.

Whoever has signed it, what can be computed is computed; what cannot (times, traffic, software, the number of
proof batches) is named as the word of the signers. Looked at last, so that a cause that shows in a file by
itself is named before its consequences.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import BudgetRefused, CosynthError, StudiesDiffer
from runner.check.finding import Finding, fine, note, problem
from runner.party.record.events import PHASES, PROOF_STEPS, WITHHELD
from runner.party.record.run_json import alignment_facts
from runner.party.synthesis import most_rows
from runner.report import files
from runner.results.finished_run import agreed_study
from runner.results.outdir import DISTRIBUTED, ONE_MACHINE, RUN, SIGNATURES
from runner.results.release import Release, event_from_json
from runner.results.warnings import relations_of, warnings_of
from runner.review.verification import split_training
from runner.review.verification.account import Account, close
from runner.review.verification.planned import owned_of, planned
from runner.review.verification.signers import GIVER
from runner.study import Study, VerticalStudy
from runner.study.cohorts import cohorts_of
from runner.study.hashing import protocol_of
from runner.study.owners import Ownership
from runner.study.sections.prior import ROUNDING, runs_of, together
from runner.study.trained import trained, training_of
from runner.version import PROTOCOL
from synth.algorithm import ALGORITHMS, CHOICES
from synth.budget.small.fallback import MAX_SHARE, sentence
from synth.prior import Verdict

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from runner.review.verification.place import Place
    from synth.judgement.relations import Relations
    from synth.plan import Plan

DIGITS = 1.1e-3
"""A verdict's numbers are rounded to three places: they may differ in the last one where another machine adds
up otherwise."""


def recomputed(place: Place, own: Study | None = None) -> Iterator[Finding]:
    """All of it. own: the auditor's study, which says what files beside a study with contributors hold."""
    run, file = place.run, place.directory / RUN
    study = agreed_study(run, file)
    if protocol_of(run) != str(PROTOCOL):
        yield note(
            f"{file} is of protocol {protocol_of(run)}: what it says of its release is not recomputed here"
        )
        return
    unanswered: list[Clique] = []
    word = ["times, traffic, software and where the parties ran", "the figures of the model"]
    beside, sources = (
        "the table, the measurements and the model beside it",
        "the table, the measurements, the model and the study",
    )
    try:
        if training_of(study) is not None:  # it has no table, and nobody signs it
            restated, account = split_training.differing(study, run)
            beside = sources = "the study that was agreed"
        else:
            owned = owned_of(study, run)
            plan = planned(study, run, own, owned)
            statements = Statements(study, files.load(place.directory), plan, owned)
            restated, account = list(statements.differing()), list(statements.account.differing())
            unanswered, word = list(statements.unanswered()), list(statements.on_their_word())
    except CosynthError as error:
        yield problem(error)
        return
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
        yield problem(
            StudiesDiffer(f"{file} states what does not fit the files beside it; ask the parties for theirs.")
        )
        return
    if unanswered:
        yield problem(
            StudiesDiffer(
                f"{file}: the study registers questions whose marginals are measured whatever is selected, and "
                f"{' and '.join(' x '.join(clique) for clique in unanswered)} was not, with the noise that their share of the "
                "budget buys; ask the parties for their own directories."
            )
        )
    if restated:
        yield problem(
            StudiesDiffer(
                f"{file} states another {' and '.join(dict.fromkeys(restated))} than follows from {beside}; ask the parties "
                "for their own directories."
            )
        )
    if account:
        yield problem(
            BudgetRefused(
                f"{file} states another {' and '.join(dict.fromkeys(account))} than follows from the study that was agreed and "
                "from its events; ask the parties for their own directories."
            )
        )
    if not (restated or account or unanswered):
        whose = "those who signed" if SIGNATURES in place.hashes else GIVER
        yield fine(
            f"what {RUN} says of its release follows from {sources}; the word of {whose} are {', '.join(word)}"
        )


@dataclass(frozen=True)
class Statements:
    """run: the files. plan: as `Account`'s. owned: of a vertical study."""

    study: Study
    run: files.Run
    plan: Plan | None
    owned: Ownership | None

    @property
    def facts(self) -> Mapping[str, Any]:
        """run.json."""
        return self.run.facts

    @cached_property
    def account(self) -> Account:
        """Of what was spent."""
        return Account(
            self.study,
            self.plan,
            self.facts["privacy"],
            self.run.measurements,
            self.run.noisy_total,
            self._collected.get("schedule") == "arriving",
            trained(self.study) is not None,
        )

    def differing(self) -> Iterator[str]:
        """What run.json states otherwise than it follows; each as it is called there. Raises as
        `Account.differing`."""
        looks = {
            "rows": self._rows,
            "selected": self._selections,
            "resolutions": self._resolutions,
            "fallback": self._fallback,
            "relations": self._relations,
            "warnings": self._warnings,
            "soundness": self._soundness,
            "prior": self._prior_as_agreed,
            "phases": self._phases,
            "inputs": self._inputs,
            "alignment": self._alignment,
            "version": self._version,
            "deployment": self._deployment,
        }
        yield from (name for name, look in looks.items() if not look())
        if not self._table_is_possible():
            yield "rows"

    def unanswered(self) -> Iterator[Clique]:
        """The marginals of registered questions that were not measured as the study has it."""
        reserved = self.study.inference and self.study.inference.cliques
        if not reserved or self.plan is None:  # contributors' studies register none
            return
        sigma2 = self.plan.reserved.sigma2(self.plan.charges, self.plan.budget.rho_cap)
        measured = {m.clique for m in self.run.measurements if m.round == 0 and m.sigma2 == sigma2}
        yield from (clique for clique in reserved if clique not in measured)

    def on_their_word(self) -> Iterator[str]:
        """What of run.json cannot be recomputed, in words."""
        yield "times, traffic, software and where the parties ran"
        if "soundness" in self.facts:
            yield "the number of proof batches"
        if "fallback" in self.facts and self._small_share is None:
            yield "how large the noise of a joint marginal would have been"
        if not self.account.is_told or self.account.in_rounds:
            yield "the samplers' distance (a bound is recomputed)"
        if self.plan is None:
            of = (
                "owners' columns decide it"
                if self.account.is_trained
                else "--study names the study that decides it"
            )
            yield f"the cap on rho ({of})"
        if "contributors" in self.facts:
            yield "who took part"
        if self.facts.get("prior"):
            yield "how what it began from fared: its test, its drift and the errors of what was taken over"
        if "runs" in (self.facts.get("prior") or {}):
            yield "which releases the earlier one rests on"
        if self.facts.get("inputs"):
            yield "whose counts were left out"

    @property
    def _collected(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.facts["agreed"].get("contributors", {})
        return found

    @property
    def _asks_oracle(self) -> bool:
        """Whether a synthesizer asks an oracle, once, and draws the table from its model."""
        return self._runs_once and not self._collected.get("registered")

    @property
    def _runs_once(self) -> bool:
        """Whether the study's algorithm asks an oracle, once."""
        study = self.study
        return not (
            self.account.in_rounds
            or self._collected.get("after")
            or cohorts_of(study) is not None
            or trained(study) is not None
            or ALGORITHMS[study.algorithm].reporting(study.config) is not None
        )

    @cached_property
    def _release(self) -> Release:
        """As far as a verdict looks at it."""
        return Release(
            self.run.codes,
            self.run.model.to_bytes(),
            self.run.measurements,
            (),
            self.run.noisy_total,
            0,
            tuple(
                event_from_json(
                    {"what": event.what, "rho": [0, 1], "beta": [0, 1], "detail": dict(event.detail)}
                )
                for event in self.run.events
            ),
            MAX_SHARE if "fallback" in self.facts else None,
            prior=self._prior,
        )

    @cached_property
    def _prior(self) -> Verdict | None:
        """How what the run began from fared; None of one that began from nothing. Raises as
        `Verdict.from_json`."""
        told = self.facts.get("prior")
        if told is None:
            return None
        known = [[list(of.columns), of.cells, of.error] for of in self.run.inherited]
        form = {name: told[name] for name in ("tested", "p_value", "drift")}
        return Verdict.from_json({**form, "is_dropped": told["dropped"], "known": known})

    def _prior_as_agreed(self) -> bool:
        """Whether it is the one that was agreed, with as many marginals as are told, and what a person has
        spent in both is not less than this run's events and the agreed figure of the earlier one come to."""
        agreed, told = self.facts["agreed"].get("prior"), self.facts.get("prior")
        if agreed is None or told is None or self._prior is None:
            return agreed is None and told is None
        least = together(float(sum(event.rho for event in self.run.events)), agreed)
        beta = self.facts["privacy"]["beta"]
        runs_of(told)  # of a form that a later run takes
        return (
            {name: told.get(name) for name in agreed} == dict(agreed)
            and told["inherited"] == len(self.run.inherited)
            and bool(told["rho_together"] >= least * (1 - ROUNDING))
            and bool(told.get("beta_together", beta) >= beta * (1 - ROUNDING))
        )

    @cached_property
    def _verdict(self) -> Relations | None:
        return relations_of(self._release, self.study.domain)

    def _rows(self) -> bool:
        """Those of the table, and as many as the study or the count says."""
        rows, study = self.facts["rows"], self.study
        if type(rows) is not int or rows != len(self.run.codes):
            return False
        if study.config.synthetic_rows:
            return rows == study.config.synthetic_rows
        if not self._asks_oracle:
            return True
        bound = self.account.row_bound()
        counts = [max(0, round(total)) for total in (self.run.noisy_total, self.run.model.total)]
        caps = {most_rows(study, custodians) for custodians in range(1, len(study.parties) + 1)}
        allowed = [count if bound is None else min(count, bound) for count in counts]
        return rows in allowed or (rows in caps and rows < max(allowed))

    def _table_is_possible(self) -> bool:
        """Whether no row breaks a constraint of the domain."""
        domain, codes = self.study.domain, self.run.codes
        places = {name: number for number, name in enumerate(domain.names)}
        return not any(
            zero[tuple(codes[:, places[name]] for name in names)].any()
            for names, zero in domain.impossible.items()
        )

    @property
    def _picks(self) -> Sequence[Mapping[str, Any]]:
        """The events of selections that picked something."""
        events = self.facts["privacy"]["events"]
        return [event for event in events if event["what"] == "select" and event["clique"]]

    def _selections(self) -> bool:
        """Those of the events, and measured as they were picked."""
        selected = [list(clique) for clique in self.run.selected]
        told = any(event["what"] in (CHOICES, "select") for event in self.account.every)
        if not told and selected:
            return False
        if not self.account.side_by_side and selected != [event["clique"] for event in self._picks]:
            return False
        last = len(selected) + (
            not self.account.side_by_side
        )  # after which single columns are measured again
        return all(
            m.round <= last
            and (not 1 <= m.round <= len(selected) or list(m.columns) == selected[m.round - 1])
            for m in self.run.measurements
        )

    def _resolutions(self) -> bool:
        """Those of the events, and of what was measured."""
        bins = list(self.run.resolutions)
        if not self.account.side_by_side and bins != [event.get("bins", {}) for event in self._picks]:
            return False
        return all(
            not 1 <= m.round <= len(bins)
            or {column: max(of) + 1 for column, of in m.bins.items()} == bins[m.round - 1]
            for m in self.run.measurements
        )

    def _fallback(self) -> bool:
        """Whether a run that says so has given up joint marginals, and no other one has; where the plan tells
        which tables are too small, whether this one was, and by how much."""
        sizes, run = self.study.domain.sizes, self.run
        joint = any(len(clique) > 1 for clique in run.model.cliques)
        text, share = self.facts.get("fallback"), self._small_share
        if text is None:
            followed = any(sum(sizes[name] > 1 for name in m.columns) > 1 for m in run.measurements)
            return joint or not (followed or share)
        if joint or share == 0.0:
            return False
        tried = any(len(m.clique) > 1 for m in run.measurements)
        shares = [*(percent / 100 for percent in range(101)), MAX_SHARE] if share is None else [share]
        return text in {sentence(run.noisy_total, share, tried=tried) for share in shares}

    @cached_property
    def _small_share(self) -> float | None:
        """As `synth.algorithm.Algorithm.small_share`; None where no plan is known."""
        if not self._runs_once:
            return 0.0  # nothing of such a run gives up
        if self.plan is None:
            return None
        algorithm = ALGORITHMS[self.study.algorithm]
        return algorithm.small_share(self.plan, self.run.measurements, self.run.noisy_total)

    def _relations(self) -> bool:
        expected = None if self._verdict is None else json.loads(json.dumps(self._verdict.to_json()))
        return alike(self.facts.get("relations"), expected)

    def _warnings(self) -> bool:
        privacy, rows = self.study.privacy, max(0, round(self.run.noisy_total))
        warned = warnings_of(
            self._verdict, self.facts.get("fallback"), float(privacy.epsilon), float(privacy.delta), rows
        )
        return bool(self.facts.get("warnings", []) == [asdict(one) for one in warned])

    def _soundness(self) -> bool:
        """Whether the chance is that of the number of proofs, and there is one where each opening is proved."""
        told, backend = self.facts.get("soundness"), self.study.descriptor
        if told is None:
            return not (backend.malicious and self._asks_oracle)
        proofs = told["proofs"]
        return (
            backend.malicious
            and type(proofs) is int
            and proofs >= len(self.run.events)
            and (not isinstance(self.study, VerticalStudy) or proofs in PROOF_STEPS)
            and told["lg_chance"] == round(backend.lg_chance(proofs), 2)
        )

    def _phases(self) -> bool:
        """Whether what must not be told is withheld, and nothing else."""
        vertical = isinstance(self.study, VerticalStudy)
        return all(
            phase["name"] in PHASES
            and bool(phase.get("withheld")) == (vertical and phase["name"] in WITHHELD)
            and not (phase.get("withheld") and (phase["bytes_sent"] or phase["rounds"]))
            for phase in self.facts["phases"]
        )

    def _inputs(self) -> bool:
        """Whether those are said to be checked whose counts the study has checked."""
        study, told = self.study, self.facts.get("inputs")
        if self._collected:
            return True  # whoever is enrolled is checked: `collected` compares them
        if not study.checks_inputs:
            return told is None
        return bool(
            told is not None
            and told["checked"] == [party.name for party in study.to_check]
            and set(told["left_out"]) <= {party.name for party in study.contributing}
        )

    def _alignment(self) -> bool:
        """Whether what joining revealed follows from who owns which columns."""
        study, told = self.study, self.facts.get("alignment")
        if not isinstance(study, VerticalStudy) or trained(study) is not None:
            return told is None
        if self.owned is None or self.plan is None:
            return False
        return alike(told, json.loads(json.dumps(alignment_facts(study, self.plan, self.owned))))

    def _deployment(self) -> bool:
        """Whether it is one that there is; one process cannot be several machines."""
        return self.facts["deployment"] in (
            (ONE_MACHINE,) if self.study.descriptor.ideal else (ONE_MACHINE, DISTRIBUTED)
        )

    def _version(self) -> bool:
        software = self.facts["software"]
        return (
            list(software) == [party.name for party in self.study.parties]
            and self.facts["version"] == software[self.study.leader.name]["cosynth"]
        )


def alike(stated: object, expected: object) -> bool:
    """Whether two JSON values are the same but for numbers in their last digits (`DIGITS`)."""
    if isinstance(expected, Mapping):
        return (
            isinstance(stated, Mapping)
            and stated.keys() == expected.keys()
            and all(alike(stated[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(stated, list) and len(stated) == len(expected) and all(map(alike, stated, expected))
    if isinstance(expected, float) and type(stated) in (int, float):
        return close(stated, expected) or math.isclose(float(stated), expected, abs_tol=DIGITS)  # type: ignore[arg-type]
    return type(stated) is type(expected) and stated == expected
