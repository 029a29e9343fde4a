"""No secret in what a run leaves or shows: files, standard streams, arguments and environment of its
processes.

Runs with marked values: cells, identifiers and a column that is not used carry marks; keys are known from
their files; every random string that a protocol draws and every key that it derives is written down by
`tests.runner.marked`. Then all that the run left is searched for each of them, as bytes, as hexadecimal
digits and as base64. Runs that end well and runs that do not: a peer dies, a table has a bad record, the
program has an error in the middle.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.runner import marked, small, split
from tests.runner.folders import Folders
from tests.runner.processes import Program, eventually, happened

PERSON, REMARK, FRACTION = "marked-person-", "MARKED-REMARK-7715", "0571283"
GIVEN = (".csv", ".key", ".crt", marked.SUFFIX)
"""What was there before the run, or is written by the test."""


def written(secret: bytes) -> list[bytes]:
    """The ways in which a secret could be written."""
    encoded = [base64.b64encode(bytes(shift) + secret)[2 * shift : -4] for shift in range(3)]
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), *(e for e in encoded if len(e) > 8)]


def keys_of(folders: Folders) -> list[bytes]:
    """The parties' private keys: their numbers, and the lines of their files."""
    found: list[bytes] = []
    for path in folders.root.rglob("*.key"):
        text = path.read_bytes()
        key = load_pem_private_key(text, None)
        assert isinstance(key, EllipticCurvePrivateKey)
        found.append(key.private_numbers().private_value.to_bytes(32, "big"))
        found += [line for line in text.splitlines() if len(line) > 20 and b"-" not in line]
    return found


def drawn(folders: Folders) -> list[bytes]:
    """What the parties drew and derived."""
    return [
        bytes.fromhex(line)
        for path in folders.root.rglob(f"*{marked.SUFFIX}")
        for line in path.read_text().split()
    ]


def left(folders: Folders) -> dict[str, bytes]:
    """All that the run has left: every file but those it was given, standard output and error among them."""
    return {
        str(path.relative_to(folders.root)): path.read_bytes()
        for path in folders.root.rglob("*")
        if (path.is_file() and not path.name.endswith(GIVEN)) or path.name == "synthetic.csv"
    }


def search(texts: dict[str, bytes], secrets: list[bytes]) -> set[str]:
    """Where one of the secrets is found."""
    wanted = re.compile(b"|".join(re.escape(way) for secret in secrets for way in written(secret)))
    return {name for name, text in texts.items() if wanted.search(text)}


def marks(texts: dict[str, bytes]) -> set[str]:
    """Where a marked value of the tables is found, however it is spelled."""
    wanted = re.compile("|".join((PERSON, "markedperson", REMARK, FRACTION)).encode(), re.IGNORECASE)
    return {name for name, text in texts.items() if wanted.search(text)}


def told(programs: dict[str, Program]) -> dict[str, bytes]:
    """What anybody on the machine can see of the processes, and what their user can."""
    found = {}
    for name, program in programs.items():
        for file in ("cmdline", "environ"):
            try:
                found[f"{name}/{file}"] = Path(f"/proc/{program.pid}/{file}").read_bytes()
            except PermissionError:  # not even the same user may read it
                continue
    return found


def mark(folders: Folders) -> None:
    """Put marks into every table, and have every party write down what it draws."""
    for folder in folders:
        folder.module = "tests.runner.marked"
        for path in folder.path.glob("*.csv"):
            text = path.read_text().replace("nothing, really", REMARK)
            text = re.sub(r"(?i)\bp-(\d{4})", lambda match: PERSON + match[1], text)
            path.write_text(re.sub(r"(?<=\d\.\d\d)(?=[,\n])", FRACTION, text))
            assert REMARK in path.read_text() and (
                FRACTION in path.read_text() or "income" not in path.read_text()
            )


