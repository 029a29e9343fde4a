"""`verify --prior` of a release that was signed: by whom, and of which files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from parties import certificates
from runner.commands.cli import main
from runner.results import outdir, signatures
from runner.results.outdir import RUN
from tests.runner import small
from tests.runner.test_prior import ANOTHER, edited, study


def signed(release: Path, keys: Path, made: dict[str, certificates.Credential]) -> None:
    """Write the signatures of these parties beside a release. keys: where their keys go meanwhile."""
    form = signatures.Signed(
        ANOTHER,
        json.loads((release / RUN).read_text())["session"],
        signatures.hashes(release, signatures.SIGNED),
        {name: one.certificate.decode() for name, one in made.items()},
        None,
        {},
    )
    own = {
        name: signatures.signature_of(certificates.write(keys, name, one)[1], form.message)
        for name, one in made.items()
    }
    (release / outdir.SIGNATURES).write_bytes(replace(form, signatures=own).to_bytes())


def test_verify_holds_the_signatures_of_what_a_run_began_from_against_the_pins_of_its_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "release"
    assert main(["run", str(study(tmp_path / "may")), "--out", str(copy), "--quiet"]) == 0
    made, others = (
        {name: certificates.issue(certificates.make_ca("ca"), name) for name in small.NAMES[:3]}
        for _ in range(2)
    )
    pins = {name: signatures.fingerprint_of(one.certificate.decode()) for name, one in made.items()}
    signed(copy, tmp_path / "keys", made)

    def begun(name: str, pinned: dict[str, str]) -> Path:
        june, out = study(tmp_path / name, f'release = "{copy}"', pins=pinned), tmp_path / f"{name}-out"
        assert main(["run", str(june), "--out", str(out), "--quiet"]) == 0
        return out

    out = begun("june", pins)

    def asked(run: Path = out) -> str:
        capsys.readouterr()
        assert main(["verify", str(run), "--prior", str(copy)]) != 0  # the run itself was signed by nobody
        told = capsys.readouterr()
        return " ".join(line for line in (told.out + told.err).splitlines() if str(copy) in line)

    assert asked().startswith("holds") and asked().endswith("all parties, pinned, have signed it")
    some = begun("some", {"north": pins["north"]})
    assert asked(some).endswith("of the parties, north are pinned and have signed it")
    signed(copy, tmp_path / "keys", {**made, "south": others["south"]})
    assert "The certificate beside the signature of party south is not that party's" in asked()
    assert asked(some).endswith("north are pinned and have signed it")
    signed(copy, tmp_path / "keys", {name: made[name] for name in small.NAMES[:2]})
    assert "do not bear the signature of party west" in asked()
    signed(copy, tmp_path / "keys", made)
    file = copy / outdir.SIGNATURES
    genuine = file.read_text()
    first, second = (json.loads(genuine)["signatures"][name] for name in small.NAMES[:2])
    file.write_text(genuine.replace(first, "x").replace(second, first).replace('"x"', f'"{second}"'))
    assert "The signature of party north is not of these results" in asked()
    file.unlink()
    assert "it has no signatures.json, and this study pins" in asked()
    # files that all pinned parties have signed, but not those that the run began from
    edited(copy / RUN, lambda form: form.update(wall_s=1.0))
    file.write_text(genuine)
    assert "run.json was changed since the parties signed it" in asked()
    signed(copy, tmp_path / "keys", made)
    assert "says that the run began from another release than" in asked()
