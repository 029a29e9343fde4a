"""What one party keeps of a run so that `--resume` can go on with it: a file of its own, private
(`docs/design/resume.md`).

Implements `mpc_protocols.public.history.History`. Records are appended, never changed, but for shares that
are overwritten when the next ones are held:

    header     whose state of which run: study's digest, run's id, party, version of the software
    attempt    the id of a session
    sharing    what the check of contributors' inputs came to: who is left out, and of a session's first sharing this party's
               shares of their numbers of rows; durable with the next `held`
    held       this party's shares of a step's result: durable before the agreement that precedes its opening
    agreed     all parties hold theirs: from now on the step may have been opened somewhere; durable before this one opens it
    opened     what a step opened to
    release    the leader's: what it hands out to everybody, before it does
    counters   the leader's: everybody's counters as they go into run.json, before it hands them out

Each record ends with a hash of what it keeps, and one of that, of its header and of all records before it. A
crash can tear the last record only: it is dropped. Anything else that is not as this file says, another
party's file and another study's are refused with one sentence (exit 2). Somebody who can write the file can
make one that fits; the other parties then find that it differs from theirs, and the journal, which notes the
hash of each `held`, that something is missing.

Nothing of the data is in it but shares of noisy results that were about to be opened, what was, and shares of
contributors' numbers of rows. File 0600; `finish` takes the shares away.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, UsageError
from mpc_protocols.process.resources import lacking
from mpc_protocols.public.history import Sharing
from parties.new_file import sync

FORMAT = 2
MAGIC = b"cosynth state 1\n"
HASH = 32
MAX_HEADER = 1 << 16
_WIPED = 1 << 20
NAME = "state-{}.bin"
"""The file's name, from the first 16 digits of the run's id."""
_START = "start anew with --replace; what the run has spent stays in the ledger"


@dataclass(frozen=True)
class Opened:
    """What a step opened to. inputs: hash of its public inputs, 32 bytes; values: int64 of one axis."""

    inputs: bytes
    values: NDArray[np.int64]

    def digest(self, before: bytes) -> bytes:
        """The hash of this and of all that was opened before."""
        content = self.inputs + self.values.astype("<i8").tobytes()
        return hashlib.sha256(before + hashlib.sha256(content).digest()).digest()


@dataclass(frozen=True)
class Held:
    """Shares of a step's result, made in the session of this id."""

    number: int
    inputs: bytes
    session: bytes
    shares: bytes


