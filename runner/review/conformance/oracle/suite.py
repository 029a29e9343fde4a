"""The suite of oracles: a backend answers as the ideal functionality does, charges before it opens, and stops
when misled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mpc_protocols.backend import Backend, ClearBackend
from mpc_protocols.vertical.partition import Population
from runner.review.conformance.checks import Check, expect
from runner.review.conformance.oracle import answers, deviations, noise, order, picks, refusals
from runner.review.conformance.oracle.runs import parties_of

FAR_US = 20_000
"""A delay at which protocols take other forms than on one machine: fewer rounds, larger pools of noise."""
POPULATIONS: tuple[Population, ...] = ("intersection", "union")


def check_oracle(backend: Backend) -> list[Check]:
    """Every promise of a backend that can be seen from outside, for all numbers of parties from the fewest it
    allows to one more.

    A backend is `MarginalOracle` to its caller: this suite uses nothing else of it but its descriptor.
    """
    worlds, checks = parties_of(backend), list[Check]()
    last = worlds[-1]

    def add(name: str, body: Callable[..., None], *arguments: object) -> None:
        checks.append(Check(f'backend "{backend.name}"', name, partial(body, backend, *arguments)))

    add("what it says of itself", words)
    add(
        f"a dry run counts every byte and round of parties that are far apart ({last})",
        answers.costs,
        last,
        FAR_US,
    )
    for world in worlds:
        add(f"all questions are answered and charged as by ideal ({world})", answers.equal, world)
        add(f"a dry run counts every byte and round ({world})", answers.costs, world, 0)
    add("a unit of three rows, one row replaced", answers.equal, last, answers.strict)
    add("a million times as many rows allowed", answers.equal, last, answers.roomy)
    add("as many rows as allowed", answers.equal, last, answers.tight)
    add("nobody has a row", answers.equal, last, answers.usual, (0,))
    add("parties without data", answers.without_data)
    add("what the study does not allow is refused and leaves no trace", answers.refused, last)
    add("more rows than allowed are refused", answers.too_many_rows, last)
    add("noise is there, and fresh", noise.fresh, last)
    add("noise under the other promise", noise.fresh, last, answers.strict)
    add("noise of every size has its law", noise.of_all_sizes, worlds[0])
    add("noise has its law beyond every batch", noise.of_long_marginals, worlds[0])
    add("selections have their law", picks.have_their_law, worlds[0])
    add("no guard is asked after computing", order.guards_come_first, last)
    for refuser in range(last.computing):
        add(
            f"nothing opens if party {refuser} refuses a measurement",
            refusals.refuses_measuring,
            last,
            refuser,
        )
        add(
            f"nothing opens if party {refuser} refuses the last pick", refusals.refuses_picking, last, refuser
        )
    if isinstance(backend, ClearBackend):
        return checks
    add("all have authorised before the leader has an answer", refusals.authorised_before_answered, last)
    add("a follower with another study stops the run", deviations.other_study, last)
    add("a message too short or too long stops the run", deviations.bent_messages, last)
    add("what is no step stops the run", deviations.no_steps, last)
    if "vertical" in backend.partitions:
        for population in POPULATIONS:
            add(f"columns of two owners, {population}", answers.vertical, population)
        add("columns of two owners that are far apart", answers.vertical, POPULATIONS[-1], FAR_US)
    return checks


def words(backend: Backend) -> None:
    least, most = backend.computing
    expect(0 <= least <= most, f"computing = {backend.computing} must be the fewest and the most parties.")
    names = [f"party {number}" for number in range(most + 1 if most < 20 else least + 1)]
    expect(backend.misfit(names[:least]) is None, f"{least} computing parties must fit.")
    for number in {least - 1, most + 1} - {-1}:
        if number <= len(names):
            misfit = backend.misfit(names[:number])
            expect(
                misfit and not misfit.endswith("."),
                f"misfit must say why {number} parties cannot compute, without a full stop; it said {misfit!r}.",
            )
    for number in range(max(least, 1), min(most, least + 3) + 1):
        expect(0 <= backend.leader(number) < number, f"the leader of {number} must be one of them.")
    expect(
        backend.claim and not backend.claim.endswith("."),
        f"claim must be a phrase, and is {backend.claim!r}.",
    )
    for vertical in (False, True)[: 1 + ("vertical" in backend.partitions)]:
        for sentence in backend.threat(vertical):
            expect(sentence.endswith("."), f"threat must be sentences, and holds {sentence!r}.")
    expect(backend.name and backend.summary, "a backend needs a name and a summary.")
