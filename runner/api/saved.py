"""The file of a fitted synthesizer: its parameters and what its run has released, as a zip archive.

    params.toml                                   parameters, in the study file's words; those that are None are left out
    run.json, model.npz, synthetic.csv, ..        files of the result (`docs/reference/outputs.md`), as they are

No pickle: opening it runs nothing. Only these names are taken out of it, each of at most `MAX_BYTES`, and
run.json must be one. Nothing in it is private.
"""

from __future__ import annotations

import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mpc_protocols.errors import CosynthError, UsageError
from runner.api.run import Run
from runner.failures import reason
from runner.report.files import facts_of
from runner.results.finished_run import MODEL, domain_of
from runner.results.outdir import RUN, TABLE, finished
from runner.study.toml_text import to_toml

PARAMS: Final = "params.toml"
NEEDED: Final = (RUN, MODEL, TABLE)
FILES: Final = (*NEEDED, "measurements.json", "report.html")
MAX_BYTES: Final = 1 << 32
MAX_PARAMS: Final = 1 << 26
"""Bytes of the parameters, which are read into memory."""


def save(path: Path, params: Mapping[str, Any], run: Run) -> Path:
    """Write the archive. Raises `UsageError`."""
    try:
        text = to_toml({"params": {name: value for name, value in params.items() if value is not None}})
    except TypeError as error:
        raise UsageError(
            f"The parameters have a value without a form in a file ({str(error).rstrip('.')}); nothing was written."
        ) from None
    missing = [name for name in NEEDED if not (run.directory / name).is_file()]
    if missing:
        raise UsageError(f"{run.directory} holds no {missing[0]} any more; nothing was written.")
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(PARAMS, text)
            for name in FILES:
                if (run.directory / name).is_file():
                    archive.write(run.directory / name, name)
    except FileExistsError:
        raise UsageError(f"{path} is there already and is not overwritten; name another file.") from None
    except OSError as error:
        path.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {reason(error)}.") from None
    return path


def load(path: Path) -> tuple[dict[str, Any], Run]:
    """Parameters, and the run in a temporary directory that lives as long as it. Raises `UsageError`."""
    holder = tempfile.TemporaryDirectory(prefix="cosynth-run-")
    folder = Path(holder.name)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if not members.keys() >= {PARAMS, *NEEDED}:
                raise UsageError(f"{path} was not written by Synthesizer.save; name such a file.")
            for name in FILES:
                if name in members:
                    _check(path, members[name], MAX_BYTES)
                    archive.extract(members[name], folder)
            _check(path, members[PARAMS], MAX_PARAMS)
            params = tomllib.loads(archive.read(members[PARAMS]).decode("utf-8"))["params"]
        if not isinstance(params, dict):
            raise KeyError(PARAMS)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({reason(error)}); name the file that `save` wrote."
        ) from None
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, RuntimeError):
        raise _damaged(path) from None
    try:
        facts_of(folder)
        summary = finished(folder)
        domain_of(summary)
    except (CosynthError, KeyError, TypeError, ValueError, AttributeError):
        raise _damaged(path) from None
    return params, Run(folder, summary, holder)


def _check(path: Path, member: zipfile.ZipInfo, limit: int) -> None:
    """Raises `UsageError`. No more than a member states is taken out of an archive."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # `save` writes no other
        raise _damaged(path)
    if member.file_size > limit:
        raise UsageError(f"{path} holds a {member.filename} of more than {limit} bytes.")


def _damaged(path: Path) -> UsageError:
    return UsageError(f"{path} is no saved synthesizer, or it is damaged.")
