"""A check: one property of a version, with a name. A suite is a list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from mpc_protocols.errors import CosynthError

E = TypeVar("E", bound=BaseException)


class NonconformingError(AssertionError):
    """A version does not do what its kind promises; the message says which promise and what it did instead."""


@dataclass(frozen=True)
class Check:
    """Call it: it returns, or raises `NonconformingError`.

    subject: the version, e.g. 'backend "pair"'. name: the property, in words; unlike any other of the suite.
    """

    subject: str
    name: str
    body: Callable[[], None] = field(repr=False)

    def __call__(self) -> None:
        try:
            self.body()
        except NonconformingError as error:
            raise NonconformingError(f"{self}: {error}") from error.__cause__
        except Exception as error:  # whatever a version does wrong, the check names it
            raise NonconformingError(
                f"{self}: it raised {type(error).__name__} ({error}) where nothing should fail."
            ) from error

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"


def expect(condition: object, sentence: str) -> None:
    """Raise unless the condition holds. sentence: what was expected, and what came."""
    if not condition:
        raise NonconformingError(sentence)


@contextmanager
def refusal(kinds: type[E] | tuple[type[E], ...], of: str) -> Iterator[list[E]]:
    """The block must raise one of these errors, which is put into the list. of: what must be refused, in
    words."""
    caught: list[E] = []
    names = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    try:
        yield caught
    except kinds as error:
        caught.append(error)
        if isinstance(error, CosynthError):
            _expect_sentence(error.sentence)
        return
    except Exception as error:
        raise NonconformingError(
            f"{of} must raise {names}, and raised {type(error).__name__} ({error})."
        ) from error
    raise NonconformingError(f"{of} must raise {names}, and nothing was raised.")


def _expect_sentence(sentence: str) -> None:
    expect(sentence.strip(), "An error must say in a sentence what happened.")
