"""A deployment: every party has its own folder and nothing else, and starts its own process
(`docs/reference/command-line.md`).

Who fails with which exit code, what each is told, and what nobody is told: a distinctive value in a bad
record.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from parties import certificates
from parties.budget.ledger import Ledger
from tests.runner import small
from tests.runner.folders import Folder, Folders
from tests.runner.processes import (
    CONTRACT_FILES,
    End,
    Program,
    eventually,
    happened,
    parties,
    results,
    run,
    run_whole,
)
from tests.runner.test_end_to_end import Finished, check_shape

CANARY = "CANARY-90217"


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Three computing custodians."""
    return Folders.make(tmp_path, small.write(tmp_path / "study"))


def refused(folders: Folders, ends: dict[str, End], **codes: int) -> dict[str, str]:
    """Each party ended with its code and one sentence on standard error, nothing is left of the run; the
    sentences."""
    assert {name: end.code for name, end in ends.items()} == codes, ends
    for end in ends.values():
        assert end.complaint.endswith(".\n") and end.complaint.count("\n") == 1, end.complaint
    assert not parties(folders.root)
    for folder in folders:
        assert not results(folder.path)
    return {name: end.complaint for name, end in ends.items()}


def same_everywhere(folders: Folders) -> dict[str, object]:
    """All parties hold the same finished files; the run's summary."""
    first = next(iter(folders))
    for folder in folders:
        assert {entry.name for entry in folder.out.iterdir()} >= CONTRACT_FILES
        for file in ("synthetic.csv", "report.html", "run.json", "measurements.json", "model.npz"):
            assert (folder.out / file).read_bytes() == (first.out / file).read_bytes(), file
        assert not [
            entry for entry in folder.out.iterdir() if "partial" in entry.name or entry.name.endswith(".part")
        ]
    summary: dict[str, object] = json.loads((first.out / "run.json").read_text())
    check_shape(summary, folders.trial.names)
    assert summary["deployment"] == "distributed"
    return summary


def test_three_commands_make_one_table(folders: Folders) -> None:
    for folder in folders:  # a guess is right in more than 99 %, of which the result warns at every party
        folder.edit("study.toml", ("epsilon = 4.0", "epsilon = 5.0"))
    ends = folders.run()
    assert all(end.code == 0 and end.complaint == "" for end in ends.values()), ends
    summary = same_everywhere(folders)
    warned = tuple(f"WARNING: {one['text']}" for one in summary["warnings"])  # type: ignore[attr-defined]
    assert warned and all(end.warnings == warned for end in ends.values())
    finished = Finished(folders.trial, folders["north"].out)
    for deviation, sigma in finished.deviations():  # 8 sigma: false alarms below 1e-13 for 76 cells
        assert abs(deviation) < 8 * sigma
    for folder in folders:
        (entry,) = Ledger(folder.ledger).entries()
        assert entry.state == "settled" and entry.reservation.dataset == f"people of {folder.name}"
        assert float(entry.spent.rho) == pytest.approx(summary["privacy"]["rho_spent"], rel=1e-12)  # type: ignore[index]
        assert not any("cpu_s" in party for party in summary["parties"])  # type: ignore[attr-defined]
        # what a party knows alone stays in its private log
        assert "clamped" in (folder.out / "private.log").read_text()
        assert (folder.out / "private.log").stat().st_mode & 0o777 == 0o600
        assert "clamped" not in "".join(
            (folder.out / file).read_text()
            for file in ("run.json", "events.jsonl", "report.html", "cosynth.log")
        )


