"""No keyed stream is begun twice in runs of the tests.

drawn = Streams()
with drawn.watched():
    network.run(parties)
drawn.check()
"""

from __future__ import annotations

from runner.review.audit.subjects.in_memory import streams


class Streams(streams.Streams):
    """Those of the audit, with a verdict."""

    @property
    def parties(self) -> set[str]:
        """Who has begun one."""
        return {party for party, _, _ in self.begun}

    def check(self) -> None:
        """Fail if a party has begun a stream twice."""
        again = self.twice()
        assert not again, f"{len(again)} streams are begun more than once, the first is {again[0]}"
