"""The model's answers of a step on their way from the leader, who fits the model, to all others that compute,
who check them.

    exchange = AnswerExchange(wire, turns, leader, announced, rounded)
    exchange.begin()                                  those of the first group travel; the record of the step is written meanwhile
    for layout, answers in exchange: ...              those of each further group travel when their turn comes

1 round each. Nothing is secret: answers are post-processing of released counts. A backend whose parties need
different parts of them overrides the encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpc_protocols.engine.inputs import answer_codec
from mpc_protocols.engine.interface import Turns
from mpc_protocols.public.answers import Answers, DealerLayout
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.wire import Wire


class AnswerExchange:
    """The answers of a step's groups, one after the other."""

    def __init__(
        self,
        wire: Wire,
        turns: Turns,
        leader: int,
        announced: AnnouncedAnswers,
        rounded: RoundedAnswers | None,
    ) -> None:
        """turns: of the protocol that these messages belong to. Raises `ValueError` if the leader does not
        bring the answers."""
        if wire.me == leader and rounded is None:
            raise ValueError("The leading party must bring the model's answers.")
        self.leads = wire.me == leader
        self.candidates = len(announced.sums)
        self._wire, self._turns, self._leader = wire, turns, leader
        self._announced, self._rounded, self._checker = announced, rounded, announced.checker()
        self._first: Answers | None = None

    def begin(self) -> None:
        """Bring the answers of the first group to whoever needs them."""
        self._first = self._group(0)

    def __iter__(self) -> Iterator[tuple[DealerLayout, Answers]]:
        """Every group, at all parties. Raises `ProtocolAborted` if the answers are not those announced."""
        for number, layout in enumerate(self._announced.groups):
            answers, self._first = self._first or self._group(number), None
            yield layout, answers

    def _group(self, number: int) -> Answers:
        if self._rounded is not None:
            answers = self._rounded[number]
            followers = [peer for peer in range(self._wire.computing) if peer != self._leader]
            for peer, encoded in zip(followers, self._encode(answers, followers), strict=True):
                self._wire.send(peer, encoded)
            self._turns.turn()
            return answers
        self._turns.turn()
        layout = self._announced.groups[number]
        answers = self._decode(self._wire.receive_up_to(self._leader, self._limit(layout)), layout)
        self._checker.check(number, answers)
        return answers

    # -- what travels
    # --------------------------------------------------------------------------------------------------------

    def _encode(self, answers: Answers, followers: Sequence[int]) -> list[bytes]:
        return [answer_codec.encode(answers)] * len(followers)

    def _limit(self, layout: DealerLayout) -> int:
        return answer_codec.encoded_limit(layout)

    def _decode(self, payload: bytes | memoryview, layout: DealerLayout) -> Answers:
        return answer_codec.decode(payload, layout)