def test_the_report_is_rebuilt_byte_for_byte_and_a_failure_harms_nothing(tmp_path: Path) -> None:
    """Into the folders of a finished run: one that fails (the studies differ) and one that succeeds."""
    folders = Folders.make(tmp_path, small.write(tmp_path / "study"))
    assert {end.code for end in folders.run().values()} == {0}
    for folder in folders:
        page = (folder.out / "report.html").read_bytes()
        (folder.out / "report.html").unlink()
        assert run("report", folder.out, ledger=folder.ledger, scratch=folder.path).code == 0
        assert (folder.out / "report.html").read_bytes() == page
        assert b"one event at the party that led" in page

    def kept(folder: Folder) -> dict[str, tuple[bytes, int]]:
        return {
            entry.name: (entry.read_bytes(), entry.stat().st_mtime_ns)
            for entry in folder.out.iterdir()
            if not entry.name.startswith(("unfinished", "private", "journal"))
        }

    earlier = {folder.name: kept(folder) for folder in folders}
    assert {"events.jsonl", "cosynth.log", "run.json", "synthetic.csv"} <= set(earlier["north"])
    private = (folders["north"].out / "private.log").read_text()
    folders["west"].edit("study.toml", ("epsilon = 4.0", "epsilon = 4.5"))
    for end in folders.run().values():
        assert end.code == 2 and "holds a finished run" in end.complaint and "--replace" in end.complaint
    for name, end in folders.run(replace=True).items():
        assert (
            end.code == 22 and "those of an earlier run; this one left none, and its events in" in end.output
        )
        assert (
            happened(folders[name].out / "unfinished.jsonl", "connect")
            and (folders[name].out / "unfinished.log").exists()
        )
    assert {folder.name: kept(folder) for folder in folders} == earlier
    assert (folders["north"].out / "private.log").read_text().startswith(private)

    folders["west"].edit("study.toml", ("epsilon = 4.5", "epsilon = 4.0"))
    assert {end.code for end in folders.run(replace=True).values()} == {0}
    for folder in folders:
        assert not list(folder.out.glob("unfinished*"))
        lines = [json.loads(line) for line in (folder.out / "events.jsonl").read_text().splitlines()]
        assert (lines[-1]["event"], lines[-1]["party"]) == ("written", folder.name)
        assert all(
            kept(folder)[name] != earlier[folder.name][name]
            for name in ("events.jsonl", "cosynth.log", "run.json")
        )
        session = json.loads((folder.out / "run.json").read_text())["session"]
        assert (folder.out / f"journal-{session[:16]}.jsonl").exists()


def test_keys_that_never_travel(tmp_path: Path) -> None:
    """`certs request` at each party, `certs sign` at one; a contributor, a party without data, and an empty
    table."""
    trial = small.write(tmp_path / "study", parties=4, data={"west": None, "south": []})
    folders = Folders.make(tmp_path, trial, certify=False)
    folders["south"].edit("private.toml", ('out = "out"\n', 'out = "out"\nallow_empty = true\n'))
    for folder in folders:
        end = run(
            "certs",
            "request",
            folder.name,
            "--out",
            folder.path,
            ledger=folder.ledger,
            scratch=tmp_path / "scratch",
        )
        assert end.code == 0, end
    requests = [folder / f"{folder.name}.csr" for folder in folders]
    end = run(
        "certs",
        "sign",
        folders["north"] / "study.toml",
        *requests,
        "--out",
        tmp_path / "signer",
        ledger=tmp_path / "l",
        scratch=tmp_path / "scratch",
    )
    assert end.code == 0, end
    for folder in folders:
        shutil.copy(tmp_path / "signer" / f"{folder.name}.crt", folder.path)
        shutil.copy(tmp_path / "signer" / "ca.crt", folder.path)
        assert (folder / f"{folder.name}.key").stat().st_mode & 0o077 == 0
        assert not list((tmp_path / "signer").glob(f"{folder.name}.key"))
    ends = folders.run()
    assert all(end.code == 0 for end in ends.values()), ends
    same_everywhere(folders)
    assert not folders["west"].ledger.exists()  # no data, no account
    (entry,) = Ledger(folders["east"].ledger).entries()
    assert not entry.reservation.computes and entry.state == "settled" and entry.events


