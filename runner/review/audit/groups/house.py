"""H: what keeps a party's own house - its ledger, its bounds, what it signs, the doors of its page and of its
box, its files."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import h11

from mpc_protocols.backends.bundles.sealing import ReceiverSecret
from mpc_protocols.errors import DataRefused, PeerIdentity
from parties import certificates
from parties.budget.ledger import Ledger
from parties.budget.run_state import RunState
from parties.data.counting import local_marginals
from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.inbox.drop_box import DropBox
from parties.inbox.files import write_private
from parties.inbox.upload import CONTRIBUTOR, DIGEST, PATH, SIGNATURE, Upload
from runner.party import alignment
from runner.report.watch.server import HOST, MAX_CONNECTIONS, watching
from runner.results.signatures import Signed, signature_of
from runner.review.audit.check import Check, Finding, Group, judged
from runner.review.audit.subjects.ledgers import alignments, asked, cap, copies
from runner.review.audit.subjects.subject import Subject
from synth.domain import Categorical, Domain

VISITORS = 64
"""More connections than the page of a run holds, and no more than wait for it at a time."""


def bounds(subject: Subject) -> Finding:
    """Bring a table of more rows than max_rows, and fewer records than min_size."""
    problems = []
    domain = Domain(("a",), (Categorical(("x", "y")),))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        for rows, refused in ((5, False), (6, True)):
            file.write_text("a\n" + "x\n" * rows)
            with open_source(locate(file)) as source:
                if _refused(partial(local_marginals.count, source, domain, [("a",)], max_rows=5)) != refused:
                    problems.append(
                        f"{rows} rows are {'taken' if refused else 'refused'} where max_rows is 5."
                    )
    study = cast(Any, SimpleNamespace(alignment=SimpleNamespace(min_size=100, pad_to=200)))
    for records, refused in ((99, True), (100, False), (200, False), (201, True)):
        if _refused(partial(alignment.check_size, study, "south", records)) != refused:
            problems.append(
                f"{records:,} records are {'taken' if refused else 'refused'} where 100 to 200 may be."
            )
    return judged(
        problems,
        "Tables beyond max_rows, below min_size and beyond pad_to are refused, those at the bounds taken.",
    )


def _refused(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except DataRefused:
        return True
    return False


def signatures(subject: Subject) -> Finding:
    """Change each part of what was signed, and sign with another's key; then ask whether the party has
    signed."""
    with TemporaryDirectory() as folder:
        place, other = Path(folder) / "own", Path(folder) / "other"
        for each in (place, other):
            certificates.make_all(each, ["south"])
        pem, ca = (place / "south.crt").read_text(), (place / "ca.crt").read_text()
        plain = Signed("ab" * 32, "cd" * 32, {"synthetic.csv": "ef" * 32}, {"south": pem}, ca, {})
        signed = replace(plain, signatures={"south": signature_of(place / "south.key", plain.message)})
        foreign = replace(plain, signatures={"south": signature_of(other / "south.key", plain.message)})
        own = signed.signatures["south"]
        forged = {
            "another study": replace(signed, study="00" * 32),
            "another run": replace(signed, run="00" * 32),
            "another table": replace(signed, files={"synthetic.csv": "00" * 32}),
            "one file more": replace(signed, files={**signed.files, "model.npz": "00" * 32}),
            "no signature": plain,
            "an altered one": replace(signed, signatures={"south": own[:-1] + bytes([own[-1] ^ 1])}),
            "an empty one": replace(signed, signatures={"south": b""}),
            "another key's": foreign,
        }
        problems = [] if _accepted(signed, ca) else ["An honest signature is refused."]
        problems += [
            f"A party seems to have signed what has {what}."
            for what, each in forged.items()
            if _accepted(each, ca)
        ]
    return judged(problems, f"The honest signature is accepted, {len(forged)} forged ones are refused.")


def _accepted(signed: Signed, ca: str) -> bool:
    try:
        signed.check("south", None, ca)
    except PeerIdentity:
        return False
    return True


def page(subject: Subject) -> Finding:
    """Ask the page of a watched run without its secret word, and in the name of another host."""
    problems, asked = [], 0
    with TemporaryDirectory() as folder, watching(Path(folder)) as watch:
        own = f"{HOST}:{watch.port}"
        secret = f"/{watch.secret}/page.css"
        for path, host, known in (
            (secret, own, True),
            (secret, f"localhost:{watch.port}", True),
            (secret, "evil.example", False),
            (secret, f"evil.example:{watch.port}", False),
            (secret, "", False),
            ("/page.css", own, False),
            (f"/{'A' * len(watch.secret)}/page.css", own, False),
            (f"/{watch.secret[:-1]}/page.css", own, False),
        ):
            connection = http.client.HTTPConnection(HOST, watch.port, timeout=60)
            connection.putrequest("GET", path, skip_host=True)
            if host:
                connection.putheader("Host", host)
            connection.endheaders()
            if (connection.getresponse().status == 200) != known:
                problems.append(
                    f"{path.replace(watch.secret, 'SECRET')} as {host or 'no host'} is {'refused' if known else 'answered'}."
                )
            connection.close()
            asked += 1
        watch.told_end = True
    return judged(
        problems,
        f"{asked} requests: answered are those with the secret word to this machine's loopback address alone.",
    )


def crowd(subject: Subject) -> Finding:
    """Connect to the page of a watched run without end, and without its secret word, and say nothing."""
    with TemporaryDirectory() as folder, watching(Path(folder)) as watch, ExitStack() as held:
        visitors = [
            held.enter_context(closing(socket.create_connection((HOST, watch.port), timeout=60)))
            for _ in range(VISITORS)
        ]
        owner = http.client.HTTPConnection(HOST, watch.port, timeout=60)  # served after all before it
        owner.request("GET", f"/{watch.secret}/page.css")
        answered = owner.getresponse().status == 200
        owner.close()
        count = sum(not _ended(visitor) for visitor in visitors)
        watch.told_end = True
    problems = [] if answered else ["The page does not answer who knows its secret word."]
    if count > MAX_CONNECTIONS:
        problems.append(f"Of {VISITORS} connections of strangers {count} are held by the process of a party.")
    return judged(
        problems, f"Of {VISITORS} connections of strangers {count} are held; the run's owner is answered."
    )


def _ended(visitor: socket.socket) -> bool:
    """Whether the other side has ended a connection on which nothing was said."""
    visitor.setblocking(False)
    try:
        return visitor.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def box(subject: Subject) -> Finding:
    """Announce uploads to a drop box that nobody, another contributor or another upload's signature vouches
    for."""
    clinic, stranger = ReceiverSecret.generate(), ReceiverSecret.generate()
    study, digest = b"study of the audit, 32 bytes lon", bytes(range(32))
    opened = cast(
        Any,
        SimpleNamespace(
            _public=SimpleNamespace(contributors={"clinic": clinic.public.signing}, study=study),
            _inbox=SimpleNamespace(party="south"),
            _most=1000,
        ),
    )
    upload = Upload("clinic", digest, 500)
    honest = clinic.sign(upload.signed(study, "south"))

    def taken(name: bytes, of: bytes, length: int, signature: bytes) -> bool:
        head = [
            (b"Host", b"south"),
            (b"Content-Length", str(length).encode()),
            (CONTRIBUTOR, name),
            (DIGEST, of.hex().encode()),
            (SIGNATURE, signature.hex().encode()),
        ]
        try:
            DropBox._proved(opened, h11.Request(method=b"PUT", target=PATH, headers=head))
        except Exception as refused:  # of a class that is the box's own
            if not hasattr(refused, "status"):
                raise
            return False
        return True

    cases = {
        "that nobody signed": (b"clinic", digest, 500, b""),
        "with a signature of zeros": (b"clinic", digest, 500, bytes(64)),
        "that a stranger signed": (b"clinic", digest, 500, stranger.sign(upload.signed(study, "south"))),
        "of a contributor that there is none of": (b"other", digest, 500, honest),
        "of another content": (b"clinic", bytes(32), 500, honest),
        "of another length": (b"clinic", digest, 499, honest),
        "signed for another party's box": (b"clinic", digest, 500, clinic.sign(upload.signed(study, "west"))),
        "signed for another study": (b"clinic", digest, 500, clinic.sign(upload.signed(bytes(32), "south"))),
        "too long, though signed": (
            b"clinic",
            digest,
            2000,
            clinic.sign(Upload("clinic", digest, 2000).signed(study, "south")),
        ),
    }
    problems = [] if taken(b"clinic", digest, 500, honest) else ["A contributor's own upload is refused."]
    problems += [f"An upload {words} is taken." for words, case in cases.items() if taken(*case)]
    return judged(problems, f"A contributor's upload is taken, {len(cases)} others are refused.")


def files(subject: Subject) -> Finding:
    """Write a party's ledger, the state of its run, which holds shares, and a key of its inbox, where
    everybody may read what says nothing else."""
    before = os.umask(0)
    try:
        with TemporaryDirectory() as folder:
            place = Path(folder)
            RunState.create(place, b"s" * 32, b"r" * 32, "south", "audit").close()
            Ledger(place / "ledger.db").reserve(asked(0, Fraction(1, 10))).close()
            write_private(place / "inbox" / "receiver.key", b"k" * 32)
            open_to = {
                path.relative_to(place).as_posix(): oct(path.stat().st_mode & 0o777)
                for path in place.rglob("*")
                if path.is_file() and path.stat().st_mode & 0o077
            }
            count = sum(path.is_file() for path in place.rglob("*"))
    finally:
        os.umask(before)
    problems = [f"{name} has mode {mode}: others may read it." for name, mode in open_to.items()]
    return judged(
        problems, f"{count} files of a party, its state, its ledger and its inbox, are nobody else's to read."
    )


GROUP = Group(
    "H",
    "House",
    "Does what a party keeps by itself hold: its ledger, bounds, signatures, doors and files?",
    (
        Check(
            "cap",
            "A ledger admits no run beyond its cap, of whatever unit, however many ask at once.",
            "exact",
            "A cap that is not looked at, one that takes rows for persons, two runs that spend the same budget.",
            cap,
        ),
        Check(
            "alignments",
            "A ledger admits as many alignments with one counterparty as max_alignments allows.",
            "exact",
            "An alignment beyond max_alignments.",
            alignments,
        ),
        Check(
            "copies",
            "A run under way counts in full in its ledger, in whatever way that is named, and in every copy of it.",
            "exact",
            "A run that lives and is taken for dead, in the ledger or in a copy of it.",
            copies,
        ),
        Check(
            "bounds",
            "A custodian refuses a table beyond max_rows, and an owner too few records for an alignment, or too many.",
            "exact",
            "A row too many that is counted; an alignment of fewer records than min_size.",
            bounds,
        ),
        Check(
            "signatures",
            "What a party has not signed does not pass as signed by it.",
            "fault",
            "Any signature that is accepted.",
            signatures,
        ),
        Check(
            "page",
            "The page of a watched run answers who knows its secret word, and no page of another host.",
            "fault",
            "The secret word or the host's name not looked at.",
            page,
        ),
        Check(
            "crowd",
            "The page of a watched run holds few connections, and who connects without end does not shut out its owner.",
            "fault",
            "Connections without bound in a party's process.",
            crowd,
        ),
        Check(
            "box",
            "A drop box takes an upload only if a contributor of the study has signed for just this one.",
            "fault",
            "Uploads that are unsigned, replayed elsewhere, of others or too long.",
            box,
        ),
        Check(
            "files",
            "Nobody else on the machine may read a party's ledger or the state of its run.",
            "exact",
            "A file of shares that others may read.",
            files,
        ),
    ),
)
