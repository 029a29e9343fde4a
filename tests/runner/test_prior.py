"""Studies that begin from an earlier release or from public rows: read, run, told, verified; and what is
refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cosynth
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from parties.budget.ledger import Ledger
from runner.commands.cli import main
from runner.results import release as releases
from runner.results.outdir import RUN
from runner.study import digest, load
from runner.study.sections import prior
from runner.study.sections.prior import FILES
from runner.study.sections.public_files import MAX_BYTES
from synth.prior import Known, PublicTable, Release, Verdict
from tests.runner import small

IDEAL = [('algorithm = "aim"', 'algorithm = "mosaic"'), ("[aim]\nrounds = 3\n", "")]
DOMAIN = "[domain.columns]"
ANOTHER = "ab" * 32


def study(
    folder: Path,
    prior: str = "",
    backend: str = "ideal",
    changes: Any = (),
    north: str = "",
    pins: Mapping[str, str] | None = None,
) -> Path:
    """A study of mosaic, with a [prior] table of this content. north: a line of that party. pins:
    fingerprints, by party."""
    folder.mkdir()
    text = f"[prior]\n{prior}\n\n{DOMAIN}" if prior else DOMAIN
    changes = [*IDEAL, ('"replicated"', f'"{backend}"'), (DOMAIN, text), *changes]
    lines = {name: f'fingerprint = "{pin}"' for name, pin in (pins or {}).items()}
    return small.write(folder, changes=changes, party={"north": north, **lines}).path


@pytest.fixture(scope="module")
def may(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("prior")
    assert main(["run", str(study(folder / "may")), "--out", str(folder / "out"), "--quiet"]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def begun(may: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that began from it."""
    folder = tmp_path_factory.mktemp("begun")
    june = study(folder / "june", f'release = "{may}"')
    assert main(["run", str(june), "--out", str(folder / "out"), "--quiet"]) == 0
    return folder / "out"


@pytest.fixture
def copy(may: Path, tmp_path: Path) -> Path:
    """The same, to be altered."""
    return Path(shutil.copytree(may, tmp_path / "release", ignore=shutil.ignore_patterns("parties")))


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    form = json.loads(path.read_text())
    change(form)
    path.write_text(json.dumps(form))


def refused(folder: Path, prior: str, changes: Any = (), north: str = "") -> str:
    with pytest.raises(StudyInvalid) as error:
        load(study(folder, prior, changes=changes, north=north))
    assert error.value.sentence.endswith(".") and "\n" not in error.value.sentence
    return error.value.sentence


