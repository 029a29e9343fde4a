"""`completion SHELL`: what a shell reads to complete this program's commands, options, files and parties (by
shtab)."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import COMMAND, pip_install
from runner.bench import registry
from runner.commands.cli import parser
from runner.commands.program import bench

_NAMES = r"""awk '/^[ \t]*\[\[/ {inside = /party/; next} /^[ \t]*\[/ {inside = 0}
  inside && /^[ \t]*name[ \t]*=/ {gsub(/^[^=]*=[ \t]*["\047]|["\047][^"\047]*$/, ""); print}'"""
"""Of the parties of study files that are its arguments, one a line."""
PREAMBLE = {
    "bash": f"""\
_cosynth_parties() {{
  local word files=()
  for word in "${{COMP_WORDS[@]}}"; do [[ $word == *.toml && -f $word ]] && files+=("$word"); done
  [[ ${{#files[@]}} -gt 0 ]] && compgen ${{2:+-S "$2"}} -W "$({_NAMES} "${{files[@]}}" 2>/dev/null)" -- "$1"
}}
_cosynth_files() {{
  local before=
  [[ $1 == *=* && $COMP_WORDBREAKS != *=* ]] && before="${{1%%=*}}="
  compgen -f ${{before:+-P "$before"}} -- "${{1#*=}}"
}}
_cosynth_private_files() {{
  [[ $1 == *=* ]] || _cosynth_parties "$1" =
  _cosynth_files "$1"
}}
""",
    "zsh": f"""\
_cosynth_parties() {{
  local -a files parties
  files=(${{(M)words:#*.toml}})
  [[ ${{#files}} -gt 0 ]] && parties=(${{(f)"$({_NAMES} $files 2>/dev/null)"}}) && compadd "$@" -a parties
}}
_cosynth_files() {{
  compset -P '*='
  _files
}}
_cosynth_private_files() {{
  [[ $PREFIX == *=* ]] || _cosynth_parties -S =
  _cosynth_files
}}
""",
    "fish": f"""\
function _cosynth_parties
    set -l files (string match -- '*.toml' (commandline -opc))
    test (count $files) -gt 0; and {_NAMES} $files 2>/dev/null
end
function _cosynth_files
    set -l word (string replace -r -- '^--[a-z-]+=' '' (commandline -ct))
    set -l halves (string split -m1 -- = $word)
    if test (count $halves) -eq 2
        printf "$halves[1]=%s\\n" (__fish_complete_path $halves[2])
    else
        __fish_complete_path "$word"
    end
end
function _cosynth_private_files
    _cosynth_files
    string match -rq '^(--private=)?[^=]*$' -- (commandline -ct)
    and printf '%s=\\n' (_cosynth_parties)
end
""",
}
"""What completes the parties of a study, a FILE that may follow a NAME and `=`, and a party's private file."""
EPILOGUE = {
    "bash": """
# NAME=FILE is three words to bash and one to the program; --option=VALUE three and two.
_cosynth() {
  local words=() word i last=-1 current=0
  for i in "${!COMP_WORDS[@]}"; do
    word="${COMP_WORDS[i]}"
    if [[ $word == = && ${words[last]} == --* ]]; then
      [[ $i -eq $COMP_CWORD ]] && words+=("")
    elif [[ $i -gt 1 && ($word == = || ${words[last]} == *=) ]]; then
      words[last]+="$word"
    else
      words+=("$word")
    fi
    last=$((${#words[@]} - 1))
    [[ $i -eq $COMP_CWORD ]] && current=$last
  done
  local COMP_WORDS=("${words[@]}") COMP_CWORD=$current
  _shtab_cosynth
  for word in "${COMPREPLY[@]}"; do
    [[ $word == *= ]] && { compopt +o filenames -o nospace 2>/dev/null || :; }
  done
}
complete -o bashdefault -F _cosynth cosynth
"""
}


def run(arguments: argparse.Namespace) -> None:
    """Run the command. Raises `UsageError` without shtab."""
    try:
        import shtab
    except ImportError:
        raise UsageError(
            "Completion is written by shtab, which is not installed; run "
            f"`{pip_install(['completion']) or 'python -m pip install shtab'}`."
        ) from None
    shell = arguments.shell
    whole = parser()
    whole.prog = COMMAND
    _complete(whole, shtab.DIRECTORY)
    print(shtab.complete(whole, shell, root_prefix=COMMAND, preamble=PREAMBLE.get(shell, "")))
    print(EPILOGUE.get(shell, ""), end="")


def _complete(parser: argparse.ArgumentParser, directory: object) -> None:
    """Say of each argument of a parser, and of its commands, what completes it, and in one line what they are."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            if "bench" in action.choices:
                action.choices["bench"] = _benchmarks()
            lines = {each.dest: each.help for each in action._get_subactions()}
            for name, inner in action.choices.items():
                inner.description = lines[name]
                _complete(inner, directory)
        elif action.dest == "party":
            vars(action)["complete"] = _function("_cosynth_parties")
        elif action.metavar == "DIR":
            vars(action)["complete"] = directory
        elif action.dest == "private":
            vars(action)["complete"] = _function("_cosynth_private_files")
        elif action.type is Path or "FILE" in str(action.metavar):
            vars(action)["complete"] = _function("_cosynth_files")


def _function(name: str) -> dict[str, str]:
    """A function of the preamble, as each shell calls it."""
    return {"bash": name, "zsh": name, "fish": f"({name})"}


def _benchmarks() -> argparse.ArgumentParser:
    """The arguments of `bench`, which depend on the benchmarks there are."""
    benches = registry.load()
    made = bench.parser(list(benches.values()))
    for action in made._actions:
        if action.dest == "names":
            action.choices, action.help = list(benches), "a benchmark"
    return made
