"""The command line (`docs/reference/command-line.md`): parsing, help that teaches, and one sentence and exit
code for every failure.

Each command is declared by a file in a folder of `runner/commands/declared` with `add(commands)`, which says its
arguments and who carries it out: a function of the parsed arguments in the file of the same name in
`runner/commands`. Importing this file and the declarations loads the standard library only, so that help and
what is mistyped are answered at once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import as_started, program
from runner.commands.listing import FOLDERS, HELP, TITLES, declaration_of
from runner.failures import complain, describe
from runner.version import VERSION

PURPOSE = """\
Organisations that do not trust each other make one differentially private synthetic table
from their separate data. Nobody ever holds all of it: three of them compute on secret shares,
and only differentially private results are opened.
"""
SEQUENCE = """\
see it work on this machine:
  cosynth demo

a study of your own:
  cosynth init mystudy                      a commented study to start from
  cosynth check mystudy/study.toml          every problem in one go
  cosynth plan mystudy/study.toml           rounds, bytes, time, epsilon; who learns what
  cosynth run mystudy/study.toml --out out  all parties on this machine: a rehearsal

between organisations, at each one (the study file is the same everywhere):
  cosynth certs make study.toml --out certs           once, at one place
  cosynth check study.toml --party north --private north.toml --connect
  cosynth run study.toml --party north --private north.toml --out out

afterwards, without further budget:
  cosynth sample out --rows 100000
  cosynth query out age income
  cosynth infer out "mean(age)"             means, shares, regressions, with intervals
  cosynth graph out                         which columns the model connects, as GraphML
  cosynth evaluate out --real people.csv    how good the table is, for who holds real rows
  cosynth verify out                        an auditor's recomputation of what the run claims
  cosynth ledger show

exit codes:
  0 done   1 internal error   2 usage   10 study invalid   20 peer unreachable or port in use
  21 peer identity   22 studies differ   30 data does not fit the study   40 protocol aborted
  41 peer lost   50 budget refused   60 no room, memory or descriptors   130 interrupted
