"""What commands there are, in the order in which a person meets them, by what they are for, each with its
line of help.

The help of the whole command line needs no more than this: what declares a command is imported when that command
is asked for, what carries it out when it is carried out.
"""

from __future__ import annotations

FOLDERS: dict[str, dict[str, str]] = {
    "begin": {
        "demo": "see it work: three custodians, one machine, no questions",
        "init": "write a commented study to start from",
    },
    "prepare": {
        "check": "name every problem before a run",
        "plan": "what a run will do and cost; who learns what",
        "certs": "make, request, sign and show certificates",
        "ids": "try how identifiers are normalised",
        "tally": "count one part of a custodian's table",
    },
    "running": {
        "run": "run a study: all parties here, or one party of a deployment",
        "watch": "follow a run on a page of this machine",
        "contribute": "leave this contributor's counts as a sealed bundle",
        "inbox": "a computing party's inbox for contributors' bundles",
    },
    "using": {
        "sample": "more rows from a finished run, without further budget",
        "query": "a marginal from a finished run, without further budget",
        "infer": "means, shares and regressions of a finished run, with intervals, without further budget",
        "predict": "the label of people, by both owners of a trained model",
        "graph": "a run's graph of columns, or its junction tree, as GraphML",
    },
    "judging": {
        "report": "rebuild a run's report",
        "evaluate": "judge a run's table by real rows (not private)",
        "verify": "recompute what a run claims: files, study, signatures, budget",
        "ledger": "what this custodian's data has spent",
    },
    "program": {
        "completion": "what a shell reads to complete commands, files and parties",
        "bench": "what every protocol costs, beside MPyC and plain NumPy",
        "audit": "attack this build, and see what is found",
        "conformance": "whether an algorithm, a backend or an alignment method keeps its promises",
    },
}
"""By folder of `runner/commands`, and of its `declared/`: names, each a file in both, and what they do."""
TITLES = {
    "begin": "begin",
    "prepare": "prepare",
    "running": "run",
    "using": "use the result, without further budget",
    "judging": "judge it, and keep account",
    "program": "of the program itself",
}
"""Of the folders, in the help of the whole."""
HELP = {name: line for commands in FOLDERS.values() for name, line in commands.items()}


def module_of(name: str) -> str:
    """The module that carries a command out."""
    return f"runner.commands.{_folder(name)}.{name}"


def declaration_of(name: str) -> str:
    """The module that declares its arguments."""
    return f"runner.commands.declared.{_folder(name)}.{name}"


def _folder(name: str) -> str:
    [folder] = (folder for folder, commands in FOLDERS.items() if name in commands)
    return folder