def test_checks_that_are_typed_within_the_same_minute_meet(folders: Folders) -> None:
    """One after the other, the last with another study: everybody hears of everybody; nothing is written or
    charged."""

    def check(folder: Folder) -> Program:
        return Program(
            "check",
            "study.toml",
            "--party",
            folder.name,
            "--private",
            "private.toml",
            "--connect",
            ledger=folder.ledger,
            scratch=folder.path / "scratch",
            cwd=folder.path,
        )

    folders["west"].edit("study.toml", ("epsilon = 4.0", "epsilon = 4.5"))
    programs = {name: check(folders[name]) for name in ("south", "north")}
    try:
        assert eventually(
            lambda: all("to start the same command" in program.said()[0] for program in programs.values())
        )
        programs["west"] = check(folders["west"])
        ends = {name: program.end() for name, program in programs.items()}
    finally:
        for program in programs.values():
            program.kill()
    assert {end.code for end in ends.values()} == {22}
    for one, other in (("north", "south"), ("south", "north")):
        assert (
            f"ok       {other} proves who it is and has the same study and protocol version\n"
            in ends[one].output
        )
        assert (
            ends[one].complaint.startswith("Party west has study")
            and "give all parties the same study" in ends[one].output
        )
    assert ends["west"].output.count("problem  Party ") == 2
    assert not any(folder.out.exists() or folder.ledger.exists() for folder in folders)


def test_a_study_edited_at_one_party(folders: Folders) -> None:
    folders["west"].edit("study.toml", ("epsilon = 4.0", "epsilon = 4.5"))
    for sentence in refused(folders, folders.run(), north=22, south=22, west=22).values():
        assert "west" in sentence and "study" in sentence
    assert not any(folder.ledger.exists() for folder in folders)


def test_a_foreign_ca(tmp_path: Path) -> None:
    """It refuses the others, who cannot know that it is west which does: they wait for it in vain, and say
    what they saw."""
    folders = Folders.make(
        tmp_path, small.write(tmp_path / "study", changes=[("connect_s = 300", "connect_s = 30")])
    )
    certificates.make_all(tmp_path / "foreign", ["west"])
    for file in ("west.crt", "west.key", "ca.crt"):
        shutil.copy(tmp_path / "foreign" / file, folders["west"].path)
    with folders.started(["north", "south"]) as programs:
        # a party that came later would only find that the others have gone
        assert all(
            eventually(lambda name=name: happened(folders[name].out / "events.jsonl", "connect", "connected"))  # type: ignore[misc]
            for name in programs
        )
        ends = folders.run("west") | {name: program.end() for name, program in programs.items()}
    sentences = refused(folders, ends, north=20, south=20, west=21)
    assert "not signed by the CA" in sentences["west"]
    assert any(
        "Party west" in sentences[name] and "Party west refused the certificate" in sentences[name]
        for name in ("north", "south")
    ), sentences
    for name in ("north", "south"):
        assert happened(folders[name].out / "events.jsonl", "connect", "refused")


def expired(folders: Folders, name: str) -> bytes:
    """A certificate that was right until yesterday."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    certs = folders.root / "certs"
    now = x509.load_pem_x509_certificate((certs / f"{name}.crt").read_bytes())
    key = serialization.load_pem_private_key((certs / "ca.key").read_bytes(), None)
    builder = x509.CertificateBuilder(
        now.issuer,
        now.subject,
        now.public_key(),
        x509.random_serial_number(),
        datetime.now(UTC) - timedelta(days=9),
        datetime.now(UTC) - timedelta(days=1),
        list(now.extensions),
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]


def test_ones_own_certificate_is_looked_at_first(folders: Folders) -> None:
    """Expired, another party's, without its key: refused before anybody is asked to prove anything."""
    west = folders["west"]
    good = (west / "west.crt").read_bytes()
    (west / "west.crt").write_bytes(expired(folders, "west"))
    assert "expired" in refused(folders, folders.run("west"), west=21)["west"]
    for file in ("crt", "key"):
        shutil.copy(folders["north"] / f"north.{file}", west / f"west.{file}")
    sentence = refused(folders, folders.run("west"), west=21)["west"]
    assert "belongs to 'north', not to party west" in sentence
    (west / "west.crt").write_bytes(good)
    assert "does not belong" in refused(folders, folders.run("west"), west=21)["west"]
    (west / "west.key").unlink()
    assert "missing" in refused(folders, folders.run("west"), west=21)["west"]


