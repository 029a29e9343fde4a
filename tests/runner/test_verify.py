"""`verify`: what an auditor recomputes of a deployment's files, and that each thing altered is found."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from mpc_protocols.errors import PeerIdentity, ProtocolAborted, UsageError
from parties import certificates
from runner.commands.cli import main
from runner.party.record.software import commit_of, software
from runner.report import render
from runner.results import signatures
from runner.review.audit.subjects.forgeries import FORGERIES, Forger, Forgery, copies
from runner.review.verification.files import report
from runner.review.verification.place import Place
from runner.review.verification.spending import charged
from runner.starting.demo import COMPARISON
from runner.study import Study
from runner.study.hashing import digest_of, protocol_of
from runner.study.private_file import CertificateFiles
from tests.parties.test_certificates import unreadable
from tests.runner import small
from tests.runner.folders import Folders

NAMES = ("north", "south", "west", "east")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """A finished run of three computing custodians and a contributor, each with its own folder."""
    root = tmp_path_factory.mktemp("verified")
    made = Folders.make(root, small.write(root / "study", parties=4, count=100))
    ends = made.run()
    assert {end.code for end in ends.values()} == {0}, ends
    return made


@pytest.fixture
def out(folders: Folders, tmp_path: Path) -> Path:
    """A copy of the leader's results, to be altered."""
    return Path(shutil.copytree(folders["south"].out, tmp_path / "out"))


