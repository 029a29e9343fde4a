"""Keys that parties share: alike at all who share one, unknown to the rest, and decided by nobody alone."""

from __future__ import annotations

import secrets
from itertools import combinations

import pytest

from parties.session.admission.keys import PART, SharedKeys

SESSION = bytes(32)


def exchanged(computing: int) -> list[SharedKeys]:
    made = [SharedKeys(number, computing) for number in range(computing)]
    for sender in range(computing):
        for receiver in range(computing):
            if sender != receiver:
                payload = made[sender].contribution(receiver)
                assert len(payload) == made[receiver].size(sender) == made[sender].size(receiver)
                made[receiver].take(sender, payload)
    return made


@pytest.mark.parametrize("computing", [2, 3, 4, 5])
def test_all_who_share_a_key_have_the_same_and_all_keys_differ(computing: int) -> None:
    made = exchanged(computing)
    tables = [each.prss(SESSION) for each in made]
    sets = list(combinations(range(computing), computing - (computing - 1) // 2))
    for members in sets:
        assert len({tables[member][members] for member in members}) == 1
        assert all(members not in tables[other] for other in set(range(computing)) - set(members))
    assert len({tables[members[0]][members] for members in sets}) == len(sets)
    for a, b in combinations(range(computing), 2):
        assert made[a].pairs(SESSION)[b] == made[b].pairs(SESSION)[a]
    assert made[0].pairs(SESSION) != made[0].pairs(bytes(31) + b"x")


def test_with_three_parties_a_pairs_key_is_its_prss_key() -> None:
    made = exchanged(3)
    assert made[0].pairs(SESSION) == {
        peer: made[0].prss(SESSION)[tuple(sorted((0, peer)))] for peer in (1, 2)
    }


@pytest.mark.parametrize("broken", [0, 1])
def test_a_party_whose_random_numbers_are_known_does_not_give_the_key_away(
    monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    """Either side's 16 bytes: with one of the two sides fixed to zeros, two sessions still have different
    keys."""
    keys = set()
    for _ in range(2):
        made = []
        for number in range(3):
            with monkeypatch.context() as patch:
                if number == broken:
                    patch.setattr(secrets, "token_bytes", lambda count: bytes(count))
                made.append(SharedKeys(number, 3))
        assert made[broken].contribution(1 - broken) == bytes(PART)
        for a, b in ((0, 1), (1, 0)):
            made[b].take(a, made[a].contribution(b))
        keys.add(made[broken]._key((0, 1), SESSION))
    assert len(keys) == 2
