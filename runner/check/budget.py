"""Whether a party's ledger has room for a run, and what its data will have spent with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.errors import BudgetRefused, CosynthError, OutOfResources
from parties.budget.account import Account, cap_problem
from parties.budget.ledger import Ledger
from runner.check import contributors, vertical
from runner.check.begins import on_record
from runner.check.finding import Finding, fine, note, problem
from runner.party.custodian import Custodian
from runner.study import DataLocation, Study, VerticalStudy
from runner.study.private_file import Private
from synth.budget.rounding import rounded_up

if TYPE_CHECKING:
    from synth.plan import Plan


def budget(
    study: Study, party: str, own: Private, plan: Plan, data: DataLocation | None
) -> Iterator[Finding]:
    """What a reservation for this run would meet. data: this party's, None if it only computes."""
    if data is None:
        return
    custodian, ledger, cap = Custodian(study, party, own, data), Ledger(own.ledger.file), own.ledger.cap
    dataset = custodian.dataset
    try:
        ledger.rehearse()
    except (BudgetRefused, OutOfResources) as error:
        yield problem(error)
        return
    if not ledger.exists():
        yield note(f"{ledger.path} does not exist yet: nothing counts as spent, and the first run makes it")
    if isinstance(study, VerticalStudy):
        yield from vertical.quota(study, party, own, ledger, dataset)
    yield from contributors.waves(study, party, dataset, ledger)
    if study.prior is not None:
        try:
            yield from on_record(party, study.prior, ledger.entries(), dataset)
        except CosynthError as error:
            yield problem(error)
            return
    if cap.epsilon is None or cap.delta is None:
        yield note(f"{ledger.path}: no cap is set, the ledger only counts")
        return
    try:
        entries = ledger.entries(dataset)
    except CosynthError as error:
        yield problem(error)
        return
    sizes = vertical.sizes(study, party) if isinstance(study, VerticalStudy) else ()
    computes = party in {member.name for member in study.computing}
    asked = custodian.reservation(plan, b"", b"", computes, sizes)
    account = Account.of(entries, cap, asked.notion)
    assert account.notion is not None  # this run's, if nothing else has fixed it
    yield note(f"ledger: the cap of {dataset} holds for {account.notion.words}")
    for possible in Account.possible(entries, cap, asked):
        if sentence := cap_problem(ledger.path, asked, cap, possible):
            yield problem(
                BudgetRefused(f"This run would exceed the cap: {sentence[0].lower()}{sentence[1:]}")
            )
            return
    steps = account.steps(asked.notion)
    assert steps is not None  # `cap_problem` has looked
    more = asked, asked.charge.at(steps)
    yield fine(
        f"ledger: {dataset}: epsilon {rounded_up(account.epsilon_by_rho(cap.delta)):g} spent, "
        f"{rounded_up(account.epsilon_by_rho(cap.delta, more)):g} with this study, cap {cap.epsilon:g} (delta {cap.delta:g})"
    )
    alone = Account.of([], cap, asked.notion).epsilon_by_rho(cap.delta, more)
    claimed, delta = float(study.privacy.epsilon), float(study.privacy.delta)
    if abs(alone / claimed - 1) > 0.01:
        sized = ", with the sizes that other owners are told," if sizes else ""
        yield note(
            f"why not epsilon {claimed:g}: that is what the study promises to who gets the table, at delta {delta:g}; the same "
            f"noise{sized} is epsilon {rounded_up(alone):g} at the cap's delta {cap.delta:g}, at which runs are added up"
        )