def test_a_run_begins_from_a_release_tells_so_and_is_verified(
    may: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    june, out = study(tmp_path / "june", f'release = "{may}"'), tmp_path / "out"
    assert main(["check", str(june)]) == 0
    assert main(["run", str(june), "--out", str(out), "--quiet"]) == 0
    facts, before = json.loads((out / RUN).read_text()), json.loads((may / RUN).read_text())
    told = facts["prior"]
    assert told["run"] == before["session"] and "runs" not in told  # for nobody has signed it
    assert told["inherited"] == len(json.loads((out / "measurements.json").read_text())["inherited"]) > 5
    assert told["rho_together"] == pytest.approx(
        facts["privacy"]["rho_spent"] + before["privacy"]["rho_spent"]
    )
    page = (out / "report.html").read_text()
    assert "rests on the release of trial" in page and "has spent what all of them have cost" in page
    capsys.readouterr()
    assert main(["verify", str(out)]) == 0
    assert "what this run began from, and what its people had spent before" in capsys.readouterr().out
    assert told["beta_together"] == pytest.approx(facts["privacy"]["beta"] + before["privacy"]["beta"])
    assert main(["verify", str(out), "--prior", str(may)]) == 0
    said = capsys.readouterr().out
    assert f"began from is {may}: its digest, its session and what its people had spent are as agreed" in said
    assert "its files are not here" not in said
    edited(out / RUN, lambda form: form["prior"].update(inherited=1))
    assert main(["report", str(out)]) == 0 and main(["verify", str(out)]) == 22


def changed(change: dict[str, Any], form: dict[str, Any]) -> None:
    form["prior"].update(change)


def test_verify_holds_what_a_run_began_from_against_the_folder_itself(
    may: Path, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert (
        main(["run", str(study(tmp_path / "june", f'release = "{may}"')), "--out", str(out), "--quiet"]) == 0
    )

    def asked(prior: Path, run: Path = out) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["verify", str(run), "--prior", str(prior)])
        told = capsys.readouterr()
        return code, told.out + told.err

    assert asked(copy)[0] == 0  # wherever it lies
    for change in ({"rho_together": 5.0}, {"study": "another"}):
        other = Path(shutil.copytree(out, tmp_path / next(iter(change))))
        edited(other / RUN, partial(changed, change))
        assert main(["report", str(other)]) == 0
        assert asked(copy, other)[0] == 22
    edited(copy / RUN, lambda form: form.update(wall_s=1.0))
    code, said = asked(copy)
    assert code == 22 and f"says that the run began from another release than {copy} has" in said
    edited(copy / RUN, lambda form: form["privacy"].update(rho_spent=form["privacy"]["rho_spent"] * 2))
    assert "began from another release, rho than" in asked(copy)[1]
    (copy / "measurements.json").write_text("{}")
    code, said = asked(copy)
    assert code == 22 and "its files were altered" in said
    code, said = asked(tmp_path / "nowhere")
    assert code == 22 and "which cannot be read" in said
    code, said = asked(copy, may)
    assert code == 2 and "this run began from nothing" in said


def test_verify_looks_at_public_rows_and_at_how_far_samplers_are_off_in_both(
    may: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "public.csv").write_text("sick,work\n" + "yes,Gov\nno,\n" * 20)
    june, out = study(tmp_path / "june", 'table = "../public.csv"'), tmp_path / "out"
    assert main(["run", str(june), "--out", str(out), "--quiet"]) == 0
    assert main(["verify", str(out), "--prior", str(tmp_path / "public.csv")]) == 0
    assert "its digest is as agreed" in capsys.readouterr().out
    (tmp_path / "public.csv").write_text("sick,work\nno,Gov\n")
    assert main(["verify", str(out), "--prior", str(tmp_path / "public.csv")]) == 22
    assert "began from another table, rows than" in "".join(capsys.readouterr())
    july = study(tmp_path / "july", f'release = "{may}"')
    assert main(["run", str(july), "--out", str(tmp_path / "other"), "--quiet"]) == 0
    edited(tmp_path / "other" / RUN, lambda form: form["prior"].update(beta_together=0.0))
    assert main(["report", str(tmp_path / "other")]) == 0 and main(["verify", str(tmp_path / "other")]) == 22


def test_a_folder_as_public_table_is_named_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()
    told = refused(tmp_path / "a", 'table = "../rows.csv"')
    assert "rows.csv must be a file, and is a folder, a pipe or a device" in told and "names 3" not in told


def test_check_tells_a_party_under_which_data_set_its_ledger_has_the_earlier_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    assert main(["run", str(study(tmp_path / "may")), "--out", str(tmp_path / "release"), "--quiet"]) == 0
    june = study(tmp_path / "june", 'release = "../release"')
    own = tmp_path / "north.toml"

    def asked(ledger: str) -> str:
        own.write_text(f"[ledger]\n{ledger}\n")
        main(["check", str(june), "--party", "north", "--private", str(own)])
        return capsys.readouterr().out

    dataset = "trial/north"
    assert dataset in {entry.reservation.dataset for entry in Ledger(tmp_path / "ledger.db").entries()}
    assert f"under the data set {dataset}, and this run under people" in asked('dataset = "people"')
    assert "they are not added up" not in asked(f"dataset = {json.dumps(dataset)}")
    assert "is not in your ledger" in asked(f'file = "{tmp_path / "new.db"}"')


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(rho_together="much"),
        lambda told: told.update(rho_together=None),
        lambda told: told.update(rho_together=-1.0),
        lambda told: told.update(rho_together=float("inf")),
        lambda told: told.pop("rho_together"),
        lambda told: told.update(rows="many"),
        lambda told: told.update(p_value=[]),
        lambda told: told.pop("people"),
        lambda told: told.clear(),
    ],
)
def test_a_run_that_says_nonsense_of_what_it_began_from_is_one_sentence(
    change: Callable[[dict[str, Any]], None], begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(begun, tmp_path / "out", ignore=shutil.ignore_patterns("parties")))
    edited(out / RUN, lambda form: change(form["prior"]))
    for command in ("report", "verify"):
        capsys.readouterr()
        assert main([command, str(out)]) == 2
        told = capsys.readouterr().err
        assert f"{out / RUN} is " in told and told.count("\n") == 1


