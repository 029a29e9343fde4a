"""examples/compose, its own files, as processes: what compose would mount where, who starts after whom, and
who sees what."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.runner import processes
from tests.worlds.ports import free_ports

EXAMPLE = processes.ROOT / "examples" / "compose"
PARTIES = ("north", "south", "west")
COMPOSE: dict[str, Any] = yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]


def mounts(service: str, folder: Path) -> dict[str, Path]:
    """What a container of the service sees: path inside -> path outside."""
    seen = dict(volume.split(":")[1::-1] for volume in SERVICES[service].get("volumes", []))
    for name in SERVICES[service].get("secrets", []):
        seen[f"/run/secrets/{name}"] = COMPOSE["secrets"][name]["file"]
    return {inside: (folder / outside).resolve() for inside, outside in seen.items()}


def outside(text: str, mounted: dict[str, Path]) -> str:
    """A command or a file with the paths that it has outside of the container."""
    longest = sorted(mounted, key=len, reverse=True)
    found = re.compile("|".join(rf"(?<![\w.]){re.escape(inside)}(?![\w-])" for inside in longest))
    return found.sub(lambda match: str(mounted[match[0]]), text)


def arguments(service: str, folder: Path, entry: str = "command") -> list[str]:
    return [outside(word, mounts(service, folder)) for word in SERVICES[service][entry]]


@pytest.fixture
def rehearsal(tmp_path: Path) -> Path:
    """The example as it is, but for names of hosts, which are compose's, and ports, which must be free here."""
    shutil.copytree(EXAMPLE, tmp_path / "compose")
    shutil.copytree(EXAMPLE.parent / "three_custodians", tmp_path / "three_custodians")
    folder = tmp_path / "compose"
    study = folder / "agreed" / "study.toml"
    text = study.read_text(encoding="utf-8")
    for name, port in zip(PARTIES, free_ports(3), strict=True):
        assert f'"{name}:7101"' in text
        text = text.replace(f'"{name}:7101"', f'"127.0.0.1:{port}"')
        private = folder / name / "private.toml"
        settings = private.read_text(encoding="utf-8")
        assert settings.count("0.0.0.0:7101") == 1
        settings = settings.replace("0.0.0.0:7101", f"127.0.0.1:{port}")
        private.write_text(outside(settings, mounts(name, folder)), encoding="utf-8")
    study.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_three_parties_and_a_recipient(rehearsal: Path, tmp_path: Path) -> None:
    def start(name: str, *command: str) -> processes.Program:
        return processes.Program(*command, ledger=tmp_path / f"{name}.db", scratch=tmp_path / name)

    made = start("certificates", *arguments("certificates", rehearsal)).end()
    assert made.code == 0, made.complaint
    running = [start(name, *arguments(name, rehearsal)) for name in PARTIES]
    for party in running:
        end = party.end()
        assert end.code == 0, end.complaint
    entry, command = (arguments("delivery", rehearsal, key) for key in ("entrypoint", "command"))
    subprocess.run([*entry, *command], check=True)

    release = rehearsal / "recipient"
    assert {path.name for path in release.iterdir()} - {".gitignore"} == processes.RESULTS | {
        "signatures.json"
    }
    checked = start("recipient", *arguments("recipient", rehearsal)).end()
    assert checked.code == 0, checked.output + checked.complaint
    asked = re.search(
        r"compose run --rm --no-deps recipient (sample .*)", (EXAMPLE / "README.md").read_text()
    )
    assert asked
    rows = start(
        "asking", *shlex.split(outside(asked[1], mounts("recipient", rehearsal)), comments=True)
    ).end()
    assert rows.code == 0 and len(rows.output.splitlines()) == 6, rows.complaint
    run = json.loads((release / "run.json").read_text(encoding="utf-8"))
    assert run["deployment"] == "distributed"
    for name in PARTIES:  # the account that its private file names, not the user's
        assert (rehearsal / name / "ledger.db").exists() and not (tmp_path / f"{name}.db").exists()


def test_no_container_sees_what_is_anothers() -> None:
    for name in PARTIES:
        seen = [*SERVICES[name]["volumes"], *SERVICES[name]["secrets"]]
        others = [other for other in PARTIES if other != name]
        assert not [what for what in seen for other in others if other in what]
    for name in ("delivery", "recipient"):
        assert "secrets" not in SERVICES[name] and SERVICES[name]["network_mode"] == "none"
    assert "/party" not in mounts("recipient", EXAMPLE)


def test_who_starts_after_whom() -> None:
    done = "service_completed_successfully"
    assert SERVICES["delivery"]["depends_on"] == {"north": {"condition": done}}
    assert SERVICES["recipient"]["depends_on"] == {"delivery": {"condition": done}}
    assert SERVICES["certificates"]["profiles"] == ["setup"]  # never by `docker compose up`


def test_the_image_has_what_is_installed() -> None:
    lines = (processes.ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = {word for line in lines if re.match(r"COPY (?!--from)", line) for word in line.split()[1:-1]}
    assert {"requirements.lock", "setup.py"} < copied
    assert all((processes.ROOT / name).exists() for name in copied)
    packages = re.search(r"^PACKAGES = \((.*)\)", (processes.ROOT / "setup.py").read_text(), re.MULTILINE)
    assert packages and set(re.findall(r"\w+", packages[1])) < copied