class RunState:
    """The state of a run under way; locked by this process. One thread at a time."""

    def __init__(self, path: Path, descriptor: int, study: bytes, run: bytes, party: str) -> None:
        """Use `create` or `reopen`."""
        self.path, self._descriptor = path, descriptor
        self.study, self.run, self.party = study, run, party
        self.session = b""
        self.attempts = 0
        self.results: list[Opened] = []
        self.last_held: Held | None = None
        self.release: bytes | None = None
        self.counters: bytes | None = None
        self.finished = False
        self.marks: list[str] = []
        """A part of the hash of every `held` record: what the journal notes."""
        self.note: Callable[[str], None] | None = None
        """Told the mark of every `held` record."""
        self.may_be_open = False
        """Whether the step after those that are opened may have been opened somewhere."""
        self._finish_held = False
        self._sharings: dict[bytes, tuple[int, Sharing]] = {}
        """By inputs: how many results were known before, and the sharing."""
        self._place = (0, 0)
        """Of the shares of `last_held`: offset and bytes."""
        self._chain = bytes(HASH)
        self._torn = False

    # -- beginning
    # ----------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Path, study: bytes, run: bytes, party: str, version: str) -> RunState:
        """A new file. Raises `UsageError` if there is one of this run, `OutOfResources` or `BudgetRefused` if
        it cannot be written."""
        path = folder / NAME.format(run.hex()[:16])
        if path.exists():
            raise UsageError(f"{path} is the state of this very run; go on with it with --resume.")
        part = _part(path)
        try:
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritten(path, error) from None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        made = cls(path, descriptor, study, run, party)
        made._write(MAGIC, durable=False)
        made._append(made._header(version))
        os.replace(part, path)  # never without its header
        sync(folder)
        return made

    @classmethod
    def reopen(cls, path: Path, study: bytes, party: str) -> RunState:
        """The state of an interrupted run. Raises `UsageError` for a file that is none, or another study's or
        party's, or in use."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise UsageError(f"The state {path} cannot be read ({error.strerror}); {_START}.") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"The run of {path} is under way; wait for it to end.") from None
            os.fchmod(descriptor, 0o600)
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read()  # one call of the system reads 2 GiB at most
            state, sound = cls._parsed(path, descriptor, content)
        except BaseException:
            os.close(descriptor)
            raise
        if state.study != study or state.party != party:
            state.close()
            raise UsageError(
                f"The state {path} is of another {'study' if state.study != study else 'party'}; name the directory of the "
                "run to resume, with the study as it was."
            )
        if sound != len(content):
            os.ftruncate(descriptor, sound)  # nothing may follow a torn record
        os.lseek(descriptor, sound, os.SEEK_SET)
        return state

    @classmethod
    def _parsed(cls, path: Path, descriptor: int, content: bytes) -> tuple[RunState, int]:
        """The state, and how much of the content it is."""
        state, at = cls(path, descriptor, b"", b"", ""), len(MAGIC)
        try:
            if content[:at] != MAGIC:
                raise ValueError
            gone = False
            while (record := _next(content, at)) is not None:
                header, payload, hashed, end = record
                chain = hashlib.sha256(state._chain + hashed).digest()
                if chain != content[end - HASH : end]:
                    raise ValueError
                state._chain = chain
                state._take(header, payload)
                whole = hashed.endswith(hashlib.sha256(payload).digest())
                if header["kind"] == "held":
                    gone, state._place = not whole, (end - 2 * HASH - len(payload), len(payload))
                elif not whole:
                    raise ValueError
                at = end
            if not state.run:
                raise ValueError
            if gone and state.last_held is not None:
                if state.last_held.number == len(state.results):
                    raise ValueError
                state.last_held = None  # overwritten; what followed is lost
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(
                f"The state {path} was altered or is of another version, so this run cannot be resumed; {_START}."
            ) from None
        return state, at

    def _take(self, header: dict[str, Any], payload: bytes) -> None:
        """One record read. ValueError, KeyError or TypeError if it does not belong here."""
        kind = header["kind"]
        if (kind == "header") != (not self.run):
            raise ValueError
        if kind == "header":
            if header["format"] != FORMAT or not isinstance(header["party"], str):
                raise ValueError
            self.study, self.run = bytes.fromhex(header["study"]), bytes.fromhex(header["run"])
            self.party, self.finished = header["party"], bool(header["finished"])
            if not self.run:
                raise ValueError
        elif kind == "attempt":
            self.session, self.attempts = bytes.fromhex(header["session"]), self.attempts + 1
        elif kind == "held":
            if header["number"] != len(self.results):
                raise ValueError
            self.last_held = Held(header["number"], bytes.fromhex(header["inputs"]), self.session, payload)
            self.marks.append(self._mark())
        elif kind == "opened":
            if header["number"] != len(self.results) or len(payload) % 8:
                raise ValueError
            values = np.frombuffer(payload, "<i8").astype(np.int64)
            self.results.append(Opened(bytes.fromhex(header["inputs"]), values))
            self.may_be_open = False
        elif kind == "agreed":
            if header["number"] != len(self.results):
                raise ValueError
            self.may_be_open = True
        elif kind == "sharing":
            if header["number"] != len(self.results) or any(type(n) is not int for n in header["left_out"]):
                raise ValueError
            self._take_sharing(
                bytes.fromhex(header["inputs"]), Sharing(self.session, tuple(header["left_out"]), payload)
            )
        elif kind == "release":
            self.release = payload
        elif kind == "counters":
            self.counters = payload
        else:
            raise ValueError

    # -- what was opened
    # ----------------------------------------------------------------------------------------------

    @property
    def digests(self) -> list[bytes]:
        """The hash of the first 0, 1, 2, ... of what was opened."""
        found = [hashlib.sha256(b"cosynth opened\0" + self.run).digest()]
        for result in self.results:
            found.append(result.digest(found[-1]))
        return found

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64] | None:
        """See `History`."""
        if number >= len(self.results):
            return None
        result = self.results[number]
        if result.inputs != inputs:
            raise ProtocolAborted(
                f"Step {number} is repeated with other public inputs than those of its release, so the run cannot be resumed; "
                "use the software and the machine that it began with at the leading party."
            )
        return result.values

    def held(self, number: int, inputs: bytes) -> bytes | None:
        """See `History`."""
        held = self.last_held
        if not self._finish_held or held is None or held.number != number or number < len(self.results):
            return None
        if held.inputs != inputs:
            raise ProtocolAborted(
                f"Step {number} is repeated with other public inputs than those it was computed for, so the run cannot be "
                "resumed; use the software and the machine that it began with at the leading party."
            )
        return held.shares

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        """See `History`. Raises `OutOfResources` or `BudgetRefused` if it cannot be written."""
        packed = shares()
        self._append({"kind": "held", "number": number, "inputs": inputs.hex()}, packed)
        self._wipe()
        self._place = (os.lseek(self._descriptor, 0, os.SEEK_CUR) - 2 * HASH - len(packed), len(packed))
        self.last_held = Held(number, inputs, self.session, packed)
        self.marks.append(self._mark())
        if self.note is not None:
            self.note(self.marks[-1])

    def agreed(self, number: int) -> None:
        """See `History`. Raises `OutOfResources` or `BudgetRefused` if it cannot be written."""
        if (
            not self.may_be_open
        ):  # durable, else a peer that got the opening could deny, after a crash here, that it held shares
            self._append({"kind": "agreed", "number": number})
            self.may_be_open = True

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        """See `History`."""
        if number < len(self.results):
            return
        content = values.astype("<i8").tobytes()
        self._append({"kind": "opened", "number": number, "inputs": inputs.hex()}, content, durable=False)
        self.results.append(Opened(inputs, values))
        self.may_be_open = False

    def sharings(self) -> dict[bytes, Sharing]:
        """See `History`. A sharing is made anew if the result after it is."""
        known = len(self.results) + self._finish_held
        return {inputs: sharing for inputs, (number, sharing) in self._sharings.items() if number < known}

    def keep_sharing(self, inputs: bytes, left_out: Sequence[int], rows: bytes) -> None:
        """See `History`. Raises `OutOfResources` or `BudgetRefused` if it cannot be written."""
        header = {
            "kind": "sharing",
            "number": len(self.results),
            "inputs": inputs.hex(),
            "left_out": list(left_out),
        }
        self._append(header, rows, durable=False)
        self._take_sharing(inputs, Sharing(self.session, tuple(left_out), rows))

    def _take_sharing(self, inputs: bytes, sharing: Sharing) -> None:
        self._sharings.pop(inputs, None)  # later ones last
        self._sharings[inputs] = len(self.results), sharing

    # -- an attempt
    # ---------------------------------------------------------------------------------------------------

    def attempt(self, session: bytes, finish_held: bool = False) -> None:
        """A session begins. finish_held: all parties hold the shares of the step after what was opened."""
        self._append({"kind": "attempt", "session": session.hex()})
        self.session, self.attempts, self._finish_held = session, self.attempts + 1, finish_held

    def keep_release(self, payload: bytes) -> None:
        """What the leader is about to hand out."""
        self._append({"kind": "release"}, payload)
        self.release = payload

    def keep_counters(self, payload: bytes) -> None:
        """Everybody's counters, which the leader is about to hand out."""
        self._append({"kind": "counters"}, payload)
        self.counters = payload

    def check_marks(self, noted: Sequence[str]) -> None:
        """Raise `UsageError` unless all marks are here that the journal has noted."""
        if not set(noted) <= set(self.marks):
            raise UsageError(
                f"The state {self.path} lacks what the journal beside it says was in it: it was altered or cut off, so this run "
                f"cannot be resumed; {_START}."
            )

    def finish(self, version: str) -> None:
        """The run is over here: keep what others may still lack, and no shares. Raises OSError,
        `BudgetRefused`."""
        part = _part(self.path)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        kept = RunState(part, descriptor, self.study, self.run, self.party)
        kept.finished = True
        kept._write(MAGIC)
        kept._append(kept._header(version))
        for number, result in enumerate(self.results):
            kept.learn(number, result.inputs, result.values)
        if self.release is not None:
            kept.keep_release(self.release)
        if self.counters is not None:
            kept.keep_counters(self.counters)
        os.fsync(descriptor)
        os.replace(part, self.path)
        sync(self.path.parent)  # or a crash could bring the shares back
        kept.close()
        self.close()

    def close(self) -> None:
        """Let go of the file; what a crash does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- private
    # ------------------------------------------------------------------------------------------------------

    def _header(self, version: str) -> dict[str, Any]:
        return {
            "kind": "header",
            "format": FORMAT,
            "study": self.study.hex(),
            "run": self.run.hex(),
            "party": self.party,
            "version": version,
            "finished": self.finished,
        }

    def _mark(self) -> str:
        return self._chain.hex()[:32]

    def _append(self, header: dict[str, Any], payload: bytes = b"", durable: bool = True) -> None:
        head, digest = _head(header, payload), hashlib.sha256(payload).digest()
        chain = hashlib.sha256(self._chain + head + digest).digest()
        self._write(b"".join((head, payload, digest, chain)), durable)
        self._chain = chain

    def _wipe(self) -> None:
        """Overwrite the last shares but those just held: what they were of is on record, or is computed anew.
        With the next record it is on disk."""
        at, left = self._place
        try:
            while left:
                written = os.pwrite(self._descriptor, bytes(min(left, _WIPED)), at)
                at, left = at + written, left - written
        except OSError as error:
            raise _unwritten(self.path, error) from None

    def _write(self, content: bytes, durable: bool = True) -> None:
        if self._torn:
            raise _unwritten(self.path, OSError(0, "it is torn"))
        self._torn = True  # nothing may follow a torn record
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(self._descriptor, view) :]
            if durable:
                os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritten(self.path, error) from None
        self._torn = False


def discard_others(folder: Path, run: bytes) -> None:
    """Remove the states of other runs in a directory that this one has taken over."""
    for path in folder.glob(NAME.format("*")):
        if path.name != NAME.format(run.hex()[:16]):
            with suppress(OSError):
                path.unlink()


def latest(folder: Path) -> Path | None:
    """The state of the last run in a directory that has one."""
    found = sorted(folder.glob(NAME.format("*")), key=lambda path: path.stat().st_mtime_ns)
    return found[-1] if found else None


def _part(path: Path) -> Path:
    """Where a file is written that is to be there whole."""
    return path.with_name(f".{path.name}.part")


def _head(header: dict[str, Any], payload: bytes) -> bytes:
    text = json.dumps(header).encode()
    return b"".join((len(text).to_bytes(4, "big"), text, len(payload).to_bytes(8, "big")))


def _next(content: bytes, at: int) -> tuple[dict[str, Any], bytes, bytes, int] | None:
    """(header, payload, header and payload's hash as they were hashed, end) of the record at a place; None at
    the end, or if it was torn.

    Raises `ValueError` for something else.
    """
    if at + 4 > len(content):
        return None
    size = int.from_bytes(content[at : at + 4], "big")
    if size > MAX_HEADER:
        raise ValueError
    middle = at + 4 + size
    if middle + 8 > len(content):
        return None
    end = middle + 8 + int.from_bytes(content[middle : middle + 8], "big")
    if end + 2 * HASH > len(content):
        return None
    header = json.loads(content[at + 4 : middle])
    if not isinstance(header, dict):
        raise ValueError
    hashed = content[at : middle + 8] + content[end : end + HASH]
    return header, content[middle + 8 : end], hashed, end + 2 * HASH


def _unwritten(path: Path, error: OSError) -> CosynthError:
    return lacking(error, f"The state {path}", ", so nothing may be released") or BudgetRefused(
        f"The state {path} cannot be written ({error.strerror}), so nothing may be released; choose another --out."
    )
