"""FLAIM's rounds in the clear: who is asked, what is opened, what everybody is charged, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.ideal.cohorts import IdealCohorts
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import POPULAR, REVEAL, SUM, Event, LocalVector, Question
from mpc_protocols.public.cohorts.steps import CohortStep
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.client import Client
from synth.algorithms.flaim.config import EVERY_ROUND
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.questions import Asked, parse
from synth.algorithms.flaim.server import Arrivals, Federated, Server
from tests.synth.flaim.world import DOMAIN, SESSION, counter, planned, table

CLIENTS = 12


class Obeyed(IdealCohorts):
    """Every step is shown to the accounts, as to those who obey a leader."""

    def __init__(
        self,
        vectors: Mapping[int, LocalVector],
        accounts: ClientAccounts,
        session: bytes,
        randomness: Callable[[int], bytes],
    ) -> None:
        super().__init__(vectors, accounts, session, randomness)
        self._admit = accounts.admit

    def sum(self, question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Any = ()) -> Any:
        self._admit(CohortStep(SUM, question, tuple(clients), sigma2=sigma2, cliques=tuple(cliques)))
        return super().sum(question, clients, sigma2, cliques)

    def popular(
        self, question: Question, clients: Sequence[int], least: int, event: Event, among: Any = None
    ) -> Any:
        fresh = among is None
        self._admit(
            CohortStep(POPULAR, question, tuple(clients), fresh, least=least, among=among, event=event)
        )
        return super().popular(question, clients, least, event, among)

    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> Any:
        self._admit(CohortStep(REVEAL, question, tuple(clients), event=event))
        return super().reveal(question, clients, event)


class World:
    """Clients of 300 rows each; everything that is asked is noted."""

    def __init__(self, plan: FlaimPlan, clients: int = CLIENTS, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.asked: list[tuple[int, Asked]] = []
        self.clients = {k: Client(plan, counter(table(300, k)), SESSION, rng.bytes) for k in range(clients)}
        self.accounts = ClientAccounts(plan, self.clients)
        vectors = {k: self._noted(k, of) for k, of in self.clients.items()}
        self.cohorts = Obeyed(vectors, self.accounts, SESSION, rng.bytes)
        self.server = Server(plan, self.cohorts, SESSION)

    def _noted(self, number: int, of: Client) -> Any:
        def answer(question: Question) -> Any:
            self.asked.append((number, parse(question.content)))
            return of(question)

        return answer

    def run(self, *rounds: Sequence[int] | Arrivals) -> Federated | None:
        return self.server.run([of if isinstance(of, Arrivals) else Arrivals(tuple(of)) for of in rounds])

    def kinds(self, client: int) -> list[str]:
        return [asked.kind for number, asked in self.asked if number == client]


@pytest.mark.parametrize("often", [1, 3, EVERY_ROUND])
@pytest.mark.parametrize("variant", ["private", "naive", "oracle", "random", "bayes", "light"])
def test_accounts_of_clients_and_parties_agree_and_reach_rho_but_never_exceed_it(
    variant: str, often: int | str
) -> None:
    plan = planned(variant, epsilon=4.0, participations=often, rounds=4, group=1)
    world = World(plan)
    assert world.run(range(6), range(6), range(3, 9), range(CLIENTS)) is not None
    for number, client in world.clients.items():
        account = world.accounts.accounts[number]
        assert client.charged == account.rho <= plan.budget.rho_cap
        assert account.beta <= plan.budget.beta_cap
        assert client.participations <= plan.participations
    taken = max(client.participations for client in world.clients.values())
    assert taken == plan.participations
    # a run that offers candidates in every round charges somebody everything, up to the rounding of noise
    if variant in ("private", "bayes", "light"):
        assert world.accounts.most >= plan.budget.rho_cap * (1 - Fraction(1, 10**5))


def test_a_cohort_that_seems_to_have_no_rows_leaves_its_columns_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some of the next cohort take part a second time, and are asked for their columns then."""
    monkeypatch.setattr(Server, "_invite", unlucky(Server._invite))
    world = World(planned("naive", epsilon=50.0, rounds=3, participations=3, group=3))
    assert world.run((0, 1, 2), (0, 1, 3), (0, 1, 2, 3)) is not None
    assert world.kinds(0).count("columns") == world.kinds(3).count("columns") == 1
    assert "columns" not in world.kinds(2)


def unlucky(invite: Any) -> Any:
    """As if the noise of the first cohort's size were larger than the cohort."""

    def invited(self: Server, number: int, cohort: Sequence[int]) -> int:
        rows: int = invite(self, number, cohort)
        return rows if number > 1 else -1

    return invited


def test_a_cohort_smaller_than_the_group_is_not_asked_at_all() -> None:
    world = World(planned(rounds=3, group=3))
    assert world.run((0, 1), (2, 3), ()) is None
    assert world.asked == []
    assert world.accounts.most == 0


