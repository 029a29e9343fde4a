"""Reading one TOML table with all its problems: every value is checked where it is read, nothing stops at the
first.

A reader method returns a usable value even when it noted a problem (the default, or one that is valid), so
that the rest of the file is still looked at; the caller throws everything away as soon as one problem is on
the list. The sentences echo what the file holds: study files are public, private files are the reader's own.
"""

from __future__ import annotations

import difflib
import math
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import Option, Options
from mpc_protocols.process import foreign_text
from mpc_protocols.process.foreign_toml import parse_toml
from mpc_protocols.process.installation import program
from parties.data.files.absent import meant_beside
from runner.failures import reason
from runner.study.declared.syntax import syntax_sentence

Own = TypeVar("Own", bound=Options)

TABLES = (".csv", ".tsv", ".parquet", ".xlsx", ".xls")
"""How names of files end that people take for studies."""


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file. Raises `StudyInvalid` naming the file, and line and column of a syntax error."""
    text = ""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors write its mark
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        if path.suffix.lower() in TABLES:
            raise _table_instead(path) from None
        raise StudyInvalid(syntax_sentence(path, text, str(error))) from None
    except UnicodeDecodeError as error:
        if path.suffix.lower() in TABLES:
            raise _table_instead(path) from None
        line = error.object.count(b"\n", 0, error.start) + 1
        raise StudyInvalid(f"{path}: line {line} is not UTF-8; save the file as UTF-8.") from None
    except IsADirectoryError:
        inside = f"{path / 'study.toml'}" if (path / "study.toml").is_file() else "a file in it"
        raise StudyInvalid(f"{path}: cannot be read, for it is a directory; name {inside}.") from None
    except OSError as error:
        hint = "" if os.path.lexists(path) else meant_beside(path)
        raise StudyInvalid(f"{path}: cannot be read ({reason(error)}){hint}; check the path.") from None
    except RecursionError:
        raise StudyInvalid(f"{path}: nested too deeply; `{program()} init` writes an example.") from None


def nearest(word: str, choices: Iterable[str]) -> str:
    """`; did you mean "x"?`-style ending for a mistyped word, or an empty string."""
    by_letters = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(word.casefold(), list(by_letters), 1, 0.6)
    return f' (did you mean "{by_letters[close[0]]}"?)' if close else ""


def _table_instead(path: Path) -> StudyInvalid:
    return StudyInvalid(
        f"{path} looks like a table, not like a study or a private file, which names it as `data`; "
        f"`{program()} init DIR --from {path}` proposes a study's columns from it."
    )


def private_instead(file: str, tree: Mapping[str, Any]) -> str:
    """The sentence about a private file that is given as a study; an empty text if it is none."""
    if "study" in tree or "party" in tree or not {"data", "ledger", "harmonise", "csv"} & tree.keys():
        return ""
    return f"{file}: looks like a party's private file, not like a study; name it by --private, after the study's file."


def study_instead(file: str, tree: Mapping[str, Any]) -> str:
    """The sentence about a study that is given as a private file; an empty text if it is none."""
    if not {"study", "privacy", "party"} <= tree.keys():
        return ""
    return (
        f"{file}: looks like a study, not like a party's private file, which has its data, and stays with it."
    )


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them."""
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def value_text(value: object) -> str:
    """A value of the file, short enough for a sentence."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = f'"{value}"'
    else:
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Table:
    """One table of a file and the list of problems it shares with the file's other tables."""

    def __init__(
        self,
        raw: object,
        file: str,
        where: str,
        known: Iterable[str] | type[Options],
        problems: list[str],
        homes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """homes: of keys of the file's other tables, the table that has them."""
        self.file, self.where, self.problems = file, where, problems
        self.raw: Mapping[str, Any] = {}
        if isinstance(raw, dict):
            self.raw = raw
        else:
            self.problem(f"must be a table, got {value_text(raw)}")
        names = tuple(known.options() if isinstance(known, type) else known)
        for key in self.raw:
            if key not in names:
                hint = f"; it belongs under {homes[key]}" if key in homes else nearest(key, names)
                self.problem(f'unknown key "{key}"{hint}; known here: {", ".join(names)}')

    def problem(self, sentence: str, key: str | None = None) -> None:
        """Note a problem with this table, or with one of its keys."""
        place = " ".join(part for part in (self.where, key) if part)
        self.problems.append(
            foreign_text.printable(f"{self.file}: {place}{' ' if place else ''}{sentence}.", line=True)
        )

    def under(self, key: str) -> Table:
        """The value of a key as the `data` of a table of its own, for readers of that key."""
        return Table({"data": self.raw[key]}, self.file, f"{self.where} {key}:", ("data",), self.problems)

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def _bad(self, key: str, expected: str) -> None:
        if key in self.raw:
            self.problem(f"must be {expected}, got {value_text(self.raw[key])}", key)
        else:
            self.problem(f"is missing: it must be {expected}", key)

    def text(self, key: str, default: str | None = None, *, expected: str = "a non-empty text") -> str:
        """A non-empty string without NUL, which no path may have; without a default it must be there."""
        value = self.raw.get(key, default)
        if isinstance(value, str) and value.strip() and "\0" not in value:
            return value
        self._bad(key, expected)
        return default or "?"

    def place(self, key: str, base: Path, expected: str = "a path") -> Path:
        """A path, relative to `base`, or from a home directory (~); it must be there."""
        try:
            return (base / os.path.expanduser(self.text(key, expected=expected))).resolve()
        except (OSError, RuntimeError):  # links in a circle
            self._bad(key, expected)
            return base

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the words of the contract; a typo is answered with the choices."""
        value = self.raw.get(key, default)
        if isinstance(value, str) and value in choices:
            return value
        if isinstance(value, str):
            self.problem(f'must be {listed(choices)}, got "{value}"{nearest(value, choices)}', key)
        else:
            self._bad(key, listed(choices))
        return default or choices[0]

    def integer(self, key: str, default: int | None = None, *, low: int, high: int = 2**63 - 1) -> int:
        """A whole number in low..high; without a default it must be there."""
        value = self.raw.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self._bad(
            key, f"a whole number of at least {low}" + (f" and at most {high}" if high < 2**63 - 1 else "")
        )
        return default if default is not None else low

    def number(
        self, key: str, default: float | None = None, *, above: float = 0.0, below: float = math.inf
    ) -> float | int:
        """A finite number strictly between the bounds; without a default it must be there."""
        value = self.raw.get(key, default)
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and -sys.float_info.max <= value <= sys.float_info.max  # a whole number may be larger
            and above < value < below
        ):
            return value
        upper = f" and less than {below:g}" if below < math.inf else ""
        self._bad(key, f"a number greater than {above:g}{upper}")
        return default if default is not None else (above + min(below, above + 2)) / 2

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.raw.get(key, default)
        if isinstance(value, bool):
            return value
        self._bad(key, "true or false")
        return default

    def option(self, key: str, declared: Option, default: Any) -> Any:
        """The value of a declared key; a mistyped word is answered with the nearest."""
        value = self.raw.get(key, default)
        if declared.kind == "form" or (key not in self.raw and not declared.required):
            return default
        if declared.allows(value):
            return declared.read(value)
        if key not in self.raw:
            self._bad(key, declared.expected)
        else:
            hint = nearest(value, declared.choices) if isinstance(value, str) else ""
            self.problem(f"must be {declared.expected}, got {value_text(value)}{hint}", key)
        return declared.stand_in if declared.required else default

    def options(self, kind: type[Own]) -> Own:
        """A whole table of declared keys; those of a form of their own as if they were absent."""
        defaults = kind.defaults()
        return kind(
            **{key: self.option(key, option, defaults[key]) for key, option in kind.options().items()}
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """A non-empty list of different non-empty strings."""
        value = self.raw.get(key)
        if (
            isinstance(value, list)
            and value
            and all(isinstance(item, str) and item for item in value)
            and len(set(value)) == len(value)
        ):
            return tuple(value)
        self._bad(key, "a list of different names")
        return ()
