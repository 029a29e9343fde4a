"""The shape of the project: which package may know which, what never appears in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from mpc_protocols import errors
from runner.version import VERSION
from tests.source_files import nodes, parsed

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
"""Each may import itself and those before it."""
MAX_ROOMS = 16
"""Files and folders of one folder of the product."""


def sources(package: str) -> Iterator[Path]:
    yield from sorted((ROOT / package).rglob("*.py"))


@cache
def imported(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(names)


@pytest.mark.parametrize("package", LAYERS)
def test_imports_point_one_way(package: str) -> None:
    later = (*LAYERS[LAYERS.index(package) + 1 :], "tests")
    for path in sources(package):
        for name in imported(path):
            assert name.split(".")[0] not in later, f"{path} imports {name}"


def test_synth_sees_oracles_only_through_their_interface() -> None:
    for path in sources("synth"):
        for name in imported(path):
            if name.startswith("mpc_protocols."):
                allowed = tuple(
                    f"mpc_protocols.{part}"
                    for part in (
                        "functionality",
                        "errors",
                        "mechanisms",
                        "options",
                        "process.compiled",
                        "process.later",
                        "registry",
                    )
                )
                assert name.startswith(allowed), f"{path} imports {name}"


def beginning(argument: ast.expr) -> str:
    """The text that a sentence begins with, as far as it is written there."""
    while isinstance(argument, ast.BinOp):
        argument = argument.left
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


@pytest.mark.parametrize("package", LAYERS)
def test_sentences_call_parties_in_one_way(package: str) -> None:
    """`mpc_protocols.errors`: Party north .., party north .., without quotation marks."""
    kinds = {kind.__name__ for kind in (errors.CosynthError, *errors.CosynthError.__subclasses__())}  # type: ignore[attr-defined]
    for path in sources(package):
        for node in nodes(path):
            if isinstance(node, ast.JoinedStr):
                for text, value in pairwise(node.values):
                    assert not (
                        isinstance(text, ast.Constant)
                        and isinstance(value, ast.FormattedValue)
                        and re.search(r"\b[Pp]art(y|ies) ['\"]$", str(text.value))
                    ), f"{path}:{node.lineno}"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in kinds
                and node.args
            ):
                assert not re.match(r"part(y|ies)\b", beginning(node.args[0])), f"{path}:{node.lineno}"


SENTENCES = {
    *(kind.__name__ for kind in (errors.CosynthError, *errors.CosynthError.__subclasses__())),  # type: ignore[attr-defined]
    *("ValueError", "TypeError", "RuntimeError", "ArithmeticError"),
}
REASONS = {
    "mpc_protocols/public/steps.py",
    "parties/budget/open_run.py",
    "parties/data/table_names.py",
    "parties/data/tallies/partition.py",
    "parties/session/transport/codec.py",
    "parties/session/transport/frames.py",
    "runner/report/files.py",
    "runner/results/release.py",
    "runner/study/sections/columns.py",
    "runner/study/sections/contributors.py",
    "runner/study/sections/public_files.py",
    "runner/study/sections/receivers.py",
    "runner/study/sections/registered.py",
}
"""Readers whose ValueErrors never leave them: a reason, which the sentence of the caller holds in
parentheses."""
NAMED_BY_USERS = {
    *("backend", "bench", "bins", "data", "edges", "low", "other", "rho", "scale", "step", "values", "zero")
}
NAMED_IN_CODE = {"exp_minus", "exp_plus", "expand_message_xmd"}


def ending(argument: ast.expr) -> str:
    """The text that a sentence ends with; "." where it ends with another sentence, as a whole."""
    while isinstance(argument, ast.BinOp):
        argument = argument.right
    last = argument.values[-1] if isinstance(argument, ast.JoinedStr) else argument
    if isinstance(last, ast.FormattedValue):
        return "." if re.search(r"\bsentence\b|repeated\(\)$", ast.unparse(last.value)) else ""
    return str(last.value) if isinstance(last, ast.Constant) else ""


def written(argument: ast.expr) -> bool:
    """Whether the sentence is written where it is raised, and not asked of a constant or a function."""
    while isinstance(argument, ast.BinOp):
        argument = argument.left
    return isinstance(argument, ast.JoinedStr) or (
        isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    )


@pytest.mark.parametrize("package", LAYERS)
def test_errors_are_sentences_from_a_capital_to_a_full_stop(package: str) -> None:
    """A sentence may begin with a value, or with what users call it: a path, a flag, a key of a file."""
    problems = []
    for path in sources(package):
        name = path.relative_to(ROOT).as_posix()
        for node in nodes(path):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            kind, sentence = node.func.id, node.args[0]
            if kind not in SENTENCES or (kind == "ValueError" and name in REASONS) or not written(sentence):
                continue
            first = beginning(sentence).split(" ")[0]
            named = re.search(r"[/.:]", first) or first in NAMED_BY_USERS | NAMED_IN_CODE
            if first[:1].islower() and not named:
                problems.append(f"{name}:{node.lineno} begins with {first!r}")
            if not ending(sentence).endswith((".", "?", ".)")):
                problems.append(f"{name}:{node.lineno} has no full stop")
    assert not problems, "\n".join(problems)


CUSTOMARY = {"np", "nx", "pa", "pc", "pd", "pq", "sa", "__version__"}
"""Names under which everybody imports NumPy, networkx, Arrow, pandas and SQLAlchemy, and a package's own
version."""


def test_nothing_is_imported_under_another_name() -> None:
    aliases = [
        f"{path}:{node.lineno} imports {name.name} as {name.asname}"
        for package in (*LAYERS, "examples")
        for path in sources(package)
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if name.asname not in {None, *CUSTOMARY}
    ]
    assert not aliases, "\n".join(aliases)


def test_mpyc_runtime_is_imported_in_one_file() -> None:
    """`import mpyc.runtime` parses sys.argv (`docs/design/session.md` 2): it happens once, under a private
    argv."""
    files = {
        path.relative_to(ROOT).as_posix()
        for package in LAYERS
        for path in sources(package)
        if any(name.startswith("mpyc") for name in imported(path))
    }
    assert files == {"parties/session/mpyc_runtime.py"}


def test_phe_and_gmpy2_are_imported_in_one_file() -> None:
    """They are an optional part of the installation, and `phe` has another licence than this project."""
    files = {
        path.relative_to(ROOT).as_posix()
        for package in LAYERS
        for path in sources(package)
        if any(name.split(".")[0] in ("phe", "gmpy2") for name in imported(path))
    }
    assert files == {"mpc_protocols/backends/paillier/keys.py"}


def test_nothing_is_unpickled_or_evaluated() -> None:
    forbidden = re.compile(
        r"\bpickle\.loads?|Unpickler|marshal\.loads|(?<![.\w])(eval|exec)\(|yaml\.load\(|"
        r"allow_pickle\s*=\s*True"
    )
    for package in LAYERS:
        for path in sources(package):
            assert not forbidden.search(path.read_text(encoding="utf-8")), path


def test_no_seeded_or_global_randomness() -> None:
    """Secrets come from the operating system or keyed streams; public post-processing takes a Generator as
    argument."""
    for package in LAYERS:
        for path in sources(package):
            assert not any(name == "random" or name.startswith("random.") for name in imported(path)), path
            assert not re.search(
                r"\bnp\.random\.(seed|rand|randn|normal|choice|randint|laplace|shuffle)\b",
                path.read_text(encoding="utf-8"),
            ), path


def test_public_modules_say_what_they_are_for() -> None:
    for package in LAYERS:
        for path in sources(package):
            module = parsed(path)
            assert not module.body or ast.get_docstring(module), f"{path} has no module docstring"


def test_no_folder_has_more_rooms_than_a_reader_keeps_in_mind() -> None:
    for package in LAYERS:
        for folder in {path.parent for path in sources(package)}:
            rooms = {path.name for path in folder.iterdir() if path.name[0] not in "._"} - {"py.typed"}
            assert len(rooms) <= MAX_ROOMS, f"{folder} has {len(rooms)} files and folders: {sorted(rooms)}"


def test_the_package_has_the_version_that_studies_are_bound_to() -> None:
    assert f'version="{VERSION}"' in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_the_engine_knows_no_backend() -> None:
    """What every backend shares must run over any of them: no backend, and nothing of tables, is imported."""
    for path in sources("mpc_protocols/engine"):
        for name in imported(path):
            if name.startswith("mpc_protocols."):
                allowed = ("engine", "public", "mechanisms", "functionality", "errors", "process", "wire")
                assert name.split(".")[1] in allowed, f"{path} imports {name}"
    for package in ("mpc_protocols/public", "mpc_protocols/mechanisms"):
        for path in sources(package):
            for name in imported(path):
                assert not name.startswith(("mpc_protocols.backends.replicated", "mpc_protocols.engine")), (
                    f"{path} imports {name}"
                )


INPUT_CHANNELS = {"paillier": "pair"}
"""Backends that are another one with another way in for contributors' counts, and which."""


