"""Build what a release consists of, twice, and keep it if both builds are the same bytes (`make dist`). With
--once: build it once, to be compared with what somebody else has built.

    dist/cosynth-VERSION-py3-none-any.whl    the packages that do the work
    dist/cosynth-VERSION.tar.gz              the whole project as it is in version control, with its tests, pages and lock files
    dist/cosynth-VERSION.cdx.json            what it is installed with (`make sbom`)
    dist/SHA256SUMS                          of these

Nothing in them tells when, where, by whom or under which umask they were built: files come from the list of
version control (or from the archive that this is run in), in order, owned by nobody, at the time
SOURCE_DATE_EPOCH, which by default is the release's date in CHANGELOG.md. Standard library, and `build` in
the interpreter that runs this.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BILL = ROOT / "build" / "cosynth.cdx.json"
IGNORED = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "*.egg-info", "cosynth-demo"
)


def main() -> None:
    """Build into dist/, which is emptied before. Raises `SystemExit` with one sentence."""
    version, epoch = release()
    if not BILL.is_file():
        raise SystemExit(f"{BILL} is missing; run make dist, which writes it.")
    with tempfile.TemporaryDirectory(prefix="cosynth-dist-") as name:
        parts = ("first",) if "--once" in sys.argv[1:] else ("first", "second")
        first, *others = (built(Path(name) / part, epoch) for part in parts)
        differing = sorted(
            file
            for second in others
            for file in first.keys() | second.keys()
            if first.get(file) != second.get(file)
        )
        if differing:
            raise SystemExit(f"{', '.join(differing)}: two builds differ; nothing was written to dist/.")
    files = {**first, f"cosynth-{version}.cdx.json": BILL.read_bytes()}
    sums = "".join(f"{hashlib.sha256(files[file]).hexdigest()}  {file}\n" for file in sorted(files))
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (target / file).write_bytes(content)
    print(sums, end="")


def release() -> tuple[str, int]:
    """The version, and the time that all files get. Raises `SystemExit` where CHANGELOG.md does not date the
    version."""
    text = (ROOT / "runner" / "version.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^VERSION = "(.*)"$', text, re.MULTILINE)
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return version, int(given)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    date = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    if date is None:
        raise SystemExit(
            f"CHANGELOG.md has no date for version {version}; write one before the release is built."
        )
    return version, int(datetime.fromisoformat(date[1]).replace(tzinfo=UTC).timestamp())


def built(folder: Path, epoch: int) -> dict[str, bytes]:
    """Wheel and sdist by name, built from a copy of the sources in `folder`."""
    source, out = folder / "source", folder / "out"
    copy_sources(source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The build failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return {
        path.name: plain_wheel(path, epoch) if path.suffix == ".whl" else plain_archive(path, epoch)
        for path in sorted(out.iterdir())
    }


def copy_sources(to: Path) -> None:
    """The files under version control as they are now; in an archive of the sources, which has none, all that
    it came with."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode or not (ROOT / ".git").exists():
        shutil.copytree(ROOT, to, ignore=IGNORED)
        return
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)


def plain_wheel(path: Path, epoch: int) -> bytes:
    """The same wheel with entries in order, all of one time and one mode; RECORD comes last, as installers
    expect."""
    moment = datetime.fromtimestamp(epoch, UTC)
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for name in sorted(old.namelist(), key=lambda name: (name.endswith(".dist-info/RECORD"), name)):
            entry = zipfile.ZipInfo(name, moment.timetuple()[:6])
            entry.external_attr, entry.create_system = 0o100644 << 16, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name), compresslevel=9)
    return content.getvalue()


def plain_archive(path: Path, epoch: int) -> bytes:
    """The same archive with members in order, owned by nobody, all of one time."""
    content = io.BytesIO()
    with (
        tarfile.open(path) as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=content, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, epoch
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return content.getvalue()


if __name__ == "__main__":
    main()
