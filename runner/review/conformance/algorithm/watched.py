"""Oracles that write down a conversation, and that repeat one without any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Handle, Level, MarginalOracle
from mpc_protocols.in_memory.relayed_oracle import RelayedOracle
from runner.review.conformance.checks import expect


@dataclass(frozen=True)
class Asked:
    """One question and its answer. models: the model's counts that came with it. known: row bound and noisy
    total after it."""

    kind: str
    arguments: tuple[Any, ...]
    models: tuple[NDArray[np.float64], ...] = ()
    answer: Any = None
    known: tuple[int, float | None] = (0, None)

    def __str__(self) -> str:
        return f"{self.kind}{self.arguments}"

    def same(self, other: Asked) -> bool:
        """Whether the questions are: all arguments equal, the model's counts to nine digits."""
        return (
            (self.kind, self.arguments) == (other.kind, other.arguments)
            and len(self.models) == len(other.models)
            and all(
                mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, atol=1e-9)
                for mine, theirs in zip(self.models, other.models, strict=True)
            )
        )


@dataclass
class Conversation:
    """All questions and answers of a run, and the cliques of the handles."""

    entries: list[Asked] = field(default_factory=list)
    cliques: dict[Handle, Clique] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)

    def of(self, kind: str) -> list[Asked]:
        """The questions of one kind, in order."""
        return [entry for entry in self.entries if entry.kind == kind]

    @property
    def measured(self) -> list[tuple[Clique, NDArray[np.int64]]]:
        """Every measured marginal, in order."""
        return [
            (self.cliques[handle], cells)
            for entry in self.of("measure")
            for handle, cells in zip(entry.arguments[0], entry.answer, strict=True)
        ]


class _Questions(MarginalOracle):
    """Every question as an `Asked` without its answer."""

    def _ask(self, kind: str, arguments: tuple[Any, ...], models: Sequence[NDArray[np.float64]] = ()) -> Any:
        raise NotImplementedError

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        handles: list[Handle] = self._ask("prepare", (tuple(cliques), tuple(levels)))
        return handles

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        exact = (*weights, *penalties, epsilon)
        expect(
            all(isinstance(number, Fraction) for number in exact),
            "weights, penalties and epsilon of a selection must be Fractions.",
        )
        asked = (tuple(handles), tuple(weights), tuple(penalties), epsilon, picks, tuple(conflicts))
        positions: list[int] = self._ask("select", asked, answers)
        return positions

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        each = [sigma2] * len(handles) if isinstance(sigma2, Fraction) else list(sigma2)
        expect(all(isinstance(number, Fraction) for number in each), "the noise must be Fractions.")
        noisy: list[NDArray[np.int64]] = self._ask("measure", (tuple(handles), tuple(each)))
        return noisy

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        values: NDArray[np.int64] = self._ask("distances", (tuple(handles), sigma2), answers)
        return values

    def total(self, sigma2: Fraction) -> int:
        value: int = self._ask("total", (sigma2,))
        return value


class Watched(_Questions, RelayedOracle):
    """Passes every question on and writes down the conversation. wild: measured counts come back as nonsense
    of any size."""

    def __init__(self, oracle: MarginalOracle, wild: np.random.Generator | None = None) -> None:
        super().__init__(oracle)
        self.conversation, self._wild = Conversation(), wild

    def _ask(self, kind: str, arguments: tuple[Any, ...], models: Sequence[NDArray[np.float64]] = ()) -> Any:
        of = self.oracle
        if kind == "select":
            handles, weights, penalties, epsilon, picks, conflicts = arguments
            answer: Any = of.select(handles, models, weights, penalties, epsilon, picks, conflicts)
        elif kind == "distances":
            answer = of.distances(arguments[0], models, arguments[1])
        else:
            answer = getattr(of, kind)(*arguments)
        if kind == "measure" and self._wild is not None:
            answer = [self._nonsense(cells) for cells in answer]
        said = self.conversation
        if kind == "prepare":
            said.cliques |= dict(zip(answer, arguments[0], strict=True))
            said.levels |= {level.name: level for level in arguments[1]}
        kept = tuple(np.array(model) for model in models)
        said.entries.append(Asked(kind, arguments, kept, answer, (of.row_bound, of.noisy_total)))
        return answer

    def _nonsense(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        assert self._wild is not None
        scale = 10 ** self._wild.uniform(-1, 5)
        return np.asarray(cells + self._wild.normal(0, scale, cells.shape), np.int64)


class Repeated(_Questions):
    """Gives the answers of a conversation again, in order, and stops at the first question that was not asked
    there."""

    def __init__(self, of: Watched) -> None:
        self.facts = of.facts
        self._entries = list(of.conversation.entries)
        self._known: tuple[int, float | None] = (of.facts.row_cap, None)

    @property
    def row_bound(self) -> int:
        return self._known[0]

    @property
    def noisy_total(self) -> float | None:
        return self._known[1]

    @property
    def left(self) -> int:
        """Questions that have not been asked again."""
        return len(self._entries)

    def _ask(self, kind: str, arguments: tuple[Any, ...], models: Sequence[NDArray[np.float64]] = ()) -> Any:
        asked = Asked(kind, arguments, tuple(models))
        expect(self._entries, f"after the same answers it must not ask {asked}, for nothing followed before.")
        due = self._entries.pop(0)
        expect(
            asked.same(due),
            f"after the same answers it must ask the same; it asked {asked} instead of {due}.",
        )
        self._known = due.known
        return due.answer
