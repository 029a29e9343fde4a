"""Who loses its place when too many connections have not proved who they are: `admission.strangers`."""

from __future__ import annotations

import socket

from parties.session.admission.strangers import Stranger, Strangers

NAMED = {"10.0.0.1", "10.0.0.2"}


def come(strangers: Strangers, host: str, greeted: bool = False) -> Stranger:
    stranger = strangers.admit(socket.socket(), host)
    stranger.greeted = greeted
    return stranger


def gone(strangers: Strangers, those: list[Stranger]) -> list[int]:
    """Which of them have lost their places, by their order of arrival."""
    return [each.number for each in those if each.number not in strangers._present]


def test_the_oldest_that_has_not_greeted_goes_first() -> None:
    strangers = Strangers(NAMED, most=4)
    party = come(strangers, "10.0.0.1", greeted=True)
    others = [come(strangers, f"10.9.0.{number}") for number in range(10)]
    assert gone(strangers, [party, *others]) == [2, 3, 4, 5, 6, 7, 8]


def test_addresses_of_the_study_outlast_others_at_the_same_stage() -> None:
    strangers = Strangers(NAMED, most=3)
    slow = come(strangers, "10.0.0.2")
    others = [come(strangers, f"10.9.0.{number}") for number in range(5)]
    assert gone(strangers, [slow, *others]) == [2, 3, 4]
    replays = [come(strangers, f"10.9.1.{number}", greeted=True) for number in range(2)]
    assert gone(strangers, [slow, *others, *replays]) == [2, 3, 4, 5, 6]
    come(strangers, "10.9.2.1", greeted=True)  # now only it has not greeted
    assert gone(strangers, [slow]) == [1]


def test_an_address_that_the_study_does_not_name_has_few_places() -> None:
    strangers = Strangers(NAMED, most=100, most_per_address=8)
    many = [come(strangers, "10.9.0.1") for _ in range(20)]
    named = [come(strangers, "10.0.0.1") for _ in range(20)]
    assert gone(strangers, many) == list(range(1, 13)) and not gone(strangers, named)


def test_who_has_proved_itself_holds_no_place() -> None:
    strangers = Strangers(NAMED, most=2)
    first = come(strangers, "10.9.0.1")
    strangers.leave(first)
    strangers.leave(first)
    come(strangers, "10.9.0.2"), come(strangers, "10.9.0.3")
    assert len(strangers) == 2