def test_answers_say_that_inherited_counts_are_in_none_of_them(
    begun: Path, may: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "share(sick == 'yes')"
    capsys.readouterr()
    assert main(["infer", str(begun), question, "--json"]) == 0
    note = json.loads(capsys.readouterr().out)["note"]
    assert "what it inherited ([prior]) is in its table only" in note
    assert main(["infer", str(begun), question]) == 0
    assert note in capsys.readouterr().out.splitlines()
    assert cosynth.load(begun).infer(question).attrs["note"] == note
    assert cosynth.load(may).infer(question).attrs["note"] == ""


def test_the_next_release_takes_over_what_this_one_inherited(may: Path, tmp_path: Path) -> None:
    june, july = study(tmp_path / "june", f'release = "{may}"'), tmp_path / "july"
    assert main(["run", str(june), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    read = load(study(july, 'release = "../out"\npeople = "disjoint"')).prior
    assert read is not None and read.runs == read.apart == ()  # nobody has signed it
    first = json.loads((tmp_path / "out" / RUN).read_text())["prior"]["rho_together"]
    assert read.spent == first and read.together(first / 2) == first


def test_public_rows_are_read_in_the_studys_values(may: Path, tmp_path: Path) -> None:
    path = study(tmp_path / "june", 'table = "public.csv"')
    (tmp_path / "june" / "public.csv").write_text("sick,work,other\nyes,Gov,1\nno,,2\n")
    prior = load(path).prior
    assert prior is not None and isinstance(prior.content, PublicTable)
    assert prior.content.names == ("work", "sick") and prior.content.codes.tolist() == [[1, 1], [3, 0]]
    assert prior.spent == 0 and prior.public() == {"table": prior.digest, "people": "same"}


def test_the_digest_of_a_study_has_the_bytes_of_its_prior_wherever_they_lie(
    copy: Path, tmp_path: Path
) -> None:
    shutil.copytree(copy, tmp_path / "elsewhere")
    one = load(study(tmp_path / "one", 'release = "../release"'))
    other = load(study(tmp_path / "two", 'release = "../elsewhere"'))
    other = replace(other, tree={**other.tree, "party": one.tree["party"]}, parties=one.parties)
    assert digest(one, "") == digest(other, "")
    edited(tmp_path / "elsewhere" / RUN, lambda form: form.update(wall_s=1.0))
    changed = load(tmp_path / "two" / "study.toml")
    changed = replace(changed, tree={**changed.tree, "party": one.tree["party"]}, parties=one.parties)
    assert digest(one, "") != digest(changed, "")


def test_a_nearby_domain_shares_what_has_the_same_name_and_values(may: Path, tmp_path: Path) -> None:
    changes = [
        ("grade = 3", "grade = 4"),
        ('values = ["no", "yes"] }', 'values = ["no", "yes"] }\nnewer = 2'),
    ]
    prior = load(study(tmp_path / "june", f'release = "{may}"', changes=changes)).prior
    assert prior is not None and isinstance(prior.content, Release)
    assert prior.content.names == ("age", "work", "income", "sick")
    assert all("grade" not in known.columns for known in prior.content.marginals)


def test_a_prior_that_cannot_be_used_is_refused_in_one_sentence(copy: Path, tmp_path: Path) -> None:
    release = 'release = "../release"'
    other = [
        (name, name.replace(" = ", "_2 = ", 1))
        for name in ("age = {", "work = {", "income = {", "grade = 3", "sick = {")
    ]
    assert "it is of another domain" in refused(tmp_path / "a", release, [(o, n) for o, n in other])
    pinned = f'fingerprint = "{"ab" * 32}"'
    assert "it has no signatures.json, and this study pins" in refused(tmp_path / "b", release, north=pinned)
    assert "cannot be read" in refused(tmp_path / "c", 'release = "../missing"')
    assert "one of the two" in refused(tmp_path / "d", f'{release}\ntable = "x.csv"')
    assert "has no meaning with a public table" in refused(tmp_path / "e", 'table = "x.csv"\npeople = "same"')
    assert 'people must be "same" or "disjoint"' in refused(tmp_path / "f", f'{release}\npeople = "other"')
    aim = [('algorithm = "mosaic"', 'algorithm = "aim"')]
    assert 'which begins from nothing; use "mosaic"' in refused(tmp_path / "g", release, aim)
    (tmp_path / "one.csv").write_text("sick\nyes\n")
    assert "fewer than two columns" in refused(tmp_path / "h", 'table = "../one.csv"')


@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_not_read_to_its_end(name: str, copy: Path, tmp_path: Path) -> None:
    with (copy / name).open("ab") as file:
        file.truncate(MAX_BYTES + 1)
    assert f"{name} is larger than {MAX_BYTES >> 20} MiB" in refused(
        tmp_path / "june", 'release = "../release"'
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda form: form["measurements"][0].update(sigma2="1/2"),
        lambda form: form["measurements"][0].update(sigma2="1e-320"),
        lambda form: form["measurements"].pop(),
        lambda form: form.update(inherited=[{"clique": ["age", "work"], "cells": 24, "error": -1.0}]),
        lambda form: form.update(inherited=[{"clique": ["age", "nobody"], "cells": 24, "error": 1.0}]),
        lambda form: form["measurements"][0].update(values=[1]),
        lambda form: form.clear(),
    ],
)
def test_measurements_that_are_not_those_of_the_run_are_refused(
    change: Callable[[dict[str, Any]], None], copy: Path, tmp_path: Path
) -> None:
    edited(copy / "measurements.json", change)
    assert "its files were altered" in refused(tmp_path / "june", 'release = "../release"')


@pytest.mark.parametrize(
    "change",
    [
        lambda form: form["privacy"].update(rho_spent=0),
        lambda form: form["privacy"].update(rho_spent=1e-3),
        lambda form: form["privacy"].update(rho_spent=str(form["privacy"]["rho_spent"])),
        lambda form: form["privacy"]["events"][0].update(rho=-0.2),
        lambda form: form["privacy"]["events"][0].update(rho=True),
        lambda form: form.update(session=None),
        lambda form: form.update(session="\ud800"),
        lambda form: form.update(session=["a"]),
        lambda form: form.update(study=None),
        lambda form: form.update(study="\ud800"),
        lambda form: form.update(prior={"rho_together": 1.0}),
        lambda form: form["agreed"].update(prior={"release": "00", "rho": 1.0, "people": "same"}),
    ],
)
def test_a_release_says_what_run_it_is_and_no_less_than_its_events_cost(
    change: Callable[[dict[str, Any]], None], copy: Path, tmp_path: Path
) -> None:
    edited(copy / RUN, change)
    assert "its files were altered" in refused(tmp_path / "june", 'release = "../release"')


def rests_on_another(form: dict[str, Any]) -> None:
    spent = form["privacy"]["rho_spent"]
    form["agreed"]["prior"] = {"release": "00", "run": ANOTHER, "rho": spent, "people": "disjoint"}
    form["prior"] = {"runs": [ANOTHER], "rho_together": spent}


def test_nobody_names_other_runs_as_apart_in_a_release_that_was_not_signed(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger would count those by the largest in place of their sum."""
    edited(copy / RUN, rests_on_another)
    june = study(tmp_path / "june", 'release = "../release"\npeople = "disjoint"')
    read = load(june).prior
    assert read is not None and read.apart == ()
    assert main(["check", str(june)]) == 0
    told = capsys.readouterr().out
    assert "nobody has attested where that release is from" in told and "ledgers add both up" in told


def test_what_all_parties_have_signed_is_apart_from_what_it_rests_on(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(prior, "_check_signatures", lambda path, hashes, parties: asked.append(len(hashes)))
    own = json.loads((copy / RUN).read_text())["session"]
    edited(copy / RUN, rests_on_another)
    june = load(study(tmp_path / "june", 'release = "../release"\npeople = "disjoint"'))
    pinned = tuple(replace(party, fingerprint="ab" * 32) for party in june.parties)
    for parties, apart in (
        (pinned, (own, ANOTHER)),
        ((replace(pinned[0], fingerprint=None), *pinned[1:]), ()),
    ):
        assert prior._release(copy, "disjoint", june.domain, parties).apart == apart
    assert asked == [3, 3, 3]


def test_a_public_table_is_named_as_the_study_names_it(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("sick,work\nyes,Gov\nperhaps,Gov\n")
    told = refused(tmp_path / "a", 'table = "../one.csv"')
    assert 'cannot be used: one.csv, column "sick", line 3' in told


def test_what_a_person_has_spent_in_both_is_recomputed(may: Path, tmp_path: Path) -> None:
    june, out = study(tmp_path / "june", f'release = "{may}"'), tmp_path / "out"
    assert main(["run", str(june), "--out", str(out), "--quiet"]) == 0
    alone = json.loads((out / RUN).read_text())["privacy"]["rho_spent"]
    edited(out / RUN, lambda form: form["prior"].update(rho_together=alone))
    assert main(["report", str(out)]) == 0 and main(["verify", str(out)]) == 22
    # nor does a later run believe it
    assert "its files were altered" in refused(tmp_path / "july", f'release = "{out}"')


def test_a_model_that_is_none_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / "model.npz").write_bytes(b"PK\x03\x04 no model")
    assert "The model file is not valid" in refused(tmp_path / "june", 'release = "../release"')


def test_a_run_does_not_take_the_place_of_what_it_begins_from(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    june = study(tmp_path / "june", 'release = "../release"')
    assert main(["run", str(june), "--out", str(copy), "--replace"]) == 2
    assert "a run cannot begin from itself" in capsys.readouterr().err


@pytest.mark.parametrize("prior", ['release = "{}"', 'table = "{}/synthetic.csv"'])
def test_plan_compares_with_the_earlier_table_as_it_is(
    prior: str, may: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is nearer, of one draw of a small table, is chance; the sentence says what the figures do."""
    june = study(tmp_path / "june", prior.format(may))
    assert main(["plan", str(june), "--rows", "500", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["prior"]
    assert told["rows"] == 500 and min(told[of] for of in ("unchanged", "alone", "together")) > 0
    is_nearer = told["together"] < told["unchanged"]
    assert ("nearer than the earlier one" in told["sentence"]) == is_nearer
    assert ("as good as a new one" in told["sentence"]) != is_nearer


def test_what_a_leader_tells_of_the_prior_is_checked(may: Path) -> None:
    trial = load(may.parent / "may" / "study.toml")
    known = (Known(("age", "work"), 24, 0.1),)
    from runner.report.files import load as files

    run = files(may)
    events = tuple(
        releases.event_from_json(
            {
                "what": e.what,
                "rho": [1, 9],
                "beta": [0, 1],
                "detail": {k: v for k, v in e.detail.items() if k not in ("clique", "bins")},
            }
        )
        for e in run.events
    )
    made = releases.Release(
        run.codes[:5],
        run.model.to_bytes(),
        run.measurements,
        (),
        run.noisy_total,
        1,
        tuple(e for e in events if e.what != "select"),
        levels=tuple({level.name: level for m in run.measurements for level in m.levels}.values()),
        prior=Verdict(2, 0.5, 0.1, False, known),
    )
    made = replace(made, measurements=tuple(replace(m, round=0) for m in made.measurements))
    payload = made.to_bytes(trial.domain)
    assert releases.parse(memoryview(payload), trial.domain, 10, "north").prior == made.prior
    bad = replace(made, prior=Verdict(2, 0.5, 0.1, False, (Known(("age", "nobody"), 24, 0.1),)))
    with pytest.raises(ProtocolAborted, match="does not fit the study"):
        releases.parse(memoryview(bad.to_bytes(trial.domain)), trial.domain, 10, "north")


@pytest.mark.slow
def test_three_processes_begin_from_a_signed_release_and_refuse_one_that_was_changed(tmp_path: Path) -> None:
    first = study(tmp_path / "may", backend="replicated")
    assert main(["run", str(first), "--out", str(tmp_path / "release"), "--quiet"]) == 0
    june = study(tmp_path / "june", 'release = "../release"', "replicated")
    assert main(["run", str(june), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert json.loads((tmp_path / "out" / RUN).read_text())["prior"]["inherited"]
    assert main(["verify", str(tmp_path / "out")]) == 0
    edited(tmp_path / "release" / RUN, lambda form: form.update(wall_s=1.0))
    with pytest.raises(StudyInvalid, match=r"run\.json was changed since the parties signed it"):
        load(june)
