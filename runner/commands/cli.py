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
from typing import NoReturn

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
_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one sentence, like every other failure, and names what may have
    been meant."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {self._meant(message)}; see `{self.prog} --help`.")

    def _meant(self, message: str) -> str:
        from runner.study.declared.table import nearest  # only who mistypes waits for it

        if choice := _CHOICE.match(message):
            said, listed = choice[2], re.findall(r"[\w.-]+", choice[3])
            return message if not (close := nearest(said.lower(), listed)) else f"{choice[1]}'{said}'{close}"
        if message.startswith(_UNKNOWN):
            said = message.removeprefix(_UNKNOWN).split()[0]
            name = said.lstrip("-").partition("=")[0] if said.startswith("--") else ""
            return message + nearest(name, self._options()).replace('"', '"--', 1)
        return message

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
    whole.add_argument("--version", action="version", version=f"cosynth {VERSION}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for name in asked:
        import_module(declaration_of(name)).add(commands)
    if not asked:
        for name, line in HELP.items():
            commands.add_parser(name, help=line)
    return whole


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
        if given[0] == "help":  # as people ask elsewhere
            given = [*given[1:], "--help"]
        whole = parser(HELP.keys() & given[:1])
        arguments, unknown = whole.parse_known_args(given)
        if unknown:
            whole.of_command(given).error(_UNKNOWN + " ".join(unknown))
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
