"""The state of a run that can be resumed: what is written is read, and nothing else is believed."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted, UsageError
from mpc_protocols.public.history import Sharing
from parties.budget.run_state import Held, RunState, discard_others, latest

STUDY, RUN, SESSION = b"d" * 32, b"r" * 32, b"s" * 32
INPUTS = [bytes([number]) * 32 for number in range(8)]


def made(folder: Path, steps: int = 2, held: bool = True) -> Path:
    """The state of a run that opened so many steps and then held another."""
    state = RunState.create(folder, STUDY, RUN, "north", "1")
    state.attempt(SESSION)
    for number in range(steps):
        state.hold(number, INPUTS[number], lambda: b"some shares")
        state.learn(number, INPUTS[number], np.array([number, -number], np.int64))
    if held:
        state.hold(steps, INPUTS[steps], lambda: b"the last shares")
    state.close()
    return state.path


def reopened(path: Path) -> RunState:
    return RunState.reopen(path, STUDY, "north")


def test_what_was_recorded_is_read(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and latest(tmp_path) == path
    state = reopened(path)
    assert (state.run, state.attempts, state.finished, len(state.marks)) == (RUN, 1, False, 3)
    assert state.opened(1, INPUTS[1]).tolist() == [1, -1]  # type: ignore[union-attr]
    assert state.opened(2, INPUTS[2]) is None
    assert state.last_held == Held(2, INPUTS[2], SESSION, b"the last shares")


def test_shares_are_opened_only_when_all_hold_them(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    state.attempt(b"t" * 32, finish_held=False)
    assert state.held(2, INPUTS[2]) is None
    state.close()
    state = reopened(state.path)
    state.attempt(b"u" * 32, finish_held=True)
    assert state.held(1, INPUTS[1]) is None and state.held(2, INPUTS[2]) == b"the last shares"
    with pytest.raises(ProtocolAborted, match="other public inputs"):
        state.held(2, INPUTS[3])
    state.learn(2, INPUTS[2], np.zeros(1, np.int64))
    assert state.held(2, INPUTS[2]) is None


def test_a_sharing_is_repeated_if_the_result_after_it_is(tmp_path: Path) -> None:
    """And nobody needs it any more when the run is over."""
    state = RunState.create(tmp_path, STUDY, RUN, "north", "1")
    state.attempt(SESSION)
    state.keep_sharing(INPUTS[0], [4], b"numbers of rows")
    state.hold(0, INPUTS[1], lambda: b"some shares")
    state.close()
    first = {INPUTS[0]: Sharing(SESSION, (4,), b"numbers of rows")}
    for finish_held, expected in ((False, {}), (True, first)):
        with reopened(state.path) as state:
            state.attempt(b"t" * 32, finish_held)
            assert state.sharings() == expected
    with reopened(state.path) as state:
        state.learn(0, INPUTS[1], np.zeros(1, np.int64))
        state.keep_sharing(INPUTS[2], [], b"")
        assert state.sharings() == first
        state.learn(1, INPUTS[3], np.zeros(1, np.int64))
        assert list(state.sharings().items()) == [*first.items(), (INPUTS[2], Sharing(b"t" * 32, (), b""))]
        state.finish("1")
    assert b"numbers of rows" not in state.path.read_bytes()


def test_what_may_have_been_opened_is_remembered(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    assert not state.may_be_open
    state.agreed(2)
    state.close()
    state = reopened(state.path)
    assert state.may_be_open
    state.learn(2, INPUTS[2], np.zeros(1, np.int64))
    assert not state.may_be_open


def test_what_may_be_opened_is_on_disk_before_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a peer that was sent the opening could have the step computed again after a crash of this machine."""
    state, synced = reopened(made(tmp_path)), list[int]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(state.path.stat().st_size))
    state.hold(2, INPUTS[2], lambda: b"shares")
    state.agreed(2)
    assert synced[-1] == state.path.stat().st_size and len(synced) == 2


