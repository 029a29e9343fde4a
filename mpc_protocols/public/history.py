"""What a computing party keeps of a run so that it can go on after a crash (`docs/design/resume.md`).

The steps of a run are a function of the study and of what was opened. So a run that is resumed repeats its
public part: each release that is opened already is taken from the history, its inputs compared by their hash,
and nothing of it is computed. Between computing a release and opening it a party holds its shares of the
result; the parties agree that they do, by the exchange of transcripts that precedes every opening, and only
then open. So after a crash either all hold the shares of a release, and it is finished from these, without
fresh noise; or it was opened nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sharing:
    """What the check of contributors' inputs came to when marginals were shared in the session of this id.

    left_out: contributors, from then on. rows: of a session's first sharing this party's shares of each
    contributor's number of rows, else nothing.
    """

    session: bytes
    left_out: tuple[int, ...]
    rows: bytes


class History(Protocol):
    """One party's. number: of a step; inputs: the 32 bytes of all its public inputs (`public.begun`).

    What is asked about a number that is known for other inputs raises `ProtocolAborted`.
    """

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64] | None:
        """What the step opened to, int64 of one axis; None if that is not known."""

    def held(self, number: int, inputs: bytes) -> bytes | None:
        """The shares from which all parties are to open the step; None if it must be computed."""

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        """Put this party's shares of the result on disk: durable on return, before anything of it is opened."""

    def agreed(self, number: int) -> None:
        """All parties hold their shares of the result: from now on it may have been opened somewhere; durable
        on return."""

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        """Record what the step opened to."""

    def sharings(self) -> dict[bytes, Sharing]:
        """By the inputs of the step that asked for them, those on which a result rests that is opened or held
        by all, earlier ones first: they are repeated as they were. Asked at the beginning of an attempt."""

    def keep_sharing(self, inputs: bytes, left_out: Sequence[int], rows: bytes) -> None:
        """Record a sharing of this session: durable when the next result is held."""


class NoHistory:
    """Of a run that is not to be resumed: tests, benchmarks."""

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64] | None:
        """Nothing is known."""
        return None

    def held(self, number: int, inputs: bytes) -> bytes | None:
        """Nothing is held."""
        return None

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        """Keep nothing."""

    def agreed(self, number: int) -> None:
        """Keep nothing."""

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        """Keep nothing."""

    def sharings(self) -> dict[bytes, Sharing]:
        """Nothing is known."""
        return {}

    def keep_sharing(self, inputs: bytes, left_out: Sequence[int], rows: bytes) -> None:
        """Keep nothing."""


NO_HISTORY: History = NoHistory()
