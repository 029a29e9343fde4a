"""`completion SHELL`: what a shell reads to complete this program's commands, options, files and parties (by
shtab)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import COMMAND, pip_install
from runner.commands import command

if TYPE_CHECKING:
    from runner.commands import Commands

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = """\
Print what a shell reads so that the tab key completes commands, options, files, and, after the name of a
study file, its parties. Needs shtab, which the extra `completion` brings.
"""
EXAMPLES = """\
  cosynth completion bash > ~/.local/share/bash-completion/completions/cosynth
  cosynth completion zsh > ~/.zfunc/_cosynth
  cosynth completion fish > ~/.config/fish/completions/cosynth.fish
"""
_NAMES = r"""awk '/^\[\[party\]\]/ {inside = 1; next} /^\[/ {inside = 0}
  inside && /^name *=/ {gsub(/^name *= *"|".*$/, ""); print}'"""
"""Of the parties of study files that are its arguments, one a line."""
PREAMBLE = {
    "bash": f"""\
_cosynth_parties() {{
  local word files=()
  for word in "${{COMP_WORDS[@]}}"; do [[ $word == *.toml && -f $word ]] && files+=("$word"); done
  [[ ${{#files[@]}} -gt 0 ]] && compgen -W "$({_NAMES} "${{files[@]}}" 2>/dev/null)" -- "$1"
}}
""",
    "zsh": f"""\
_cosynth_parties() {{
  local -a files parties
  files=(${{(M)words:#*.toml}})
  [[ ${{#files}} -gt 0 ]] && parties=(${{(f)"$({_NAMES} $files 2>/dev/null)"}}) && compadd -a parties
}}
""",
    "fish": f"""\
function _cosynth_parties
    set -l files (string match -- '*.toml' (commandline -opc))
    test (count $files) -gt 0; and {_NAMES} $files 2>/dev/null
end
""",
}
PARTIES = {"bash": "_cosynth_parties", "zsh": "_cosynth_parties", "fish": "(_cosynth_parties)"}


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "completion", run, description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> None:
    """Run the command. Raises `UsageError` without shtab."""
    try:
        import shtab
    except ImportError:
        raise UsageError(
            "Completion is written by shtab, which is not installed; run "
            f"`{pip_install(['completion']) or 'python -m pip install shtab'}`."
        ) from None
    from runner.commands.cli import parser

    whole = parser()
    whole.prog = COMMAND
    _complete(whole, shtab.FILE, shtab.DIRECTORY)
    print(
        shtab.complete(
            whole, arguments.shell, root_prefix="cosynth", preamble=PREAMBLE.get(arguments.shell, "")
        )
    )


def _complete(parser: argparse.ArgumentParser, file: object, directory: object) -> None:
    """Say of each argument of a parser, and of its commands, what completes it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete(inner, file, directory)
        elif action.dest == "party":
            vars(action)["complete"] = PARTIES
        elif action.metavar == "DIR":
            vars(action)["complete"] = directory
        elif action.type is Path or "FILE" in str(action.metavar):
            vars(action)["complete"] = file