def test_a_step_with_other_inputs_is_no_repeat(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    with pytest.raises(ProtocolAborted, match="Step 0 is repeated with other public inputs"):
        state.opened(0, INPUTS[1])


def test_a_new_attempt_holds_in_place_of_an_earlier_one(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    state.attempt(b"t" * 32)
    state.hold(2, INPUTS[2], lambda: b"fresh")
    state.close()
    again = reopened(state.path)
    assert again.attempts == 2 and again.last_held == Held(2, INPUTS[2], b"t" * 32, b"fresh")


def test_shares_are_gone_when_the_next_are_held(tmp_path: Path) -> None:
    """Those of results on record, and of a step that is computed anew, also by the next attempt."""
    path = made(tmp_path, held=False)
    assert path.read_bytes().count(b"some shares") == 1
    for session, shares in ((b"t" * 32, b"x" * (3 << 19)), (b"u" * 32, b"the last shares")):
        with reopened(path) as state:
            state.attempt(session)
            state.hold(2, INPUTS[2], lambda shares=shares: shares)  # type: ignore[misc]
    assert not any(each in path.read_bytes() for each in (b"some shares", b"xx"))
    with reopened(path) as state:
        assert state.last_held == Held(2, INPUTS[2], b"u" * 32, b"the last shares")
        assert len(state.marks) == 4 and len(state.results) == 2


def test_the_last_shares_are_not_to_be_changed(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"the last shares", b"the lost shares"))
    with pytest.raises(UsageError, match="was altered"):
        reopened(path)


def test_what_the_leader_hands_out_is_kept(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    state.keep_release(b"the release")
    state.keep_counters(b"{}")
    state.close()
    state = reopened(state.path)
    assert (state.release, state.counters) == (b"the release", b"{}")


def test_a_finished_run_keeps_no_shares(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    state.keep_release(b"the release")
    state.finish("1")
    assert b"shares" not in state.path.read_bytes()
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o600
    state = reopened(state.path)
    assert state.finished and state.release == b"the release" and len(state.results) == 2
    assert state.last_held is None


def test_hashes_follow_what_was_opened(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = reopened(made(tmp_path / "a", 2)), reopened(made(tmp_path / "b", 3, held=False))
    assert one.digests == other.digests[:3] and len(set(other.digests)) == 4


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_changed_byte_is_refused_or_was_torn_off(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Refused; or a length that now leads beyond the end is taken for a crash, and the journal's marks tell.
    Where shares were overwritten nothing is read any more."""
    folder = tmp_path_factory.mktemp("state")
    path = made(folder)
    with reopened(path) as whole:
        marks, last = list(whole.marks), whole.last_held
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    held = [found.start() for found in re.finditer(b'"held"', content)]
    overwritten = [content.index(b"}", at) + 9 for at in held[:2]]
    assert all(content[at : at + 11] == bytes(11) for at in overwritten)
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    if any(at <= place < at + 11 for at in overwritten):
        with reopened(path) as state:
            assert (state.marks, state.last_held, state.digests) == (marks, last, whole.digests)
        return
    with pytest.raises(UsageError), reopened(path) as state:
        state.check_marks(marks)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_cut_is_a_crash_to_the_file_and_a_loss_to_the_journal(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("state")
    path = made(folder)
    with reopened(path) as whole:
        marks = list(whole.marks)
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(UsageError), reopened(path) as state:
        state.check_marks(marks)  # the last record is shares


def test_a_torn_record_is_dropped(tmp_path: Path) -> None:
    path = made(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0")
    state = reopened(path)
    state.attempt(b"t" * 32)
    state.close()
    assert reopened(path).attempts == 2


@pytest.mark.parametrize(
    ("study", "party", "words"), [(b"e" * 32, "north", "another study"), (STUDY, "south", "another party")]
)
def test_a_foreign_state_is_refused_and_left_as_it_is(
    tmp_path: Path, study: bytes, party: str, words: str
) -> None:
    path = made(tmp_path)
    path.write_bytes(torn := path.read_bytes()[:-1])
    with pytest.raises(UsageError, match=words):
        RunState.reopen(path, study, party)
    assert path.read_bytes() == torn


def test_a_state_is_used_once_at_a_time(tmp_path: Path) -> None:
    state = reopened(made(tmp_path))
    with pytest.raises(UsageError, match="under way"):
        reopened(state.path)
    with pytest.raises(UsageError, match="go on with it with --resume"):
        RunState.create(tmp_path, STUDY, RUN, "north", "1")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = made(tmp_path)
    os.symlink(path, tmp_path / "state-ffff.bin")
    with pytest.raises(UsageError, match="cannot be read"):
        reopened(tmp_path / "state-ffff.bin")


def test_states_of_other_runs_go_when_a_run_takes_their_place(tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / "state-ffff.bin").write_bytes(b"")
    discard_others(tmp_path, RUN)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_disk_that_lost_a_record_after_all_leaves_no_shares(tmp_path: Path) -> None:
    """The shares before it are overwritten; their result is on record."""
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with reopened(path) as state:
        assert state.last_held is None and len(state.results) == 2
