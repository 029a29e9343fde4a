"""What a failure that nobody raised a sentence for comes to: memory and disks run out everywhere, all else is a defect."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mpc_protocols.errors import PeerLost
from runner.failures import describe


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "Out of memory; "),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Out of memory; "),
        (ImportError("/x/_common.so: failed to map segment from shared object"), "Out of memory; "),
        (
            OSError(errno.EFBIG, os.strerror(errno.EFBIG), "a.csv", None, "b.csv"),
            "There is no room to write b.csv (file too large); free some, and start again",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            "There is no room to write a file (no space left on device); ",
        ),
        (ImportError("no such name"), "Internal error: ImportError"),
        (OSError(errno.EIO, "private words"), "Internal error: OSError"),
    ],
)
def test_memory_and_disks_run_out_and_all_else_is_a_defect(
    tmp_path: Path, error: Exception, words: str
) -> None:
    log = tmp_path / "private.log"
    code, sentence = describe(error, log)
    assert code == 1 and sentence.startswith(words)
    assert "private words" not in sentence and type(error).__name__ in log.read_text()


def test_a_failure_with_a_sentence_keeps_it() -> None:
    assert describe(PeerLost("Party north is gone.")) == (41, "Party north is gone.")
