"""Streams that a peer speaks of before this party does: any number in a run, few at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from parties.session.party import Party
from parties.session.transport.frames import UNOPENED, BadFrame


def test_a_stream_that_is_opened_counts_no_more_and_once_only() -> None:
    party = Party(0, ("north", "south"), 2, SimpleNamespace())  # type: ignore[arg-type]
    for stream in range(2 * UNOPENED):
        heard = party.inbox(1, stream)
        assert party.inbox(1, stream, opening=True) is heard is party.inbox(1, stream, opening=True)
    for stream in range(UNOPENED):
        party.inbox(1, 10 * UNOPENED + stream)
    with pytest.raises(BadFrame, match="more than 1024 streams"):
        party.inbox(1, 20 * UNOPENED)
    party.inbox(1, 10 * UNOPENED)  # one that is known already