def test_who_has_taken_part_is_not_asked_again() -> None:
    world = World(planned(rounds=2, group=3))
    world.run((0, 1, 2), (0, 1, 2, 3, 4, 5))
    assert world.kinds(0)[0] == "size"
    assert world.kinds(0).count("size") == 1
    assert world.kinds(5).count("size") == 1
    # the second cohort would be too small without newcomers
    world = World(planned(rounds=2, group=3))
    world.run((0, 1, 2), (0, 1, 2, 3))
    assert world.kinds(3) == []


def test_counts_are_asked_only_of_what_a_group_chose() -> None:
    world = World(planned(epsilon=50.0, rounds=1, group=9))
    found = world.run(range(10))
    assert found is not None
    [chosen] = found.chosen
    votes = [asked for _, asked in world.asked if asked.kind == "choose"]
    assert len(votes) == 10
    assert {asked.cliques for _, asked in world.asked if asked.kind == "counts"} <= {chosen}
    assert chosen == (("a", "b"),)  # the one pair that depends


def test_who_leaves_after_choosing_is_counted_out_and_stays_charged() -> None:
    plan = planned(epsilon=50.0, rounds=1, group=9)
    world = World(plan)
    found = world.run(Arrivals(tuple(range(10)), left=(0, 1)))
    assert found is not None
    assert found.chosen == ((),)  # eight are no group of nine
    assert not any(asked.kind == "counts" for _, asked in world.asked)
    assert world.clients[0].charged == world.clients[5].charged > 0
    world = World(planned(epsilon=50.0, rounds=1, group=8))
    found = world.run(Arrivals(tuple(range(10)), left=(0, 1)))
    assert found is not None
    assert found.chosen == ((("a", "b"),),)
    assert "counts" not in world.kinds(0)
    assert "counts" in world.kinds(5)


def test_the_model_comes_close_to_everybodys_table() -> None:
    everybody = np.concatenate([table(300, k) for k in range(CLIENTS)])
    [real] = counter(everybody)([("a", "b")])
    for variant, limit in (("private", 0.1), ("light", 0.1), ("naive", 0.1)):
        world = World(planned(variant, epsilon=50.0, rounds=3, group=3))
        found = world.run(range(4), range(4, 8), range(8, 12))
        assert found is not None
        model = found.model.marginal(("a", "b")) / found.model.total
        assert np.abs(model - real / len(everybody)).sum() < limit, variant
        assert abs(found.rows - len(everybody)) < 100


def test_registered_columns_are_those_of_the_result() -> None:
    """Everybody registers, clients with few in the second column's middle never come: the model has
    everybody's columns."""
    world = World(planned("light", epsilon=50.0, rounds=1, group=3))
    found = world.run((0, 1, 2))
    assert found is not None
    assert all(world.kinds(k)[0] == "register" for k in range(CLIENTS))
    everybody = np.concatenate([table(300, k) for k in range(CLIENTS)])
    for column in DOMAIN.names:
        [real] = counter(everybody)([(column,)])
        assert (
            np.abs(found.model.marginal((column,)) / found.model.total - real / len(everybody)).sum() < 0.01
        )


def test_a_drawn_marginal_is_the_same_for_all_and_public() -> None:
    first, second = (World(planned("random", epsilon=50.0, rounds=2, group=3), seed=seed) for seed in (0, 1))
    found = [world.run(range(6), range(6, 12)) for world in (first, second)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].chosen == found[1].chosen  # by the session's id alone
    assert not any(asked.kind == "choose" for _, asked in first.asked)


@pytest.mark.parametrize(("cells", "kept"), [(12, 3), (11, 2)])
def test_what_many_chose_is_kept_as_long_as_the_model_holds_it_together(
    cells: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pair alone would fit: of the three, two take 10 cells, and all of them the 12 of all columns."""
    popular = Obeyed.popular

    def everything(self: Obeyed, question: Question, *asked: Any) -> list[int]:
        popular(self, question, *asked)
        return list(range(len(parse(question.content).cliques)))

    monkeypatch.setattr(Obeyed, "popular", everything)
    world = World(planned(epsilon=50.0, rounds=1, group=3, max_model_mb=cells * 8 / 2**20))
    monkeypatch.setattr(FlaimPlan, "worth_noise", lambda self, _: [("a", "b"), ("a", "c"), ("b", "c")])
    federated = world.run(range(6))
    assert federated is not None and len(federated.chosen[0]) == kept
    assert federated.model.size_mb * 2**20 / 8 <= cells


def test_a_column_that_no_model_holds_is_refused() -> None:
    with pytest.raises(StudyInvalid, match='too small for the column "b" alone'):
        planned(max_model_mb=16 / 2**20)
