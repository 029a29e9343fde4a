"""Failures a user can meet, each with the exit code of the command line's contract
(`docs/reference/exit-codes.md`).

The text of a failure is one sentence: what happened, where, what to do. A party in it is called "Party north"
at the beginning, "party north" elsewhere, in a list by its name alone. It may be shown to the user, written
to the log and sent to the other parties: it must never hold a private value (a record, a count, a share).
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.process.foreign_text import printable


class CosynthError(Exception):
    """A failure with a sentence for the user and an exit code for the shell."""

    exit_code = 1

    def __init__(self, sentence: str) -> None:
        self.sentence = printable(sentence, line=True)
        super().__init__(self.sentence)


class UsageError(CosynthError):
    """The command line itself is wrong."""

    exit_code = 2


class StudyInvalid(CosynthError):
    """The study file does not describe a study that can be run."""

    exit_code = 10


class PeerUnreachable(CosynthError):
    """A party did not come before the deadline, or a port is in use."""

    exit_code = 20


class PeerIdentity(CosynthError):
    """A certificate is missing, foreign, expired, or belongs to another party."""

    exit_code = 21


class StudiesDiffer(CosynthError):
    """The parties do not hold the same study, protocol version or role."""

    exit_code = 22


class DataRefused(CosynthError):
    """This party's own data does not fit the study; refused before anything was sent."""

    exit_code = 30


class ProtocolAborted(CosynthError):
    """A peer sent something that the protocol does not allow, or stopped for a stated reason."""

    exit_code = 40


class BadInput(ProtocolAborted):
    """Contributors' counts are not those of one table each. contributors: their numbers."""

    def __init__(self, contributors: Sequence[int], max_rows: int, names: Sequence[str] = ()) -> None:
        """max_rows: that a table may have. names: of all parties by number, where they are known."""
        who = [names[number] if names else str(number) for number in contributors]
        alone = len(who) == 1
        super().__init__(
            f"{'Party' if alone else 'Parties'} {' and '.join(who)} sent counts that no table of at most {max_rows} rows has "
            "(negative or too large ones, or marginals that disagree) or, in a run that goes on, another number of rows than "
            "before, and nothing was computed from them; let "
            f"{'it' if alone else 'them'} check data and software, or leave {'it' if alone else 'them'} out of the study."
        )
        self.contributors, self.max_rows = tuple(contributors), max_rows


class PeerLost(CosynthError):
    """A peer's connection ended or fell silent."""

    exit_code = 41


class BudgetRefused(CosynthError):
    """A release would exceed the study's budget or a custodian's cap."""

    exit_code = 50


class OutOfResources(CosynthError):
    """This machine has no room on a disk, no memory or no file descriptors left, or does not let this user
    write."""

    exit_code = 60


class Interrupted(CosynthError):
    """The user pressed Ctrl-C (or sent SIGTERM)."""

    exit_code = 130
