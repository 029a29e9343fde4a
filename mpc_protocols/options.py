"""Tables of a study: each key is declared once, with its limits, default and meaning, by who reads it.

    @dataclass(frozen=True)
    class AimConfig(Options):
        rounds: int | str = option(10, "whole", "rounds of selection", low=1, high=MAX_ROUNDS, words=("adaptive",))

The study's reader, its JSON Schema, its reference page, the commented template, the public form in run.json
and code that builds a configuration itself all ask the declaration. Standard library only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, Literal

from mpc_protocols.errors import StudyInvalid

Kind = Literal["whole", "number", "decimal", "flag", "text", "word", "texts", "form"]
"""Of a key's values; "decimal": a number that is kept exactly, as a `Fraction`; "texts": a list of different
texts, a tuple where it is read; "form": of a shape of its own, which its table's reader reads."""
Value = int | float | str | bool | tuple[str, ...] | None
Schema = dict[str, Any]
"""Of JSON."""

TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}
FLAG: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer", "minimum": 1}


@dataclass(frozen=True)
class Option:
    """The values that one key may hold.

    low, high: of a whole number, inclusive. above, below: of a number, exclusive. words: texts that are
    allowed beside the kind, or instead of it (kind "word"); or what tells them, where they are found only
    once somebody asks. optional: the default None stands for the key being absent. required: it is never
    absent. help: for the template, and for an optional key an example. meaning: for the reference page,
    Markdown; "" if `help` says it all. fallback: there too, a default that depends on something. shape: the
    values in the words of an error sentence, where the kind does not say enough. form: of kind "form", its
    JSON Schema. path: the value is a path, relative to the file that holds it.
    """

    kind: Kind
    help: str
    low: int = 0
    high: int = 2**63 - 1
    above: float = 0.0
    below: float = math.inf
    words: tuple[str, ...] | Callable[[], Iterable[str]] = ()
    optional: bool = False
    example: Value = None
    required: bool = False
    meaning: str = ""
    fallback: str = ""
    shape: str = ""
    form: Mapping[str, Any] | None = None
    path: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that are allowed beside the kind."""
        return self.words if isinstance(self.words, tuple) else tuple(self.words())

    def allows(self, value: object) -> bool:
        """Whether a value of the file is one that the key may have. True and 1 are different things."""
        if isinstance(value, str):
            plain = self.kind == "text" and bool(value.strip()) and "\0" not in value  # no path may have that
            return plain or value in self.choices
        if isinstance(value, bool):
            return self.kind == "flag"
        if isinstance(value, list | tuple):
            texts = all(isinstance(item, str) and item.strip() for item in value)
            return self.kind == "texts" and texts and len(set(value)) == len(value) > 0
        if self.kind == "whole":
            return isinstance(value, int) and self.low <= value <= self.high
        if self.kind in ("number", "decimal"):
            return (
                isinstance(value, int | float | Fraction)
                and bool(self.above < value < self.below)
                and bool(-sys.float_info.max <= value <= sys.float_info.max)
            )
        return False

    def read(self, value: Any) -> Any:
        """A value that is allowed, as an object holds it."""
        if isinstance(value, list):
            return tuple(value)
        if isinstance(value, bool | str):
            return value
        if self.kind == "decimal":
            return Fraction(str(value))
        return float(value) if self.kind == "number" else value

    @property
    def stand_in(self) -> Any:
        """In place of a required value that is wrong or absent, until all that is wrong has been said."""
        middle = (self.above + min(self.below, self.above + 2)) / 2
        known = {
            "whole": self.low,
            "number": middle,
            "decimal": Fraction(middle),
            "flag": False,
            "texts": ("?",),
        }
        return known.get(self.kind, self.choices[0] if self.choices else "?")

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the values that the key may have."""
        number: Schema = {"type": "number", "exclusiveMinimum": self.above} | (
            {"exclusiveMaximum": self.below} if self.below < math.inf else {}
        )
        whole: Schema = {"type": "integer", "minimum": self.low} | (
            {"maximum": self.high} if self.high < 2**63 - 1 else {}
        )
        plain = {
            "whole": whole,
            "number": number,
            "decimal": number,
            "flag": FLAG,
            "text": TEXT,
            "texts": TEXTS,
            "form": dict(self.form or {}),
        }
        forms = [plain[self.kind]] if self.kind in plain else []
        forms += [{"enum": list(self.choices)}] if self.choices else []
        return {**(forms[0] if len(forms) == 1 else {"anyOf": forms}), "description": self.help}

    @property
    def expected(self) -> str:
        """The values that the key may hold, in the words of an error sentence."""
        upper = f" and less than {self.below:g}" if self.below < math.inf else ""
        most = f" and at most {self.high}" if self.high < 2**63 - 1 else ""
        number = f"a number greater than {self.above:g}{upper}"
        plain = {
            "whole": f"a whole number of at least {self.low}{most}",
            "number": number,
            "decimal": number,
            "flag": "true or false",
            "text": "a non-empty text",
            "texts": "a list of different non-empty texts",
        }.get(self.kind, "")
        parts = [part for part in (self.shape or plain, *(f'"{word}"' for word in self.choices)) if part]
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def option(default: Any, kind: Kind, help: str, **more: Any) -> Any:
    """Declare a field of an `Options` class. A default of None means that the key may be absent. more: fields
    of `Option`."""
    return field(default=default, metadata={"option": Option(kind, help, optional=default is None, **more)})


def required(kind: Kind, help: str, **more: Any) -> Any:
    """Declare a field whose key must be there; otherwise as `option`."""
    return field(default=None, metadata={"option": Option(kind, help, required=True, **more)})


@dataclass(frozen=True)
class Options:
    """A table of the study. Subclasses are frozen dataclasses whose fields are all made by `option` or
    `required`.

    Values are checked where an object is built: raises `StudyInvalid` naming the key.
    """

    def __post_init__(self) -> None:
        for name, declared in self.options().items():
            value = getattr(self, name)
            if declared.kind != "form" and not (
                declared.allows(value) or (value is None and declared.optional)
            ):
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
    def schema(cls) -> Schema:
        """The JSON Schema of the table: its keys and no others."""
        declared = cls.options()
        needed = [name for name, option in declared.items() if option.required]
        return {
            "type": "object",
            "properties": {name: option.schema for name, option in declared.items()},
            "additionalProperties": False,
            **({"required": needed} if needed else {}),
        }

    @classmethod
    def template(cls, column: int, *chosen: str) -> str:
        """Commented TOML lines of keys with their defaults, comments beginning at a column; absent keys as
        comments.

        chosen: which keys; default: all.
        """
        lines, defaults = [], cls.defaults()
        for name, declared in cls.options().items():
            if chosen and name not in chosen:
                continue
            value = declared.example if defaults[name] is None else defaults[name]
            line = f"{'# ' if declared.optional else ''}{name} = {written(value)}"
            words = "".join(f'; or "{word}"' for word in declared.choices if word != value)
            lines.append(f"{line:<{column - 1}} # {declared.help}{words}")
        return "\n".join(lines)

    def public(self) -> dict[str, Any]:
        """JSON-able form with every default filled in; keys that are absent are left out."""
        values = {name: getattr(self, name) for name in self.options()}
        return {
            name: list(value)
            if isinstance(value, tuple)
            else dict(value)
            if isinstance(value, Mapping)
            else float(value)
            if isinstance(value, Fraction)
            else value
            for name, value in values.items()
            if value is not None
        }


def written(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return (
        f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    )
