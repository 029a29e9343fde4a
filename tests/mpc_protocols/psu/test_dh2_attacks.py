"""Deviations from dh2: what each gains, and who notices. The honest party is `dh2.Owner`, the deviating one a subclass."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.psu import dh2
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec
from mpc_protocols.psu.group import Elements
from mpc_protocols.psu.hashing import NAME_BYTES, Names, row_names
from mpc_protocols.psu.ristretto import Ristretto255
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, ids, run, spec_of

N = 60
MINE, THEIRS = ids(range(N)), ids(range(N // 2, N // 2 + N))
TRUE = {e for e in MINE if e in THEIRS}
SEMI_HONEST, PROOFS = spec_of("dh2"), spec_of("dh2+proofs")


class Deviating(dh2.Owner):
    """An owner with the set MINE that looks for its own records among those it fetched."""

    def __init__(self, wire: Wire, spec: AlignmentSpec) -> None:
        super().__init__(wire, MINE, spec, CONTEXT, Ristretto255())
        self.learnt: set[bytes] = set()

    def finish(self) -> Alignment:
        group, sid = self.group, self.exchange.sid
        own = row_names(sid, dh2.RECORD, self.own_records())
        others = row_names(sid, dh2.RECORD, group.power_each(self.fetched, group.inverses(self.blinds)))
        self.learnt = {MINE[i] for i, found in zip(self.order, np.isin(own, others), strict=True) if found}
        return super().finish()

    def own_records(self) -> Elements:
        return self.group.power(self.own_answers, self.second)


def attack(kind: type[Deviating], spec: AlignmentSpec) -> tuple[set[bytes], str]:
    """What the deviating owner learnt, and what the honest one said ("" if it noticed nothing)."""
    deviating: list[Deviating] = []
    said: list[str] = []

    def first(wire: Wire) -> None:
        deviating.append(kind(wire, spec))
        with suppress(ProtocolAborted, PeerLost):
            try:
                deviating[0].run()
            except ProtocolAborted:  # does not know the hash that is due; any other
                deviating[0].exchange.swap(secrets.token_bytes(32))
                deviating[0].exchange.swap(secrets.token_bytes(64))

    def second(wire: Wire) -> None:
        try:
            dh2.align(wire, THEIRS, spec, CONTEXT, Ristretto255())
        except ProtocolAborted as error:
            said.append(error.sentence)

    run(spec, first, second)
    return deviating[0].learnt, said[0] if said else ""


class QueriesMatches(Deviating):
    """Asks for records whose tags matched instead of those it lacks."""

    def positions_to_query(self) -> NDArray[np.int64]:
        matches = np.setdiff1d(np.arange(self.n_theirs), self.missing)
        return np.concatenate([matches, self.missing])[:len(self.missing)]


class FalseTags(Deviating):
    """Sends junk for tags, so that the other expects no match, and may ask for everything."""

    def tags_to_send(self, tags: Names) -> Names:
        return np.frombuffer(secrets.token_bytes(NAME_BYTES * len(tags)), f"S{NAME_BYTES}")

    def exchange_tags(self) -> None:
        super().exchange_tags()
        self.common, self.missing = 0, np.arange(self.n_theirs)


class FalseTagsAndAnswers(FalseTags):
    """As well answers the other's queries under another exponent: its own records then never meet the other's."""

    def fetch_others(self) -> None:
        self.second = self.group.random_exponents(1)[0]
        super().fetch_others()

    def finish(self) -> Alignment:
        """Own records for comparing: H(x)^{joint} as first answered. For the table: what the other must have computed."""
        falsified, self.second = self.second, self.joint * self.group.inverses([self.first])[0] % self.group.order
        group, sid = self.group, self.exchange.sid
        own = row_names(sid, dh2.RECORD, self.own_records())
        others = row_names(sid, dh2.RECORD, group.power_each(self.fetched, group.inverses(self.blinds)))
        self.learnt = {MINE[i] for i, found in zip(self.order, np.isin(own, others), strict=True) if found}
        self.second = falsified
        return dh2.Owner.finish(self)


class ScaledInputs(Deviating):
    """Feeds H(x)^c for its own secret c instead of H(x); takes c out of the answers again."""

    def __init__(self, wire: Wire, spec: AlignmentSpec) -> None:
        super().__init__(wire, spec)
        self.scale = self.group.random_exponents(1)[0]
        self.own_list = self.group.power(self.own_list, self.scale)

    def own_records(self) -> Elements:
        return self.group.power(super().own_records(), self.group.inverses([self.scale])[0])


@pytest.mark.parametrize("spec", [SEMI_HONEST, PROOFS], ids=["semi-honest", "proofs"])
@pytest.mark.parametrize("kind", [QueriesMatches, FalseTags])
def test_gained_and_noticed(kind: type[Deviating], spec: AlignmentSpec) -> None:
    """Memberships are learnt, and the honest owner says so every time."""
    learnt, said = attack(kind, spec)
    assert learnt and learnt <= TRUE
    assert "hash of the union" in said or "same union" in said or "tags that its answers contradict" in said


def test_other_exponents_pass_without_proofs_only() -> None:
    """Junk tags and falsified answers together gain everything unnoticed when answers are not proven; proofs refuse them."""
    assert attack(FalseTagsAndAnswers, SEMI_HONEST) == (TRUE, "")
    assert "whose proof does not hold" in attack(FalseTagsAndAnswers, PROOFS)[1]


@pytest.mark.parametrize("spec", [SEMI_HONEST, PROOFS], ids=["semi-honest", "proofs"])
def test_inputs_that_are_no_hashes_pass(spec: AlignmentSpec) -> None:
    """The limit of every Diffie-Hellman union without proofs of well-formed inputs, stated in `dh2`: nobody notices."""
    assert attack(ScaledInputs, spec) == (TRUE, "")


def wrong_answers(step: Callable[[dh2.Owner], None], name: str) -> type[Deviating]:
    """An owner that raises to another exponent in one step."""

    class Wrong(Deviating):
        pass

    def falsified(self: Wrong) -> None:
        kept = self.joint, self.second
        self.joint, self.second = self.group.random_exponents(2)
        step(self)
        self.joint, self.second = kept

    setattr(Wrong, name, falsified)
    return Wrong


@pytest.mark.parametrize("name", ["answer_lists", "fetch_others"])
def test_wrong_exponents_alone_are_noticed(name: str) -> None:
    """Without proofs the tables differ; with proofs the answer itself is refused."""
    kind = wrong_answers(getattr(dh2.Owner, name), name)
    said = attack(kind, SEMI_HONEST)[1]
    assert "hash of the union" in said or "same union" in said
    assert "whose proof does not hold" in attack(kind, PROOFS)[1]