def test_a_sound_run_holds_in_all_respects(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [str(folders[name].out) for name in NAMES]
    ledgers = [word for name in NAMES for word in ("--private", str(folders[name] / "private.toml"))]
    assert main(["verify", *asked, *ledgers, "--ca", str(folders["north"] / "ca.crt")]) == 0
    said = capsys.readouterr().out
    assert "not checked" not in said, said
    for words in (
        "4 directories hold the same",
        "signed by north, south, west, east (CA",
        "whose keys these are: what you named says so",
        "recomputed one by one",
        "3 journals hold the same releases",
        "charged to people of east",
        "the report is what its files make",
    ):
        assert words in said, said
    run = json.loads((folders["east"].out / "run.json").read_text())
    assert list(run["software"]) == list(NAMES)
    for told in run["software"].values():  # the commit may be another one by now
        assert {**told, "commit": ""} == {**software(), "commit": ""}
    assert certificates.fingerprint(folders["north"] / "ca.crt") == run["ca"] and run["ca"] in said


def change_run(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def changed(out: Path) -> None:
        forger = Forger([out])
        forger.run["ca"] = signatures.fingerprint_of(forger.authority.certificate.decode())
        forger.digest()
        change(forger.run)
        forger.write()
        forger.sign()  # what is signed is another test's

    return changed


@pytest.mark.parametrize("forgery", FORGERIES, ids=[forgery.what for forgery in FORGERIES])
def test_a_forgery_is_found_or_said_to_be_the_word_of_who_gave_it(
    folders: Folders,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    forgery: Forgery,
) -> None:
    """By the files alone, and with the CA named, in either way by turns; the page that they make is compared once."""
    forger = copies([folders[name].out for name in NAMES], tmp_path)
    forgery.forge(forger)
    compared = cache(lambda directory: report(Place.at(directory)))
    monkeypatch.setattr("runner.review.verification.files.report", lambda place: compared(place.directory))
    asked, ca = [str(folder) for folder in forger.folders], folders["north"] / "ca.crt"
    assert main(["verify", *asked]) == forgery.alone
    said = capsys.readouterr().out
    assert forgery.alone or "the word of whoever gave you these files" in said
    named = str(ca) if FORGERIES.index(forgery) % 2 else certificates.fingerprint(ca)
    assert main(["verify", *asked, "--ca", named]) == forgery.code


def test_a_directory_counts_once(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").symlink_to(out)
    assert main(["verify", str(out), str(tmp_path / "other")]) == 2
    assert "is named 2 times" in capsys.readouterr().err


def test_a_copied_journal_counts_once_and_those_that_are_not_there_are_named(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = next(out.glob("journal-*"))
    shutil.copy(journal, out / "journal-copy.jsonl")
    assert main(["verify", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 journal holds the releases" in said and "no journal of north, west for this run" in said


def test_what_is_named_as_ca_must_be_one(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(out), "--ca", "nobody"]) == 21
    assert "--ca nobody is neither a file" in capsys.readouterr().err


ALTERED: list[tuple[Callable[[Path], object], int, str]] = [
    (change_run(lambda run: run["agreed"]["privacy"].update(epsilon=1.0)), 22, "the study in it has digest"),
    (change_run(lambda run: run["public_study"]["privacy"].update(epsilon=1.0)), 22, "shows another study"),
    (
        change_run(lambda run: run["privacy"]["events"][1].update(rho=1e-4)),
        50,
        "is charged rho 0.0001 and costs",
    ),
    (
        change_run(lambda run: run["privacy"].update(rho=run["privacy"]["rho_spent"] * 0.99999)),
        50,
        "and the cap is",
    ),
    (
        change_run(lambda run: run["privacy"].update(rho_spent=run["privacy"]["rho_spent"] * 0.99999)),
        50,
        "states rho_spent",
    ),
    (
        change_run(lambda run: run["privacy"].update(epsilon=2.0)),
        50,
        "states epsilon 2.0, and the study that was agreed says 4.0",
    ),
    (
        change_run(lambda run: run["privacy"]["events"][1].update(claim="none")),
        50,
        "1 releases say that no privacy claim covers them, and aim as agreed covers all",
    ),
    (change_run(lambda run: run["privacy"].update(delta=0.5)), 50, "states delta 0.5"),
    (change_run(lambda run: run["privacy"].update(adjacency="replace")), 50, "states adjacency replace"),
    (change_run(lambda run: run["privacy"].update(beta=-1.0)), 2, "states no events"),
    (
        change_run(lambda run: run["privacy"]["events"].pop(1)),  # a selection
        50,
        "7 releases on record that are not the 6 of run.json",
    ),
    (lambda out: (out / "report.html").write_text("nothing"), 22, "is not the page"),
    (
        lambda out: (out / "synthetic.csv").write_text("age\n"),
        21,
        "synthetic.csv was changed since it was signed",
    ),
    (
        lambda out: (out / "synthetic.research.csv").write_text("age\n"),
        21,
        "synthetic.research.csv beside it was not signed",
    ),
    (lambda out: (out / "signatures.json").write_text("{}"), 2, "is not a file of signatures"),
    (
        lambda out: (out / "signatures.json").write_text(
            (out / "signatures.json").read_text().replace('"north": "', '"north": "00')[:-1]
        ),
        2,
        "is not a file of signatures",
    ),
    (lambda out: next(out.glob("journal-*")).write_text("{}\n"), 30, "is not a record of format"),
]


@pytest.mark.parametrize(("alter", "code", "words"), ALTERED)
def test_what_was_altered_is_found(
    out: Path, alter: Callable[[Path], object], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alter(out)
    assert main(["verify", str(out)]) == code
    told = capsys.readouterr()
    assert words in told.err, told


def test_what_is_spent_is_held_against_the_study_and_not_against_the_account(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An account that repeats a dearer promise throughout: its events are within it, and not within the study's."""

    def spend(run: dict[str, Any]) -> None:
        run["privacy"].update(epsilon=1e4, rho=1e4)
        run["privacy"]["events"][0].update(rho=60.0, sigma2="1/100")

    def quieten(form: dict[str, Any]) -> None:
        for entry in form["measurements"]:
            if entry["round"] == 0:
                entry["sigma2"] = "1/100"

    Forger([out]).edit("measurements.json", quieten)
    change_run(spend)(out)
    assert main(["verify", str(out)]) == 50
    assert "the study promises epsilon 4 at delta 1e-06, and the events come to" in capsys.readouterr().out


def test_a_loud_study_is_held_to_what_its_samplers_leave_of_the_promise(tmp_path: Path) -> None:
    """At epsilon 30 the samplers' distances, times e^30, would take all of delta: the run promises itself less."""
    changes = [("epsilon = 4.0", "epsilon = 30.0"), ('"replicated"', '"ideal"')]
    trial = small.write(tmp_path / "study", count=100, changes=changes)
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out")]) == 0
    place = Place.at(tmp_path / "out")
    privacy = dict(place.run["privacy"])
    assert privacy["calibrated_epsilon"] < 25 and not any(finding.error for finding in charged(place))
    privacy["events"] = privacy["events"] + 5 * privacy["events"][-1:]
    privacy["rho"] = 1e4
    found = [finding.text for finding in charged(Place(place.directory, {**place.run, "privacy": privacy}))]
    assert any("promises epsilon 30" in text for text in found), found


def test_a_release_without_a_claim_is_one_of_an_algorithm_without_a_claim(out: Path) -> None:
    run = json.loads((out / "run.json").read_text())
    run["privacy"]["events"][1].update(claim="none")
    assert any(finding.error for finding in charged(Place(out, run)))
    run["agreed"]["study"].update(algorithm="flaim", research=True)
    del run["agreed"]["aim"]
    run["agreed"]["flaim"] = {"variant": "oracle", "rounds": 2, "group": 1}
    first, *others = charged(Place(out, run))
    assert first.note and "1 releases have no privacy claim" in first.text
    assert not any(finding.error for finding in others)


def test_a_signature_is_told_with_what_it_rests_on(
    folders: Folders, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Certificates that somebody has made and pinned in run.json, beside the parties' own CA: the CA vouches for nothing."""
    run = json.loads((out / "run.json").read_text())
    study, genuine = Study.read(folders["north"] / "study.toml"), run["ca"]
    made = {name: certificates.issue(certificates.make_ca("forged"), name) for name in NAMES}
    pins = {name: signatures.fingerprint_of(one.certificate.decode()) for name, one in made.items()}
    for party in run["agreed"]["party"]:
        party["fingerprint"] = pins[party["name"]]
    run["digest"] = digest_of(run["agreed"], protocol_of(run), pins, genuine).hex()
    (out / "run.json").write_text(json.dumps(run))
    render(out)
    forged = signatures.Signed(
        **{
            **vars(signatures.read(out / "signatures.json")),
            "files": signatures.hashes(out, signatures.SIGNED),
            "certificates": {name: one.certificate.decode() for name, one in made.items()},
        }
    )
    keys = {name: tmp_path / f"{name}.key" for name in NAMES}
    for name, key in keys.items():
        key.write_bytes(made[name].key)
    given = {name: signatures.signature_of(key, forged.message) for name, key in keys.items()}
    (out / "signatures.json").write_bytes(
        signatures.Signed(**{**vars(forged), "signatures": given}).to_bytes()
    )
    main(["verify", str(out)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "signed by" in line]
    assert all(f"{name} (certificate {pin}, pinned)" in line for name, pin in pins.items())
    assert genuine not in line and "CA" not in line
    assert main(["verify", str(out), "--study", str(study.path)]) == 22
    told = capsys.readouterr()
    assert "the study that was agreed has another party than" in told.err
    assert "certificate beside the signature of party north is not that party's" in told.out
    assert main(["verify", str(folders["south"].out), "--study", str(study.path)]) == 0
    assert f"the study that was agreed is that of {study.path}" in capsys.readouterr().out


def test_other_files_at_another_party_and_another_ledger(
    folders: Folders, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "model.npz").write_bytes(b"other")
    assert main(["verify", str(folders["north"].out), str(out)]) == 22
    assert "has another model.npz than" in capsys.readouterr().err
    other = Folders.make(tmp_path / "other", small.write(tmp_path / "study"))
    shutil.copy(folders["north"].ledger, other["west"].ledger)
    assert main(["verify", str(folders["north"].out), "--ledger", str(other["west"].ledger)]) == 0
    shutil.copytree(folders["north"].out, tmp_path / "more")
    change_run(lambda run: run.update(digest="00" * 32))(tmp_path / "more")
    capsys.readouterr()
    main(["verify", str(tmp_path / "more"), "--ledger", str(other["west"].ledger), "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [of_ledger] = [each for each in found if str(other["west"].ledger) in each["text"]]
    assert of_ledger["kind"] == "problem" and "no run of this study on record" in of_ledger["text"]


def test_a_demo_holds_though_its_own_report_says_more_than_its_parties(
    folders: Folders, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("north", "west"):
        shutil.copytree(folders[name].out, out / "parties" / name)
    session = json.loads((out / "run.json").read_text())["session"]
    (out / "data").mkdir()
    comparison = {"metrics": {"an error": [0.1, None, "of rows that only a demo knows"]}}
    (out / COMPARISON).write_text(json.dumps({"session": session, "comparison": comparison}))
    render(out, comparison=comparison)
    assert main(["verify", str(out)]) == 0
    said = capsys.readouterr().out
    assert "3 directories hold the same" in said and "nobody has signed data/comparison.json" in said, said
    page = out / "parties" / "west" / "report.html"
    page.write_text(page.read_text().replace("</p>", "!</p>", 1))
    assert main(["verify", str(out)]) == 22
    assert "west has another report.html than" in capsys.readouterr().err


@pytest.mark.parametrize(
    "comparison", [7, {"metrics": 7}, {"metrics": {"a": [1]}}, {"metrics": {"a": ["b", 1, "c"]}}]
)
def test_a_comparison_that_no_demo_has_written_is_refused(
    comparison: Any, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = json.loads((out / "run.json").read_text())["session"]
    (out / "data").mkdir()
    (out / COMPARISON).write_text(json.dumps({"session": session, "comparison": comparison}))
    assert main(["verify", str(out)]) == 2
    assert "data/comparison.json is not one that `demo` writes" in capsys.readouterr().err
    (out / COMPARISON).write_text("[]")
    assert main(["verify", str(out)]) == 0


def test_a_file_that_cannot_be_read_is_named(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "synthetic.csv":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert main(["verify", str(out)]) == 2
    assert "synthetic.csv cannot be read (permission denied)" in capsys.readouterr().err


def test_a_ledger_that_is_not_there(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(folders["north"].out), "--ledger", str(tmp_path / "none.db")]) == 2
    assert "none.db does not exist" in capsys.readouterr().err


def test_a_signature_by_somebody_else_is_none(folders: Folders, out: Path, tmp_path: Path) -> None:
    found = signatures.read(out / "signatures.json")
    found.check("north", None)
    other = certificates.make_ca("other")
    issued = certificates.issue(other, "north")
    for changed, words in (
        ({"signatures": {**found.signatures, "north": found.signatures["west"]}}, "is not of these results"),
        ({"signatures": {}}, "do not bear the signature of party north"),
        (
            {"certificates": {**found.certificates, "north": found.certificates["west"]}},
            "is not that party's",
        ),
        (
            {"certificates": {**found.certificates, "north": issued.certificate.decode()}},
            "is not that party's",
        ),
        ({"ca": None}, "is not that party's"),
        ({"files": {**found.files, "run.json": "00"}}, "is not of these results"),
    ):
        with pytest.raises(PeerIdentity, match=words):
            signatures.Signed(**{**vars(found), **changed}).check("north", None)
    with pytest.raises(PeerIdentity, match="is not that party's"):
        found.check("north", "00" * 32)
    found.check("north", signatures.fingerprint_of(found.certificates["north"]))


def test_a_party_certifies_nobody_with_its_own_certificate() -> None:
    """Who has a certificate and its key can sign certificates with it; what makes an issuer is that a CA says it is one."""

    def speaks(root: certificates.Credential, *between: certificates.Credential) -> bool:
        below = certificates.issue(between[-1], "south")
        chain = b"".join(one.certificate for one in (below, *between[::-1])).decode()
        return signatures.key_of(chain, "south", root.certificate.decode(), None) is not None

    made = certificates.make_ca("made")  # for parties alone
    assert not speaks(made, certificates.issue(made, "north"))
    assert not speaks(made, intermediate(made, None))
    root = authority("root")
    assert not speaks(root, certificates.issue(root, "north"))
    assert speaks(root, intermediate(root, 0))
    upper, narrow = intermediate(root, None), intermediate(root, 0)
    assert speaks(root, upper, intermediate(upper, 0))
    assert not speaks(root, narrow, intermediate(narrow, None))


def authority(name: str) -> certificates.Credential:
    """A CA with room for others below it."""
    return intermediate(None, None, name)


def intermediate(
    ca: certificates.Credential | None, limit: int | None, name: str = "between"
) -> certificates.Credential:
    """A CA that a CA, or itself, has certified, with room for so many CAs below it."""
    key, own = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string(f"CN={name}")
    issuer = own if ca is None else x509.load_pem_x509_certificate(ca.certificate).subject
    signer = key if ca is None else load_pem_private_key(ca.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=limit), critical=True)
        .sign(signer, SHA256())
    )
    return certificates.Credential(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def test_signing_refuses_what_another_party_has_signed(tmp_path: Path) -> None:
    """Every party checks what it is handed: a signature of other files, or by a certificate of another CA."""
    study = Study.read(small.write(tmp_path / "study").path)
    names = [party.name for party in study.parties]
    certificates.make_all(tmp_path, names)
    foreign = certificates.issue(certificates.make_ca("other"), "west")

    def certs(name: str) -> CertificateFiles:
        return CertificateFiles(tmp_path / "ca.crt", tmp_path / f"{name}.crt", tmp_path / f"{name}.key")

    shown = {name: (tmp_path / f"{name}.crt").read_bytes() for name in names}

    def signature(name: str, files: dict[str, str], certificates: dict[str, bytes]) -> bytes:
        texts = {name: pem.decode() for name, pem in certificates.items()}
        ca = (tmp_path / "ca.crt").read_text()
        message = signatures.Signed("00" * 32, "11" * 32, files, texts, ca, {}).message
        return signatures.signature_of(tmp_path / f"{name}.key", message)

    def go(told: dict[str, str], certificates: dict[str, bytes]) -> bytes:
        files = {"run.json": "aa"}

        def gather(what: str, own: bytes, limit: int) -> dict[str, bytes]:
            if what == "certificates":
                return certificates
            others = {name: signature(name, told, certificates) for name in names if name != "north"}
            return {"north": own, **others}

        return signatures.sign(study, "north", certs("north"), bytes(32), bytes([17]) * 32, files, gather)

    assert b'"west"' in go({"run.json": "aa"}, shown)
    # comments and further authorities in this party's file are no part of what is signed
    plain = (tmp_path / "ca.crt").read_bytes()
    (tmp_path / "more.crt").write_bytes(
        "Größe\n".encode() + plain + certificates.make_ca("other").certificate
    )
    files, theirs = {"run.json": "aa"}, {name: signature(name, {"run.json": "aa"}, shown) for name in names}
    mine = CertificateFiles(tmp_path / "more.crt", tmp_path / "north.crt", tmp_path / "north.key")

    def gathered(what: str, own: bytes, limit: int) -> dict[str, bytes]:
        return {**(shown if what == "certificates" else theirs), "north": own}

    assert signatures.sign(study, "north", mine, bytes(32), bytes([17]) * 32, files, gathered)
    west = ssl.PEM_cert_to_DER_cert(shown["west"].decode())
    for told, certificates_shown in (
        ({"run.json": "bb"}, shown),
        ({"run.json": "aa"}, {**shown, "west": foreign.certificate}),
        *(
            ({"run.json": "aa"}, {**shown, "west": ssl.DER_cert_to_PEM_cert(odd).encode()})
            for odd in unreadable(west)
        ),
    ):
        with pytest.raises(ProtocolAborted, match="signed other results"):
            go(told, certificates_shown)


def test_the_commit_is_that_of_the_working_copy(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert commit_of(tmp_path) == asked.stdout.strip()
    subprocess.run(["git", "pack-refs", "--all"], cwd=tmp_path, check=True)
    assert commit_of(tmp_path) == asked.stdout.strip()
    subprocess.run(["git", "worktree", "add", "-q", "other"], cwd=tmp_path, check=True)
    assert commit_of(tmp_path / "other") == asked.stdout.strip()


def test_what_is_no_run_is_a_usage_error(tmp_path: Path) -> None:
    assert main(["verify", str(tmp_path)]) == UsageError.exit_code
