"""The commands of `cosynth`, two files each: `declared/` holds their arguments and their help, and loads the
standard library only; what carries them out imports what that takes at its head, and is imported when a
command is carried out (`carried_out_by`)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import as_started
from runner.commands.listing import HELP, module_of

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
Run = Callable[[argparse.Namespace], None]
Around = Callable[[argparse.Namespace], AbstractContextManager[None]]


def command(
    commands: Commands, name: str, run: Run, *, help: str = "", description: str, examples: str
) -> argparse.ArgumentParser:
    """Declare a command whose `--help` says what it is for and shows it in use. help: the line of a command
    within another; the others' are in `runner.commands.listing`."""
    parser = commands.add_parser(
        name,
        help=help or HELP[name],
        description=as_started(description),
        epilog="examples:\n" + as_started(examples),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def carried_out_by(
    name: str, function: str = "run", *, alone: bool = False, around: Around = lambda _: nullcontext()
) -> Run:
    """A function of this command's module, which is imported when it is called.

    alone: the command does all the work in this process, of which NumPy shall know when it is loaded
    (`one_thread`). around: entered before anything of the command is imported, and left when it is done.
    """

    def carry_out(arguments: argparse.Namespace) -> None:
        if alone:
            one_thread()
        with around(arguments):
            getattr(import_module(module_of(name)), function)(arguments)

    return carry_out


def whole_number(text: str) -> int:
    """A count as people write it: 100000, 100_000 or 1e5. For argparse, which says so of what is none, and of
    1.000, which is a thousand to some."""
    try:
        number = Decimal(text)
        pointed = "." in text and "e" not in text.lower()
        if not pointed and number == number.to_integral_value() and abs(number) < 10**15:
            return int(number)
    except (ArithmeticError, ValueError):
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number such as 1000 or 1e5, got {text!r}")


def may_replace(parser: argparse.ArgumentParser, option: str = "--out", what: str = "a file there") -> None:
    """Declare --replace of a command that writes a file (`outdir.spare`)."""
    parser.add_argument("--replace", action="store_true", help=f"with {option}: {what} may be replaced")


def one_thread() -> None:
    """Have this process multiply in one thread, unless the user has said how many: before NumPy is imported,
    in a command that does all the work itself. None of its products is large enough for a second thread,
    which would only spin."""
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def private_path(text: str) -> Path:
    """For argparse: `--private FILE` of a command that has one party, or NAME=FILE as commands of several have it."""
    name, equals, file = text.partition("=")
    return Path(file) if name and equals and file and not Path(text).exists() else Path(text)


def private_file_of_one(given: Sequence[str], party: str) -> Path | None:
    """`--private FILE`, or as without `--party` NAME=FILE of this party. Raises `UsageError`."""
    if len(given) > 1:
        raise UsageError("--private is given twice; a party has one private file.")
    if not given:
        return None
    path = Path(os.path.expanduser(given[0]))
    name, equals, file = given[0].partition("=")
    if not equals or path.exists():
        return path
    if name != party:
        raise UsageError(
            f"--private {given[0]} is of {name}, and --party says {party}; name {party}'s own private file."
        )
    return Path(os.path.expanduser(file))


def private_files_of_all(given: Sequence[str]) -> dict[str, Path]:
    """`--private NAME=FILE`... without `--party`, by party. Raises `UsageError`."""
    files: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise UsageError(
                f"--private {text} belongs to one party: name it with --party NAME, or write --private NAME=FILE when all "
                "parties are here."
            )
        if name in files:
            raise UsageError(f"--private is given twice for {name}; a party has one private file.")
        files[name] = Path(os.path.expanduser(file))
    return files