@contextmanager
def under_way(folders: Folders) -> Iterator[tuple[dict[str, Program], dict[str, bytes]]]:
    """A run that has met its parties, and what can be seen of its processes."""
    mark(folders)
    with folders.started() as programs:
        assert eventually(lambda: any(happened(folder.out / "events.jsonl", "connect") for folder in folders))
        yield programs, told(programs)


def clean(folders: Folders, seen: dict[str, bytes], quoted: str = "") -> None:
    """Nothing is found; and the search would find it. quoted: the one file that quotes a record, its owner's
    private log."""
    texts, keys, random = left(folders) | seen, keys_of(folders), drawn(folders)
    assert len(keys) >= 3 * len(list(folders)) and seen
    assert any(name.endswith("private.log") for name in texts), sorted(texts)
    assert not search(texts, keys)
    assert not search(texts, random)
    assert marks(texts) == ({quoted} if quoted else set())
    for secret in keys[0], *random[-2:]:
        for way in written(secret):
            assert search({"planted": b"key " + way + b" there"}, [secret])
        assert search({"planted": b'{"key": "' + base64.b64encode(b"xy" + secret + b"z") + b'"}'}, [secret])
    assert marks({"planted": f"id {PERSON}0001".encode()}) and marks({"planted": f"4.71{FRACTION}".encode()})


def test_a_horizontal_run(tmp_path: Path) -> None:
    folders = Folders.make(tmp_path, small.write(tmp_path / "study", parties=4))
    with under_way(folders) as (programs, seen):
        ends = {name: program.end() for name, program in programs.items()}
    assert all(end.code == 0 for end in ends.values()), ends
    assert len(drawn(folders)) > 20
    clean(folders, seen)


@pytest.mark.parametrize("via", ["merge3", "dh2", "helper"])
def test_a_vertical_run(tmp_path: Path, via: str) -> None:
    folders = Folders.make(tmp_path, split.write(tmp_path / "study", count=40, changes=[("merge3", via)]))
    with under_way(folders) as (programs, seen):
        ends = {name: program.end() for name, program in programs.items()}
    assert all(end.code == 0 for end in ends.values()), ends
    clean(folders, seen)


def test_a_run_in_which_a_party_dies(tmp_path: Path) -> None:
    trial = small.write(tmp_path / "study", changes=[("rounds = 3", "rounds = 8")])
    folders = Folders.make(tmp_path, trial)
    with under_way(folders) as (programs, seen):
        assert eventually(lambda: happened(folders["south"].out / "events.jsonl", "select"))
        programs["north"].send(SIGKILL)
        ends = {name: program.end() for name, program in programs.items()}
    assert (ends["south"].code, ends["west"].code) == (41, 41)
    clean(folders, seen)


def test_a_run_with_a_record_that_is_refused(tmp_path: Path) -> None:
    folders = Folders.make(tmp_path, small.write(tmp_path / "study"))
    with (folders["west"] / "west.csv").open("a") as table:
        table.write(f"yes,1,4.20,{REMARK},33,{REMARK}\n")
    with under_way(folders) as (programs, seen):
        ends = {name: program.end() for name, program in programs.items()}
    assert ends["west"].code == 30 and {end.code for end in ends.values()} == {30, 40}
    clean(folders, seen)


def test_a_run_that_the_program_itself_ends(tmp_path: Path) -> None:
    """An error in the middle of a protocol, whose text quotes a record: it stays in that party's own private
    log."""
    folders = Folders.make(tmp_path, small.write(tmp_path / "study"))
    mark(folders)
    folders["west"].module = "tests.runner.marked_failing"
    with folders.started() as programs:
        assert eventually(lambda: happened(folders["west"].out / "events.jsonl", "connect"))
        seen = told(programs)
        ends = {name: program.end() for name, program in programs.items()}
    assert ends["west"].code == 1 and ends["north"].code == ends["south"].code == 40, ends
    clean(folders, seen, quoted="west/out/private.log")