def test_a_key_that_others_can_read_is_refused(folders: Folders) -> None:
    west = folders["west"]
    (west / "west.key").chmod(0o640)
    sentence = refused(folders, folders.run("west"), west=21)["west"]
    assert "west.key can be read by other users of this machine" in sentence and "chmod 600" in sentence
    west.options = ("--insecure-key",)
    with folders.started(["west"]) as programs:
        assert eventually(lambda: happened(west.out / "events.jsonl", "connect", "waiting"))
        pid = programs["west"].pid
        (limit,) = re.findall("Max core file size +([^ ]+) +([^ ]+)", Path(f"/proc/{pid}/limits").read_text())
        assert limit == ("0", "0")
        assert "warning: " in "".join(programs["west"].said())


@pytest.mark.parametrize("party", ["south", "west"])
@pytest.mark.parametrize("file", ["key", "ca"])
def test_the_others_hear_that_a_party_s_own_certificate_is_bad(tmp_path: Path, party: str, file: str) -> None:
    """Whom it dials hears it without proof, says so and waits on; who dials it ends, and so do all that have
    met them."""
    folders = Folders.make(tmp_path, small.write(tmp_path / "study"))
    own = folders[party]
    if file == "key":
        shutil.copy(folders["north"] / "north.key", own / f"{party}.key")
    else:
        (own / "ca.crt").unlink()
    others = [name for name in folders.trial.names if name != party]
    with folders.started(others) as programs:
        for name in others:
            assert eventually(lambda name=name: happened(folders[name].out / "events.jsonl", "connect"))  # type: ignore[misc]
        end = folders.run(party)[party]
        assert (
            end.code == 21
            and ("does not belong" if file == "key" else "ca.crt does not exist") in end.complaint
        )
        for name, program in programs.items():
            if party == "south":
                heard = program.end()
                assert heard.code == 21 and f"arty {party}" in heard.complaint, heard
            else:
                assert eventually(
                    lambda name=name: happened(folders[name].out / "events.jsonl", "connect", "refused")  # type: ignore[misc]
                )
                assert f"arty {party}" in (folders[name].out / "events.jsonl").read_text()


def test_two_computing_parties_are_too_few(tmp_path: Path) -> None:
    trial = small.write(tmp_path / "study", parties=2)
    for arguments in ((), ("--party", "north")):
        end = run_whole(tmp_path, trial.path, *arguments)
        assert end.code == 10 and "three" in end.complaint and end.complaint.count("\n") == 1


def test_a_port_in_use(folders: Folders) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", folders.trial.ports["north"]))
        holder.listen()
        sentence = refused(folders, folders.run("north"), north=20)["north"]
        assert f":{folders.trial.ports['north']}" in sentence and "in use" in sentence


def test_a_party_that_never_comes(tmp_path: Path) -> None:
    folders = Folders.make(
        tmp_path, small.write(tmp_path / "study", changes=[("connect_s = 300", "connect_s = 15")])
    )
    ends = folders.run("north", "south")
    sentences = refused(folders, ends, north=20, south=20).values()
    assert all("party west" in sentence.lower() or "nor did west" in sentence for sentence in sentences)
    assert any(f":{folders.trial.ports['west']}" in sentence for sentence in sentences)
    assert happened(folders["north"].out / "events.jsonl", "connect", "waiting")  # it says for whom
    assert not any(folder.ledger.exists() for folder in folders)


def bad_record(trial: small.Trial, name: str) -> None:
    """A value that the study does not declare, in the middle of a custodian's table."""
    table = [dict(row) for row in trial.rows[name]]
    table[200]["work"] = CANARY
    small.write_csv(trial.path.parent / f"{name}.csv", table)


def mentions(directory: Path, text: str) -> list[Path]:
    """Files that hold the text, tables aside."""
    return [
        path
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".csv" and text.encode() in path.read_bytes()
    ]