"""
_CHOICE = re.compile(r"(argument .*: invalid choice: )'(.*)' \(choose from (.*)\)$", re.DOTALL)
_TYPE = re.compile(r"invalid (int|float) value: (.*)$", re.DOTALL)
_WANTED = {"int": "must be a whole number such as 10", "float": "must be a number such as 0.5"}
_UNKNOWN = "unrecognized arguments: "
_GIVEN = "options given"
"""Where parsed arguments keep which options have a value already: no name that an option can have."""
_DASHES = "-\N{EN DASH}\N{EM DASH}"
"""What an option begins with, as editors and web pages also write it."""


class _Once(argparse._StoreAction):
    """An option that takes one value: a second, other one is refused, not silently the one that counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """As an action of argparse's."""
        given = vars(namespace).setdefault(_GIVEN, {})
        if option_string and repr(given.setdefault(self.dest, values)) != repr(values):  # nan is not nan
            raise argparse.ArgumentError(self, "is given twice, with two values; leave one out")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one sentence, like every other failure, and names what may have
    been meant."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("action", None, _Once)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {self._meant(message)}; see `{self.prog} --help`.")

    def _meant(self, message: str) -> str:
        from runner.study.declared.table import nearest  # only who mistypes waits for it

        if choice := _CHOICE.match(message):
            said, listed = choice[2], re.findall(r"[\w.-]+", choice[3])
            return message if not (close := nearest(said.lower(), listed)) else f"{choice[1]}'{said}'{close}"
        if kind := _TYPE.search(message):
            return f"{message[: kind.start()]}{_WANTED[kind[1]]}, got {kind[2]}"
        if message.startswith(_UNKNOWN):
            said = message.removeprefix(_UNKNOWN).split()[0]
            name = said.lstrip(_DASHES).partition("=")[0] if said[0] in _DASHES else ""
            return message + nearest(name, self._options()).replace('"', '"--', 1)
        return message

    def of_one_dash(self, given: Sequence[str]) -> str:
        """A hint for `-out DIR`, which is read as `-o ut DIR`; empty if there is none such."""
        names = self._options()
        for word in given:
            if word[:1] == "-" and word[1:] in names and len(word) > len("-o"):
                return f'; did you mean "-{word}"?'
        return ""

    def one_each(self, given: Sequence[str], unknown: str) -> str:
        """A hint for `--from a.csv b.csv`, of an option that is written once for each; empty if there is none
        such."""
        before = given[: given.index(unknown)] if unknown in given else []
        option = next((word for word in reversed(before) if word[:1] == "-"), "")
        if isinstance(self._option_string_actions.get(option), argparse._AppendAction):
            return f"; write {option} before each"
        return ""

    def late(self, arguments: argparse.Namespace, words: list[str]) -> list[str]:
        """Add words behind an option to the command's arguments, if it has any number of these: argparse ends them
        at the first option. Gives back what is still unknown."""
        for action in self._actions:
            if action.nargs == argparse.ZERO_OR_MORE and not action.option_strings and not action.type:
                setattr(arguments, action.dest, [*getattr(arguments, action.dest), *words])
                return []
        return words

    def _options(self) -> list[str]:
        """Names of all options of this parser."""
        options = [option for action in self._actions for option in action.option_strings]
        return [option.removeprefix("--") for option in options if option.startswith("--")]

    def of_command(self, given: Sequence[str]) -> Parser:
        """The parser of the command that was asked for, or this one."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for at, word in enumerate(given):
                    if isinstance(inner := action.choices.get(word), Parser):
                        return inner.of_command(given[at + 1 :])
        return self


class Main(Parser):
    """The whole command line, whose help shows the commands by what they are for."""

    def format_help(self) -> str:
        """See `argparse.ArgumentParser`."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        (listed,) = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        told = {action.dest: action for action in listed._get_subactions()}
        formatter.start_section("commands")
        for folder, names in FOLDERS.items():
            formatter.start_section(TITLES[folder])
            formatter.add_arguments([told[name] for name in names if name in told])
            formatter.end_section()
        formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def parser(asked: Collection[str] = tuple(HELP)) -> Parser:
    """The command line. asked: the commands whose arguments it takes; without any it takes their names only,
    for the help of the whole."""
    whole = Main(
        prog=program(),
        description=PURPOSE,
        epilog=as_started(SEQUENCE),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("-V", "--version", action="version", version=f"cosynth {VERSION}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for name in asked:
        import_module(declaration_of(name)).add(commands)
    if not asked:
        for name, line in HELP.items():
            commands.add_parser(name, help=line)
    return whole


def _refuse_empty(given: Sequence[str]) -> None:
    """Raise `UsageError` for a word without any letter: a shell's variable that is not set, which would be
    read as this directory or as a party without a name."""
    for before, word in zip(("", *given), given, strict=False):
        option, equals, value = word.partition("=") if word.startswith("--") else (before, "=", word)
        if equals and not value.strip():
            where = f"the value of {option}" if option.startswith("-") else "an argument"
            raise UsageError(
                f"{program()}: {where} is empty; write it out, or look whether a variable of the shell is not set."
            )


def main(argv: Sequence[str] | None = None, embedded: Mapping[str, object] | None = None) -> int:
    """Run one command; returns its exit code. Standard error gets the final sentence of a failure and nothing
    else.

    embedded: arguments that no command line can give (`run`: way_in).
    """
    try:
        given = sys.argv[1:] if argv is None else argv
        if not given:
            print(parser(()).format_help())
            raise UsageError(
                f"{program()}: name a COMMAND, one of those above; `{program()} demo` shows what it is."
            )
        if given[0] in ("help", "version"):  # as people ask elsewhere
            given = [*given[1:], f"--{given[0]}"] if given[0] == "help" else ["--version"]
        _refuse_empty(given)
        whole = parser(HELP.keys() & given[:1])
        if given[0].startswith("-") and given[0] not in whole._option_string_actions:
            follows = "; options stand after the COMMAND" if HELP.keys() & set(given) else ""
            whole.error(f"{_UNKNOWN}{given[0]}{follows}")
        arguments, unknown = whole.parse_known_args(given)
        if unknown and not any(word[0] in _DASHES for word in unknown):
            unknown = whole.of_command(given).late(arguments, unknown)
        if unknown:
            of = whole.of_command(given)
            hint = "" if unknown[0][0] in _DASHES else of.of_one_dash(given) or of.one_each(given, unknown[0])
            of.error(f"{_UNKNOWN}{' '.join(unknown)}{hint}")
        vars(arguments).update(embedded or {})
        arguments.run(arguments)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # the reader has seen enough (`... | head`); keep the interpreter from complaining about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as error:  # argparse, after --help and --version
        return error.code if isinstance(error.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        code, sentence = describe(error)
        complain(sentence)
        return code
