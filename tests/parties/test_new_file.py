"""A new file gets its name whole, and takes it from no other, with hard links and without."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from parties.new_file import put_in_place


@pytest.fixture(params=[None, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def _links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hard links, or what a file system without them answers."""

    def refused(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    if request.param is not None:
        monkeypatch.setattr("os.link", refused)


@pytest.mark.usefixtures("_links")
def test_a_file_gets_a_free_name_and_no_other_s(tmp_path: Path) -> None:
    part, path = tmp_path / "part", tmp_path / "new"
    part.write_text("ours")
    put_in_place(part, path)
    assert path.read_text() == "ours" and [each.name for each in tmp_path.iterdir()] == ["new"]
    part.write_text("second")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    for taken in (path, tmp_path / "nowhere"):
        with pytest.raises(FileExistsError):
            put_in_place(part, taken)
    assert path.read_text() == "ours" and part.read_text() == "second" and not (tmp_path / "none").exists()
    assert {each.name for each in tmp_path.iterdir()} == {"new", "nowhere", "part"}


@pytest.mark.usefixtures("_links")
def test_a_file_that_is_gone_takes_no_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "part", tmp_path / "new")
    assert not (tmp_path / "new").exists()
