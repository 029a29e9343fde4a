"""`bench peers` beside a tree that only looks like MP-SPDZ: what is refused, run in turns, compared and written; and beside a
real one where the environment names it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import CosynthError, UsageError
from parties.data.scratch import Scratch
from runner.bench import registry
from runner.bench.benches.peers import BENCH
from runner.bench.peers import comparison, machines, programme
from runner.bench.peers.comparison import Compared, Turn
from runner.bench.peers.machines import PeerRun
from runner.bench.peers.page import Page
from runner.bench.peers.protocols import PROTOCOLS
from runner.bench.peers.steps import STEPS
from runner.bench.peers.tree import Tree
from tests.worlds import mp_spdz

REAL = os.environ.get("MP_SPDZ")
BY_NAME = {protocol.name: protocol for protocol in PROTOCOLS}
SIZES = {"cells": 640, "bits": 17, "candidates": 5}
OPTIONS = ["--cells", "640", "--bits", "17", "--candidates", "5"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return mp_spdz.make(tmp_path / "tree", "replicated-ring", "ps-rep-ring")


def runs_of(tree: Path, protocol: str, step: str, times: int = 1) -> Iterator[PeerRun]:
    """Of the tree alone, without ours beside it."""
    of, taken = BY_NAME[protocol], next(each for each in STEPS if each.name == step)
    ours = taken.ours(of, SIZES)
    with Scratch() as place:
        here = Tree.of(tree)
        here.make_certificates(place)
        arguments = taken.arguments(ours)
        name = here.compile(place, of, [taken.bench, *map(str, (*arguments, 0))], arguments[0])
        for _ in range(times):
            found = machines.run(here, of, place, name, taken.inputs(ours))
            taken.check(of, ours, found.results)
            yield found


@pytest.mark.slow
def test_both_sides_run_in_turns_and_are_written_on_one_page(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def noting(module: Any, name: str, side: str) -> None:
        whole = getattr(module, name)

        def noted(*arguments: Any) -> Any:
            order.append(side)
            return whole(*arguments)

        monkeypatch.setattr(module, name, noted)

    noting(machines, "run", "theirs")
    noting(comparison, "_own", "ours")
    json_file, html_file = tmp_path / "lines.jsonl", tmp_path / "page.html"
    options = ["--protocols", "replicated-ring", "--steps", "scores,select", "--turns", "2", *OPTIONS]
    BENCH.command(["--mp-spdz", str(tree), *options, "--json", str(json_file), "--html", str(html_file)])
    assert order == ["theirs", "ours"] * 2 * 2
    lines = [json.loads(line) for line in json_file.read_text().splitlines()]
    assert [line["step"] for line in lines] == ["scores", "select"]
    for line in lines:
        assert len(line["turns"]) == 2
        for turn in line["turns"]:
            assert turn["theirs"]["wall_s"] == pytest.approx(
                0.27
            )  # of the slowest party, and not the warm-up's
            assert turn["theirs"]["bytes_sent"] == [2_000_000] * 3 and turn["theirs"]["rounds"] == 20
            assert len(turn["ours"]["bytes_sent"]) == 3 and turn["ours"]["rounds"] > 0
    said, page = capsys.readouterr().out, html_file.read_text()
    for text in (said, page):
        assert "640 cells of 17 bits in 5 candidates" in text and "replicated-ring-party.x" in text
        assert "Not built in that tree, and not measured: shamir-party.x" in text
        assert "Better than Cosynth: " in text and "no noise" in text
    assert (
        sum(line.startswith("run P0 of 3 -o no_memory_output cosynth") for line in mp_spdz.log_of(tree)) == 4
    )


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_a_step_is_compared_with_numpy(tree: Path, step: str) -> None:
    runs = runs_of(tree, "replicated-ring", step, 2)
    assert len(next(runs).results) == {"scores": 5, "multiply": 1, "rounds": 16}.get(step, 1)
    (tree / "mood").write_text("wrong")
    with pytest.raises(CosynthError, match="another result than NumPy in the step"):
        next(runs)


def test_an_arg_max_may_be_any_of_the_largest() -> None:
    step, protocol = next(each for each in STEPS if each.name == "select"), PROTOCOLS[0]
    ours = step.ours(protocol, SIZES)
    sums = step.expected(ours)
    assert len(sums) == 5 and len(set(sums.tolist())) > 1
    for position, total in enumerate(sums):
        assert step.equal(np.array([position]), ours) == (total == sums.max())
    assert not step.equal(np.array([5]), ours) and not step.equal(np.array([-1]), ours)


def test_only_the_counted_repetition_counts_and_cpu_is_read_where_the_system_tells(tree: Path) -> None:
    first, second = runs_of(tree, "replicated-ring", "scores", 2)
    for found in (first, second):
        assert found.wall_s == pytest.approx(0.27) and found.bytes_sent == (2_000_000,) * 3
        assert found.rounds == 20
        assert found.cpu_s is None or (len(found.cpu_s) == 3 and min(found.cpu_s) >= 0)
    found_by = [line for line in mp_spdz.log_of(tree) if line.startswith("compile")]
    assert found_by == [f"compile -E ring -R 64 -b 100000 {programme.NAME} scores 640 5 17 0 0"]


@pytest.mark.parametrize(("mood", "words"), [("dies", "handshake failed"), ("dies later", "mac_fail")])
def test_a_party_that_ends_early_is_told_and_none_is_left(tree: Path, mood: str, words: str) -> None:
    (tree / "mood").write_text(mood)
    with pytest.raises(CosynthError, match=f"ended before its result was there: .*{words}"):
        next(runs_of(tree, "replicated-ring", "scores"))
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tree).encode() in _bytes(path)]
    assert not left


def test_what_is_made_ahead_is_part_of_the_figures(tree: Path) -> None:
    [found] = runs_of(tree, "ps-rep-ring", "scores")
    assert f"-o no_memory_output -b 128 {programme.NAME}" in mp_spdz.log_of(tree)[-1]  # in five batches
    assert found.bytes_sent == (3_000_000,) * 3 and found.rounds == 25  # means of both repetitions
    assert found.wall_s == pytest.approx(0.395)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_folder_that_is_no_tree_or_an_empty_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no tree of MP-SPDZ: compile\.py is not in it"):
        BENCH.command(["--mp-spdz", str(tmp_path)])
    mp_spdz.make(tmp_path / "bare")
    with pytest.raises(UsageError, match=r"has none of replicated-ring-party\.x, .*; compile one"):
        BENCH.command(["--mp-spdz", str(tmp_path / "bare")])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--protocols", "semi2k"], r"has no semi2k-party\.x"),
        (["--protocols", "yao"], "'yao' is not one of replicated-ring"),
        (["--steps", "sort"], "'sort' is not one of scores"),
        (["--turns", "0"], "--turns must be from 1"),
        (["--cells", "1e3,1e4"], "--cells takes one value here, got 2"),
        (["--cells", "4"], "bench scores beside replicated-ring: 64 candidates need at least as many cells"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(
    tree: Path, options: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        BENCH.command(["--mp-spdz", str(tree), *options])
    assert not (tree / "log").exists()


def test_what_mp_spdz_s_own_programs_say_is_passed_on(tree: Path) -> None:
    (tree / "mood").write_text("no compiler")
    with pytest.raises(
        UsageError, match=r"compile\.py for replicated-ring-party\.x failed: CompilerError: no such type\."
    ):
        next(runs_of(tree, "replicated-ring", "scores"))
    (tree / "Scripts/setup-ssl.sh").write_text("echo no openssl here\n")
    with pytest.raises(UsageError, match="made no certificates: no openssl here"):
        next(runs_of(tree, "replicated-ring", "scores"))


def test_the_compiler_s_own_modules_are_not_compiled_into_the_tree(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tree / "Compiler").mkdir(exist_ok=True)
    (tree / "Compiler/__init__.py").touch()
    compiler = tree / "compile.py"
    text = compiler.read_text()
    compiler.write_text("import Compiler\n" + text)
    with Scratch() as place:
        Tree.of(tree).compile(place, BY_NAME["replicated-ring"], ["scores", "640", "5", "17", "0", "0"], 640)
        assert list(place.rglob("*.pyc"))
    assert not list(tree.rglob("__pycache__"))


def test_losses_stand_at_the_head_and_ratios_are_of_one_turn() -> None:
    step, protocol = STEPS[0], PROTOCOLS[0]

    def run(wall: float, sent: int) -> PeerRun:
        return PeerRun(wall, (wall, wall, wall), (sent, 1, 1), 7, ())

    turns = (Turn(run(1.0, 10_000), run(2.0, 1000), 0.5), Turn(run(4.0, 10_000), run(4.0, 1000), 3.0))
    one = Compared(step, protocol, step.ours(protocol, SIZES), turns)
    page = Page.of([one], PROTOCOLS[1:], "abc", 2)
    assert [loss.split(" of `")[0] for loss in page.losses] == ["wall", "CPU of all parties"]
    assert page.losses[0].endswith("1.33 times as good")
    rows = {row[0]: row[1:] for row in page.sections[0].blocks[0].rows}
    assert rows["wall"] == ("2.5s (1s - 4s)", "3s (2s - 4s)", "0.75 (0.5 - 1)")
    assert rows["bytes sent by the busiest party"] == ("10 kB", "1 kB", "10")
    assert rows["rounds"] == ("7", "7", "1")
    assert "load 0.5 to 3" in page.where and "MP-SPDZ abc" in page.where


def test_every_protocol_stands_beside_a_backend_that_can_do_its_steps() -> None:
    assert isinstance(registry.load()["peers"], registry.Survey)
    for protocol in PROTOCOLS:
        assert protocol.backend in {backend.name for backend in BACKENDS}
        assert set(protocol.also) <= {step.name for step in STEPS if not step.of_all}
        for step in STEPS:
            comparison.kernel_of(step, protocol, step.ours(protocol, SIZES))


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="MP_SPDZ, in the environment, names a compiled tree of MP-SPDZ")
def test_mp_spdz_itself_comes_to_numpys_results() -> None:
    assert REAL is not None
    for protocol in Tree.of(Path(REAL)).built():
        for step in STEPS:
            if step.of_all or step.name in protocol.also:
                [found] = runs_of(Path(REAL), protocol.name, step.name)
                assert found.rounds > 0 and min(found.bytes_sent) > 0
