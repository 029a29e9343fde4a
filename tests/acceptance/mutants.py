"""One-line mutations of product code, and whether a test fails for each. Not a test: figures.

    nice -n 10 python -m tests.acceptance.mutants --resume FILE [--seed 1] [--count 200] [--only synth/budget] [--files 12]
        [--cpu 60] [--again]

Lines are drawn alike from all that can be changed in `mpc_protocols`, `synth`, `parties` and `runner`, without what is beside
the product, words only, or itself a test (`LEFT_OUT`; the audit has broken builds), and one change on each: an operator, a
comparison, a constant, a negated condition, two swapped arguments, a refusal or a check that is gone. The change is made in a
copy of the tree; the developer's is only read.

Tests are the `--files` test files nearest to the module: of its name, in the folder that mirrors its own, then by imports. They
run until one fails or `--cpu` CPU seconds are used (children's too), those marked slow last. A failure counts if the same
test passes without the change, and so does a test that no longer ends. A line of JSON a mutant goes to `--resume`, and
what is there is not done twice; `--again` tries those that survived once more, say with more files. Mutants that change nothing
anybody can see are listed in `mutants_equivalent.txt` with the reason.

Why not a library: mutmut needs the whole suite's statistics first and does not touch module level, cosmic-ray has one command
for all mutants and a clock for its limit; neither draws a sample or checks that the failing test passes without the change.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[2]
PACKAGES = ("mpc_protocols", "synth", "parties", "runner")
LEFT_OUT = re.compile(r"/(bench|research|report|demo|audit|conformance|version\.py|(linked_)?words\.py)(/|$)")
ON_BYTES = "tests/transcripts/test_transcripts.py"
"""Runs of every backend with fixed coins: the last resort."""
CHANGES = (
    "< <=,<= <,> >=,>= >,== !=,!= ==,in not_in,not_in in,is is_not,is_not is,and or,or and,+ -,- +,* +,/ *,// *,% //,** *,"
    "<< >>,>> <<,& |,| &,^ &,@ *"
)
OTHER = {
    old.replace("_", " "): new.replace("_", " ") for old, new in (pair.split() for pair in CHANGES.split(","))
}
TOKEN = re.compile(rb"not\s+in|is\s+not|<<|>>|<=|>=|==|!=|\*\*|//|[-+*/%&|^@<>]|\b(?:and|or|in|is)\b")
CHECK = re.compile(r"_?(check|refuse|require|need|expect|verify|confirm|ensure)(_\w+)?")
ALIKE = {"isinstance", "issubclass", "min", "max"}
OUTCOME, CPU = "COSYNTH_MUTANT_OUTCOME", "COSYNTH_MUTANT_CPU"
TEST_S = 120
"""A test that waits so long, by the clock, for what does not come has failed: it must pass without the change."""


@dataclass(frozen=True)
class Mutant:
    """One change: bytes [start, end) of a file become `put`; `before` and `after` are its line, stripped."""

    path: str
    line: int
    start: int
    end: int
    put: bytes
    kind: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """The same wherever its line has gone."""
        return f"{self.path}: {self.before} => {self.after}"


class Sites:
    """Every change of one file's source."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.starts = [0, *(match.end() for match in re.finditer(b"\n", source))]

    def _at(self, node: ast.AST, *, end: bool = False) -> int:
        where: Any = node
        if end:
            return int(self.starts[where.end_lineno - 1] + where.end_col_offset)
        return int(self.starts[where.lineno - 1] + where.col_offset)

    def _mutant(self, kind: str, start: int, end: int, put: bytes) -> Mutant:
        line = self.source.count(b"\n", 0, start)
        left, right = self.starts[line], self.source.find(b"\n", end)
        head, tail = self.source[left:start], self.source[end:right]
        before, after = (
            " ".join((head + of + tail).decode().split()) for of in (self.source[start:end], put)
        )
        return Mutant(self.path, line + 1, start, end, put, kind, before, after)

    def _node(self, kind: str, node: ast.AST, put: bytes) -> Mutant:
        return self._mutant(kind, self._at(node), self._at(node, end=True), put)

    def _text(self, node: ast.AST) -> bytes:
        return self.source[self._at(node) : self._at(node, end=True)]

    def _operator(self, kind: str, left: ast.AST, right: ast.AST) -> Iterator[Mutant]:
        begin = self._at(left, end=True)
        if found := TOKEN.search(self.source, begin, self._at(right)):
            put = OTHER[" ".join(found[0].decode().split())].encode()
            yield self._mutant(kind, found.start(), found.end(), put)

    def of(self, node: ast.AST, parent: ast.AST | None = None) -> Iterator[Mutant]:
        """Of a node and all below it, without annotations, decorators, words and what only shows an object."""
        match node:
            case ast.FunctionDef(name="__repr__" | "__str__") | ast.JoinedStr() | ast.arg():
                return
            case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.If(test=ast.Compare(left=ast.Name("__name__"))):
                return
            case ast.Raise():
                if isinstance(parent, ast.If):
                    yield self._node("refusal gone", node, b"pass")
                return
            case ast.Call(func=ast.Name("print")) | ast.keyword(arg="help" | "metavar" | "description"):
                return
            case ast.Expr(value=ast.Call(func=called) | ast.Await(value=ast.Call(func=called))):
                if CHECK.fullmatch(str(getattr(called, "id", getattr(called, "attr", "")))):
                    yield self._node("check gone", node, b"pass")
            case ast.Compare(left=left, comparators=[right]):
                yield from self._operator("comparison", left, right)
            case ast.BinOp(left=left, right=right, op=op):
                if not (_is_text(left) or _is_text(right) or (isinstance(op, ast.BitOr) and _is_type(right))):
                    yield from self._operator("operator", left, right)
            case ast.BoolOp(values=[left, right, *_]):
                yield from self._operator("and, or", left, right)
            case ast.AugAssign(target=left, value=right):
                yield from self._operator("operator", left, right)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield self._node("sign", node, self._text(operand))
            case ast.Constant(value=bool() | int() | float() as value):
                more = value * 2 or 1.0 if isinstance(value, float) else value + 1
                yield self._node(
                    "constant", node, str(not value if isinstance(value, bool) else more).encode()
                )
            case ast.Call(
                args=[ast.Name() | ast.Attribute() as left, ast.Name() | ast.Attribute() as right, *_]
            ):
                one, two = self._text(left), self._text(right)
                if one != two and getattr(node.func, "id", "") not in ALIKE:
                    between = self.source[self._at(left, end=True) : self._at(right)]
                    yield self._mutant(
                        "swapped", self._at(left), self._at(right, end=True), two + between + one
                    )
        test = node.test if isinstance(node, ast.If | ast.IfExp) else None
        if test and not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield self._node("negated", test, b"(not (" + self._text(test) + b"))")
        for field, below in ast.iter_fields(node):
            if field not in {"annotation", "returns", "decorator_list", "type_params"}:
                for child in below if isinstance(below, list) else [below]:
                    if isinstance(child, ast.AST):
                        yield from self.of(child, node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_type(node: ast.AST) -> bool:
    """Whether an operand of `|` looks like a type."""
    name = getattr(node, "id", getattr(node, "attr", ""))
    none = isinstance(node, ast.Constant) and node.value is None
    return (
        none
        or isinstance(node, ast.Subscript)
        or name[:1].isupper()
        or name in {"int", "str", "float", "bytes"}
    )


def _python(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def drawn(seed: int, count: int, only: str) -> list[Mutant]:
    """`count` mutants on as many lines. Each line has its place in the order by seed, file and text alone: others may change."""
    lines: dict[tuple[bytes, int], list[Mutant]] = {}
    for path in _python(*PACKAGES):
        name, source = str(path.relative_to(ROOT)), path.read_bytes()
        if name.startswith(only) and not LEFT_OUT.search(name):
            for mutant in Sites(name, source).of(ast.parse(source)):
                place = hashlib.sha256(f"{seed} {name} {mutant.before}".encode()).digest()
                lines.setdefault((place, mutant.line), []).append(mutant)
    found = []
    for place, line in sorted(lines)[:count]:
        of = lines[place, line]
        of = [mutant for mutant in of if mutant.kind != "swapped"] or of  # mypy sees most of those
        found.append(of[int.from_bytes(place[8:16], "big") % len(of)])
    return found


@cache
def _importers() -> dict[Path, set[Path]]:
    """Of each file of this repository: the files that import it, anywhere in them."""
    found: dict[Path, set[Path]] = {}
    for file in _python(*PACKAGES, "cosynth", "tests"):
        names = set[str]()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        for place in (ROOT.joinpath(*name.split(".")) for name in names):
            for imported in (place.with_suffix(".py"), place / "__init__.py"):
                found.setdefault(imported, set()).add(file)
    for command in _python("runner/commands"):  # which the command line loads by name
        found.setdefault(command, set()).add(ROOT / "runner/commands/cli.py")
    return found


def nearest(module: str, count: int) -> list[str]:
    """Test files that reach a module by imports: by steps, those of its name, in its mirrored folder and with its words first."""
    target, mirrored = ROOT / module, ROOT / "tests" / Path(module).parent
    while not mirrored.is_dir():
        mirrored = mirrored.parent
    steps, queue, order = {target: 0}, deque([target]), []
    while queue:
        file = queue.popleft()
        for importer in _importers().get(file, set()) - steps.keys():
            steps[importer] = steps[file] + 1
            queue.append(importer)
    for path in (ROOT / "tests").glob("*/**/test_*.py"):
        if path in steps:
            name, text = (
                target.stem if target.stem != "__init__" else target.parent.name,
                path.read_text("utf-8"),
            )
            said = sum(text.count(word) for word in {name, target.parent.name})
            near = 3 * (name in path.stem) + 2 * (mirrored in path.parents) + min(said, 40) / 20
            distance = min(steps[path], 5) - near
            order.append((distance, path.stat().st_size, str(path.relative_to(ROOT))))
    names = [name for _, _, name in sorted(order)]
    return [name for name in names[:count] if name != ON_BYTES] + [ON_BYTES] * (ON_BYTES in names)


# What follows is pytest's: in the process of the tests this file is a plug-in.


def _used_s(*whose: int) -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in whose)


def pytest_configure() -> None:
    """A failing example is enough: none is made smaller."""
    phases = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]
    settings.register_profile("mutants", settings.get_profile("cosynth"), phases=phases)
    settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes last."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


