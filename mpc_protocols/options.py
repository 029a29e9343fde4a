"""Tables of a study that belong to one algorithm or backend: each key is declared once, with its limits, default and meaning.

    @dataclass(frozen=True)
    class AimConfig(Options):
        rounds: int | str = option(10, whole(1, MAX_ROUNDS), words=("adaptive",), help="rounds of selection")

The study's reader, the commented template, the public form in run.json and code that builds a configuration itself all ask the
declaration. Standard library only.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from mpc_protocols.errors import StudyInvalid

Kind = Literal["whole", "number", "flag", "text", "word", "texts"]
"""Of a key's values; "texts": a list of different texts, a tuple where it is read."""
Value = int | float | str | bool | tuple[str, ...] | None


@dataclass(frozen=True)
class Option:
    """The values that one key may hold.

    low, high: of a whole number, inclusive. above, below: of a number, exclusive. words: texts that are allowed beside the
    kind, or instead of it (kind "word"). optional: the default None stands for the key being absent. help: for the template, and
    for an optional key an example.
    """

    kind: Kind
    help: str
    low: int = 0
    high: int = 2**63 - 1
    above: float = 0.0
    below: float = math.inf
    words: tuple[str, ...] = ()
    optional: bool = False
    example: Value = None

    def allows(self, value: object) -> bool:
        """Whether a value of the file is one that the key may have. True and 1 are different things."""
        if isinstance(value, str):
            return value in self.words or (self.kind == "text" and bool(value.strip()))
        if isinstance(value, bool):
            return self.kind == "flag"
        if isinstance(value, list | tuple):
            texts = all(isinstance(item, str) and item.strip() for item in value)
            return self.kind == "texts" and texts and len(set(value)) == len(value) > 0
        if self.kind == "whole":
            return isinstance(value, int) and self.low <= value <= self.high
        if self.kind == "number":
            return (
                isinstance(value, int | float)
                and self.above < value < self.below
                and abs(value) <= sys.float_info.max
            )
        return False

    @property
    def expected(self) -> str:
        """The values that the key may hold, in the words of an error sentence."""
        upper = f" and less than {self.below:g}" if self.below < math.inf else ""
        most = f" and at most {self.high}" if self.high < 2**63 - 1 else ""
        plain = {
            "whole": f"a whole number of at least {self.low}{most}",
            "number": f"a number greater than {self.above:g}{upper}",
            "flag": "true or false",
            "text": "a non-empty text",
            "word": "",
            "texts": "a list of different non-empty texts",
        }[self.kind]
        return " or ".join(part for part in (plain, *(f'"{word}"' for word in self.words)) if part)


def option(
    default: Any,
    kind: Kind,
    help: str,
    *,
    low: int = 0,
    high: int = 2**63 - 1,
    above: float = 0.0,
    below: float = math.inf,
    words: tuple[str, ...] = (),
    example: Value = None,
) -> Any:
    """Declare a field of an `Options` class. A default of None means that the key may be absent."""
    declared = Option(kind, help, low, high, above, below, words, default is None, example)
    return field(default=default, metadata={"option": declared})


@dataclass(frozen=True)
class Options:
    """A table of the study. Subclasses are frozen dataclasses whose fields are all made by `option`.

    Values are checked where an object is built: raises `StudyInvalid` naming the key.
    """

    def __post_init__(self) -> None:
        for name, declared in self.options().items():
            value = getattr(self, name)
            if not (declared.allows(value) or (value is None and declared.optional)):
                raise StudyInvalid(f"The option {name} must be {declared.expected}, got {value!r}.")

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The keys, those of the class itself before those it inherits."""
        inherited = {key.name for parent in cls.__mro__[1:] if is_dataclass(parent) for key in fields(parent)}
        keys = sorted(fields(cls), key=lambda key: key.name in inherited)
        return {key.name: key.metadata["option"] for key in keys}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The value of every key that the table leaves out."""
        return {declared.name: declared.default for declared in fields(cls)}

    @classmethod
    def template(cls, column: int) -> str:
        """Commented TOML lines of all keys with their defaults, comments beginning at a column; absent keys as comments."""
        lines, defaults = [], cls.defaults()
        for name, declared in cls.options().items():
            value = declared.example if defaults[name] is None else defaults[name]
            line = f"{'# ' if declared.optional else ''}{name} = {_toml(value)}"
            words = "".join(f'; or "{word}"' for word in declared.words if word != value)
            lines.append(f"{line:<{column - 1}} # {declared.help}{words}")
        return "\n".join(lines)

    def public(self) -> dict[str, Any]:
        """JSON-able form with every default filled in; keys that are absent are left out."""
        values = {name: getattr(self, name) for name in self.options()}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None
        }


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return (
        f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    )