def test_no_backend_rests_on_another() -> None:
    """What two backends need is the engine's: whoever changes one need not know the others."""
    backends = {path.parent.name for path in (ROOT / "mpc_protocols" / "backends").glob("*/backend.py")}
    assert {"replicated", "pair", "shamir"} <= backends
    for backend in backends:
        for path in sources(f"mpc_protocols/backends/{backend}"):
            for name in imported(path):
                others = [
                    other
                    for other in backends - {backend, INPUT_CHANNELS.get(backend)}
                    if name.startswith(f"mpc_protocols.backends.{other}.")
                ]
                assert not others, f"{path} imports {name}"


PRIVATE_ARRAYS = ("mpc_protocols/psu", "mpc_protocols/vertical", "parties/data", "synth/training.py")
"""Where arrays are of somebody's own records."""


@pytest.mark.parametrize("place", PRIVATE_ARRAYS)
def test_arrays_of_own_records_are_not_shown_with_their_object(place: str) -> None:
    """A log or a traceback that shows the object must not show them."""
    whole = ROOT / place
    for path in [whole] if whole.is_file() else sources(place):
        for made in (node for node in nodes(path) if isinstance(node, ast.ClassDef)):
            how = " ".join(map(ast.unparse, made.decorator_list))
            if "dataclass" not in how or "repr=False" in how:
                continue
            for line in (field for field in made.body if isinstance(field, ast.AnnAssign)):
                text = ast.unparse(line)
                hidden = not ast.unparse(line.annotation).startswith("NDArray") or "repr=False" in text
                assert hidden, f"{path}, {made.name}: {text}"