def test_a_bad_record_is_refused_and_never_shown(tmp_path: Path) -> None:
    """Nobody learns the value, and nobody is charged: not even a contributor, who sees no releases and so
    cannot count them."""
    trial = small.write(tmp_path / "study", parties=4)
    bad_record(trial, "west")
    folders = Folders.make(tmp_path, trial)
    sentences = refused(folders, folders.run(), north=40, south=40, west=30, east=40)
    assert (
        "west.csv" in sentences["west"] and '"work"' in sentences["west"] and "line 202" in sentences["west"]
    )
    for name in ("north", "south", "east"):
        assert sentences[name] == NEUTRAL.format("west")  # peers get no reason
        assert spent(folders[name]) == 0
    assert not mentions(tmp_path, CANARY)
    assert (folders["west"].path / "west.csv").read_text().count(CANARY) == 1
    assert Ledger(folders["west"].ledger).entries() == []
    (refusal,) = Ledger(folders["west"].ledger).refusals("people of west")
    check = run(
        "check", folders["west"] / "study.toml", "--party", "west", "--private", folders["west"] / "private.toml",
        ledger=folders["west"].ledger, scratch=tmp_path / "scratch",
    )  # fmt: skip
    assert refusal.code == 30 and refusal.proposal.digest[:12] in check.output
    assert not any(Ledger(folders[name].ledger).refusals() for name in ("north", "south", "east"))


NEUTRAL = (
    "Party {} stopped: it refuses this study or cannot take part, and says why only at its own place; nothing of its data was "
    "sent.\n"
)
"""What peers are told of any refusal before all have assembled."""


def spent(folder: Folder) -> Fraction:
    """What a party's data has spent."""
    return sum((entry.spent.rho for entry in Ledger(folder.ledger).entries()), Fraction(0))


def test_more_rows_than_max_rows(tmp_path: Path) -> None:
    folders = Folders.make(
        tmp_path, small.write(tmp_path / "study", changes=[("max_rows = 4096", "max_rows = 299")])
    )
    (folders["north"] / "north.csv").write_text(
        "".join((folders["north"] / "north.csv").open().readlines()[:290])
    )
    (folders["south"] / "south.csv").write_text(
        "".join((folders["south"] / "south.csv").open().readlines()[:290])
    )
    sentences = refused(folders, folders.run(), north=40, south=40, west=30)
    assert "max_rows = 299" in sentences["west"] and "300" not in sentences["west"]
    assert sentences["north"] == sentences["south"] == NEUTRAL.format("west")


def test_a_ledger_cap(folders: Folders) -> None:
    """A custodian that allows less than the study takes refuses before any share leaves."""
    folders["south"].edit("private.toml", ("[ledger]\n", "[ledger]\ncap_epsilon = 3.0\ncap_delta = 1e-6\n"))
    sentences = refused(folders, folders.run(), north=40, south=50, west=40)
    assert "cap" in sentences["south"] and "people of south" in sentences["south"]
    assert sentences["north"] == sentences["west"] == NEUTRAL.format("south")
    assert Ledger(folders["south"].ledger).entries() == []
    (refusal,) = Ledger(folders["south"].ledger).refusals()
    assert refusal.code == 50 and refusal.proposal.max_rows == 4096
    assert (
        spent(folders["north"]) == spent(folders["west"]) == 0
    )  # they may have reserved, and nothing was released


def test_the_launcher_reports_the_first_cause_at_once(tmp_path: Path) -> None:
    """A bad record at one party: its sentence and code, no peer's, and no waiting until the others miss it
    (silence_s)."""
    trial = small.write(tmp_path / "study")
    bad_record(trial, "south")
    out = tmp_path / "out"
    program = Program(
        "run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch"
    )
    try:
        assert eventually(lambda: len(parties(out)) == 3)
        assert eventually(lambda: len(parties(out)) < 3)
        end = program.end()
    finally:
        program.kill()
    assert end.code == 30 and "south.csv" in end.complaint and end.complaint.count("\n") == 1
    assert not parties(out) and not results(out) and not mentions(tmp_path, CANARY)
