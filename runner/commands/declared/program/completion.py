"""The arguments of `completion`, and its help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

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


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "completion", carried_out_by("completion"), description=DESCRIPTION, examples=EXAMPLES
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