def pytest_runtest_logreport(report: pytest.TestReport | pytest.CollectReport) -> None:
    """The first failure is the outcome; a file that cannot be imported fails as a test does."""
    if report.failed:
        Path(os.environ[OUTCOME]).write_text(report.nodeid, encoding="utf-8")


pytest_collectreport = pytest_runtest_logreport


def pytest_runtest_logfinish() -> None:
    """No further test once the time is used."""
    if _used_s(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) > float(os.environ[CPU]):
        pytest.exit("the CPU seconds are used", returncode=0)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(exitstatus: int) -> Generator[None, None, None]:
    """Threads of a test that hangs are not waited for."""
    yield
    sys.stdout.flush()
    os._exit(exitstatus)


def run(copy: Path, tests: list[str], cpu_s: int) -> tuple[str, str, float]:
    """How tests end in the copy ("passed", "failed", "hung"), the test that failed, and CPU seconds."""
    outcome, before = copy / "outcome", _used_s(resource.RUSAGE_CHILDREN)
    outcome.unlink(missing_ok=True)
    environment = os.environ | {"PYTHONPATH": str(copy), OUTCOME: str(outcome), CPU: str(cpu_s)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = f"-x -q -p no:cacheprovider -p no:xdist -p tests.acceptance.mutants -o timeout={TEST_S}".split()
    with (copy / "output").open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            start_new_session=True,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (3 * cpu_s, 3 * cpu_s + 5)),
        )
        code = child.wait()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what the tests started and left
    failed = outcome.read_text(encoding="utf-8") if outcome.exists() else "no test ran" * (code not in (0, 5))
    fate = "hung" if code < 0 else "failed" if failed else "passed"
    return fate, failed, _used_s(resource.RUSAGE_CHILDREN) - before


