"""What is public of a run, with the released values held fixed: for `tests.acceptance.accounts`.

A run in the clear on one table is recorded. Then the same study is run on other tables of its first
custodian, all answers are computed, and the recorded ones are given out in their place. What is public is
then a function of the same released values, so that every byte of it must be the same; what differs has found
another way out. The clock ticks once each time that it is asked.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import re
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from mpc_protocols.backends.ideal.cohorts import IdealCohorts
from mpc_protocols.backends.ideal.oracle import IdealOracle
from runner.__main__ import main
from runner.party.record import events
from tests.runner import small

CLOCKS = ("seconds",)


def variants(rows: Sequence[small.Row]) -> Mapping[str, list[small.Row]]:
    """Other tables of a custodian, each of which fits the study."""
    rng = np.random.default_rng(9)
    first = dict(rows[0])
    return {
        "one row fewer": list(rows[1:]),
        "one row more, outside all bounds": [*rows, {**first, "age": "-99999999", "income": "1e300"}],
        "one row more, all that may be missing": [*rows, {**first, "work": "", "income": ""}],
        "one row": list(rows[:1]),
        "no rows": [],
        "all rows alike": [first] * len(rows),
        "rows in another order": [rows[int(at)] for at in rng.permutation(len(rows))],
        "everything outside": [{**row, "age": "999", "income": "-5e17"} for row in rows],
        "every value missing that may be": [{**row, "work": "", "income": ""} for row in rows],
        "as many rows as are allowed": [rows[at % len(rows)] for at in range(4096)],
    }


class Answers:
    """What was released, by the order of the questions."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.at: int | None = None

    def given(self, compute: Callable[[], Any]) -> Any:
        """The answer that is computed, or the one on record."""
        answer = compute()
        if self.at is None:
            self.kept.append(answer)
            return answer
        self.at += 1
        return self.kept[self.at - 1]

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """The next run's questions are numbered from the first one on; the first run is kept."""
        released = IdealOracle._released

        def of_oracle(oracle: Any, begun: Any, compute: Callable[[], Any]) -> Any:
            return released(oracle, begun, lambda: self.given(compute))

        def of_cohorts(name: str) -> Callable[..., Any]:
            real = getattr(IdealCohorts, name)
            return lambda cohorts, *asked, **more: self.given(lambda: real(cohorts, *asked, **more))

        with (
            patch.object(IdealOracle, "_released", of_oracle),
            patch.object(IdealCohorts, "sum", of_cohorts("sum")),
            patch.object(IdealCohorts, "popular", of_cohorts("popular")),
            patch.object(IdealCohorts, "reveal", of_cohorts("reveal")),
            patch.object(secrets, "token_bytes", random.Random(1).randbytes),
            patch.object(secrets, "randbits", random.Random(2).getrandbits),
        ):
            yield
        self.at = 0


def public_of(path: Path, out: Path, allow: Path, answers: Answers) -> dict[str, object]:
    """Everything that a reader of the results can see, without clocks: by file, and the exit."""
    output, complaint = io.StringIO(), io.StringIO()
    ticks = itertools.count()
    clock = SimpleNamespace(
        monotonic=lambda: next(ticks) / 100
    )  # so that times tell how often they were asked for
    with (
        answers.recorded(),
        patch.object(events, "time", clock),
        patch.object(events.Meter, "started", datetime(2026, 1, 1, tzinfo=UTC)),
        redirect_stdout(output),
        redirect_stderr(complaint),
    ):
        code = main(["run", str(path), "--out", str(out), "--private", f"north={allow}"])
    found: dict[str, object] = {"exit code": code, "stderr": complaint.getvalue()}
    said = re.sub(
        r"\n.*: model of .*", "", output.getvalue()
    )  # fits that took long are told, with their time
    found["stdout"] = re.sub(r"[0-9.]+ s\b|" + re.escape(str(out)), "", said)
    for file in sorted(out.rglob("*")):
        name = str(file.relative_to(out))
        if file.is_dir() or name.startswith("parties") or file.name in (".cosynth", "cosynth.log"):
            continue
        content = file.read_bytes()
        if file.suffix in (".json", ".jsonl"):
            lines = content.decode().splitlines() if file.suffix == ".jsonl" else [content.decode()]
            found[name] = json.dumps([_timeless(json.loads(line)) for line in lines])
        elif file.suffix == ".npz":
            with zipfile.ZipFile(file) as archive:
                found[name] = [(each, archive.read(each)) for each in sorted(archive.namelist())]
        else:
            found[name] = content
    log = (out / "cosynth.log").read_text().splitlines()
    found["cosynth.log"] = [re.sub(r"^[0-9:., -]+", "", line).replace(str(out), "") for line in log]
    return found


def _timeless(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _timeless(value) for key, value in content.items() if key not in CLOCKS}
    return [_timeless(each) for each in content] if isinstance(content, list) else content


def differences(write: Callable[[Path], Path]) -> dict[str, list[str]]:
    """By variant: the names of what is public and differs. write: the study; the first custodian's table is
    written anew."""
    with tempfile.TemporaryDirectory() as folder:
        base, answers = Path(folder), Answers()
        allow, path = base / "allow.toml", write(base / "study")
        allow.write_text("allow_empty = true\n")
        os.environ["COSYNTH_LEDGER"] = str(base / "ledger.db")
        rows, first, found = small.rows(1, 300), dict[str, object](), dict[str, list[str]]()
        for name, table in {"": list(rows), "the same again": list(rows), **variants(rows)}.items():
            small.write_csv(base / "study" / "north.csv", table)
            told = public_of(path, base / "out", allow, answers)
            shutil.rmtree(base / "out")
            if not name:
                first = told
            else:
                found[name] = [key for key in {**first, **told} if first.get(key) != told.get(key)]
        return found