def judge(copy: Path, mutant: Mutant, files: int, cpu_s: int, clean: dict[str, bool]) -> dict[str, object]:
    """Run one mutant: its record. `clean`: of tests that have failed, whether they pass without a change."""
    tests, path = nearest(mutant.path, files), copy / mutant.path
    source, stat = path.read_bytes(), path.stat()
    path.write_bytes(source[: mutant.start] + mutant.put + source[mutant.end :])
    stamp = stat.st_mtime - random.randrange(1, 10**8)  # compiled anew, although of the same size
    os.utime(path, (stamp, stamp))
    try:
        fate, by, used = run(copy, tests, cpu_s) if tests else ("passed", "no test imports it", 0.0)
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    again = [by] if "::" in by or by.endswith(".py") else tests
    key = " ".join(again)
    if fate != "passed" and key not in clean:
        clean[key] = run(copy, again, cpu_s)[0] == "passed"
    verdict = {"passed": "survived"}.get(fate, "caught" if clean.get(key) else "unjudged")
    record = {
        "name": mutant.name,
        "line": mutant.line,
        "kind": mutant.kind,
        "fate": verdict,
        "by": by or fate,
    }
    return record | {"files": len(tests), "cpu_s": round(used, 1)}


def main() -> None:
    """See the file's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="", help="start of the paths, such as synth/budget")
    parser.add_argument("--resume", type=Path, required=True)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--cpu", type=int, default=60)
    parser.add_argument("--again", action="store_true", help="those that survived, once more")
    given = parser.parse_args()
    lines = given.resume.read_text(encoding="utf-8").splitlines() if given.resume.exists() else []
    done = {(record["name"], record["line"]): record for record in map(json.loads, lines)}
    listed = (Path(__file__).parent / "mutants_equivalent.txt").read_text(encoding="utf-8").splitlines()
    equivalent = {line for line in listed if line and not line.startswith(("#", " "))}
    clean = {str(record["by"]): True for record in done.values() if record["fate"] == "caught"}
    mutants = drawn(given.seed, given.count, given.only)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, suppress(KeyboardInterrupt):
        copy, ignored = Path(folder) / "tree", (".git", ".venv*", ".mypy_cache", "build", "dist")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*ignored))
        for mutant in mutants:
            fate = done.get((mutant.name, mutant.line), {}).get("fate")
            if mutant.name in equivalent or (fate and not (given.again and fate == "survived")):
                continue
            record = judge(copy, mutant, given.files, given.cpu, clean)
            done[mutant.name, mutant.line] = record
            with given.resume.open("a", encoding="utf-8") as file:
                print(json.dumps(record), file=file)
            print(*(record[key] for key in ("fate", "cpu_s", "name", "by")), sep="  ", flush=True)
    fates = ("caught", "survived", "equivalent", "unjudged", "not run")
    print(f"| package | {' | '.join(fates)} |\n|---|---|---|---|---|---|")
    for package in (*PACKAGES, ""):
        found = Counter(
            "equivalent" if of.name in equivalent else done.get((of.name, of.line), {}).get("fate", "not run")
            for of in mutants
            if of.path.startswith(package)
        )
        print(f"| {package or 'all'} | {' | '.join(str(found[fate]) for fate in fates)} |")


if __name__ == "__main__":
    main()
