"""W: whole processes - who is let in by a party, what a killed one leaves behind, and whether secrets get out
of a run."""

from __future__ import annotations

import base64
import fnmatch
import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from mpc_protocols.errors import DataRefused
from parties import certificates
from parties.budget import journal
from runner.commands.cli import main
from runner.results import outdir
from runner.review.audit.check import Check, Finding, Group, Profile, judged
from runner.review.audit.subjects.forgeries import FORGERIES, copies
from runner.review.audit.subjects.processes import expiry
from runner.review.audit.subjects.processes.deployment import (
    MARK,
    Deployment,
    End,
    Party,
    Stuck,
    deployed,
    wait_for,
)
from runner.review.audit.subjects.processes.impostor import Attempt, Impostor, attempts, expired, knock
from runner.review.audit.subjects.subject import Subject

LEADER, CLAIMED, AWAITED = "south", "south", "north"
PUBLIC = frozenset({*outdir.FILES, outdir.MARK.removeprefix("."), "stdout", "stderr"})
"""Files of a run that may be passed on, by name, and what the audit itself keeps of a party's streams."""
PRIVATE_KINDS = (
    f"out/{outdir.STATES}",
    f"out/{outdir.JOURNALS}",
    f"out/{outdir.PRIVATE_LOG}",
    "ledger.db",
    "ledger.db.open/*",
)
"""Of these each party must have had one, or they were not looked at."""
SPOILT = "MARKED-VALUE-4413"


def identity(subject: Subject) -> Finding:
    """Knock at a waiting party's door in many guises; then let the right ones come, and see the run succeed."""
    problems: list[str] = []
    with deployed() as deployment:
        north, foreign = deployment.parties[0], deployment.root / "foreign"
        certificates.make_all(foreign, [CLAIMED])
        north.start(SSL_CERT_FILE=str(foreign / "ca.crt"))  # this CA is one that the system trusts
        wait_for(lambda: north.happened("connect", "waiting"), "That party north waits")
        tried = attempts(deployment.credentials, deployment.root, CLAIMED)
        for attempt in tried:
            if (problem := _knocked(north, attempt)) is not None:
                problems.append(problem)
                break  # a party that has let somebody in does not wait any more
        if not problems:
            for party in deployment.parties[1:]:
                party.start()
            problems += [
                f"Party {party.name} ended with {end.code} after strangers had come: {end.complaint.strip()}"
                for party in deployment.parties
                if (end := party.end()).code
            ]
    return judged(
        problems,
        f"{len(tried)} guises refused, each for its own reason; then the right parties came and the run succeeded.",
        {"attempts": [attempt.words for attempt in tried]},
    )


def dialled(subject: Subject) -> Finding:
    """Wait in several guises at the address of a party; whoever dials it must end and say why."""
    guises = ("another party's certificate", "a certificate of another CA", "an expired one", "another name")
    problems: list[str] = []
    for words in guises:
        with deployed() as deployment:
            guise = _guise(deployment, words)
            end = _end_of_dialler(deployment[CLAIMED], Impostor(deployment[AWAITED].port, guise))
        if end is None:
            problems.append(f"A party goes on with somebody at {AWAITED}'s address with {words}.")
        elif end.code != 21 or guise.expected not in end.complaint:
            problems.append(
                f"A party that meets {words} at {AWAITED}'s address ends with {end.code}: {end.complaint.strip()}"
            )
    return judged(
        problems,
        f"{len(guises)} guises at the address that the study gives for a party: who dialled it ended with 21, each for its own "
        "reason.",
        {"guises": list(guises)},
    )


def _end_of_dialler(party: Party, impostor: Impostor) -> End | None:
    """How a party ends that dials an impostor; None if it goes on with it."""
    with impostor:
        party.start()
        wait_for(lambda: impostor.believed or party.running.poll() is not None, "An end")
        return None if impostor.believed else party.end()


def _guise(deployment: Deployment, words: str) -> Attempt:
    """Who waits at AWAITED's address."""
    own, foreign = deployment.credentials, deployment.root / "foreign"
    other, other_key = own / "west.crt", own / "west.key"
    if words == "another party's certificate":
        return Attempt(words, "belongs to 'west'", AWAITED, other, other, other_key)
    if words == "another name":
        return Attempt(words, "party west answers, not north", "west", other, other, other_key)
    if words == "an expired one":
        right, key = expired(own, deployment.root / "late", AWAITED)
        return Attempt(words, "expired on", AWAITED, right, right, key)
    certificates.make_all(foreign, [AWAITED])
    right, key = foreign / f"{AWAITED}.crt", foreign / f"{AWAITED}.key"
    return Attempt(words, "not signed by", AWAITED, right, right, key)


def _knocked(north: Party, attempt: Attempt) -> str | None:
    """What is wrong with how a party took an attempt."""
    before = _reasons(north)
    if knock(north.port, attempt):
        return f"Somebody with {attempt.words} was let in as {attempt.claimed}."
    if attempt.expected:
        wait_for(lambda: len(_reasons(north)) > len(before) or north.running.poll() is not None, "A reason")
        new = _reasons(north)[len(before) :]
        if not any(attempt.expected in reason for reason in new):
            return f"Somebody with {attempt.words} was refused for another reason: {' '.join(new)}"
    if (code := north.running.poll()) is not None:
        return f"Somebody with {attempt.words} ended the party, with exit code {code}."
    return None


def _reasons(party: Party) -> list[str]:
    return [str(event["why"]) for event in party.events() if event["event"] == "refused"]


def killed(subject: Subject) -> Finding:
    """Kill a party in the middle of a run, and look at what the others do and hold."""
    problems: list[str] = []
    with deployed(rounds=12) as deployment:
        for party in deployment.parties:
            party.start()
        leader, victim = deployment[LEADER], deployment["north"]
        wait_for(lambda: leader.happened("select", "selected", 3), "The third selection")
        if leader.running.poll() is not None:
            raise Stuck("The run ended before anybody was killed.")
        victim.running.kill()
        ends = {party.name: party.end() for party in deployment.parties}
        charged = {party.name: _charged(party) for party in deployment.parties}
        opened = max(sum("step" in event for event in party.events()) for party in deployment.parties)
        problems += judge_ends(ends, victim.name)
        problems += [
            f"Party {name} has {count} releases on record, and {opened} were seen opened."
            for name, count in charged.items()
            if count < opened
        ]
        problems += [
            f"Party {party.name} has results of a run that did not end."
            for party in deployment.parties
            if (party.out / outdir.RUN).exists()
        ]
    return judged(
        problems,
        f"Party north killed after {opened} releases: the others end with 41 naming it, nobody has results, records hold "
        f"{min(charged.values())} to {max(charged.values())} releases.",
        {"opened": opened, "charged": charged},
    )


def judge_ends(ends: dict[str, End], victim: str) -> list[str]:
    """What is wrong with how the others ended when one was killed."""
    problems = []
    for name, end in ends.items():
        if name == victim:
            continue
        if end.code != 41 or victim not in end.complaint:
            problems.append(f"Party {name} ended with {end.code} instead of 41: {end.complaint.strip()}")
        if end.unforeseen:
            problems.append(f"Party {name} ended by an internal error: {end.complaint.strip()}")
    return problems


def _charged(party: Party) -> int:
    """Releases on record; none in a journal that cannot be read."""
    try:
        return sum(len(journal.read(path).releases) for path in party.out.glob("journal-*.jsonl"))
    except DataRefused:
        return 0


def secrets_of(deployment: Deployment) -> list[bytes]:
    """Private keys: their numbers and the lines of their files; and the mark."""
    found = [MARK.encode()]
    for party in deployment.parties:
        text = (party.folder / f"{party.name}.key").read_bytes()
        key = load_pem_private_key(text, None)
        assert isinstance(key, EllipticCurvePrivateKey)
        found.append(key.private_numbers().private_value.to_bytes(32, "big"))
        found += [line for line in text.splitlines() if len(line) > 20 and b"-" not in line]
    return found


def search(texts: dict[str, bytes], secrets: list[bytes]) -> list[str]:
    """Where one of the secrets is: as it is, in hexadecimal digits, in base64 at any offset."""
    ways = []
    for secret in secrets:
        encoded = [base64.b64encode(bytes(shift) + secret)[2 * shift : -4] for shift in range(3)]
        ways += [secret, secret.hex().encode(), secret.hex().upper().encode(), *encoded]
    wanted = re.compile(b"|".join(map(re.escape, ways)))
    return sorted(name for name, text in texts.items() if wanted.search(text))


def traces(subject: Subject) -> Finding:
    """Run with marked rows; search all that is left, and what the machine shows of the processes, for marks
    and keys."""
    texts: dict[str, bytes] = {}
    with deployed() as deployment:
        for party in deployment.parties:
            party.start()
        leader = deployment[LEADER]
        wait_for(lambda: leader.happened("connect", "connected"), "That the parties meet")
        for party in deployment.parties:
            texts |= _visible_to_others(party)
        shown = len(texts)
        dumped = [party.name for party in deployment.parties if _leaves_core_files(party)]
        ends = {party.name: party.end() for party in deployment.parties}
        texts |= deployment.left()
        secrets = secrets_of(deployment)
        problems = [f"{name} holds a private key or a marked value." for name in search(texts, secrets)]
        problems += [f"Party {name} may leave an image of its memory when it crashes." for name in dumped]
        problems += [
            f"Party {name} ended with {end.code}: {end.complaint.strip()}"
            for name, end in ends.items()
            if end.code
        ]
        if search({"planted": b"x" + secrets[0].hex().encode()}, secrets) != ["planted"]:
            raise Stuck("The search does not find what is planted.")
    return judged(
        problems,
        f"{len(texts)} files, arguments and environments ({shown} of processes): no private key and no marked value in any "
        "of them.",
        {"searched": len(texts), "secrets": len(secrets)},
    )


def public_name(place: str) -> str:
    """Of a file, or of what it is while it is being written."""
    return Path(place).name.removeprefix(".").removesuffix(".part")


def modes(subject: Subject) -> Finding:
    """Run where the umask hides nothing, and look all the time at who may read each file that there is."""
    widest: dict[str, int] = {}
    with deployed() as deployment:
        before = os.umask(0)
        try:
            for party in deployment.parties:
                party.start()
        finally:
            os.umask(before)

        def ended() -> bool:
            over = all(party.running.poll() is not None for party in deployment.parties)
            for place, mode in deployment.modes():
                widest[place] = widest.get(place, 0) | mode
            return over

        wait_for(ended, "The end of the run")
        codes = {party.name: party.end().code for party in deployment.parties}
        names = [party.name for party in deployment.parties]
    if any(codes.values()):
        raise Stuck(f"The parties ended with {codes}.")
    private = {place: mode for place, mode in widest.items() if public_name(place) not in PUBLIC}
    problems = [
        f"{place} has mode {mode:o}: others may use it." for place, mode in private.items() if mode & 0o077
    ]
    problems += [
        f"No {kind} of party {name} was looked at."
        for name in names
        for kind in PRIVATE_KINDS
        if not fnmatch.filter(private, f"{name}/{kind}")
    ]
    return judged(
        problems,
        f"{len(widest)} files were there at some time, {len(private)} of them no part of the results: all with mode 600.",
        {"files": len(widest), "private": len(private)},
    )


def keys(subject: Subject) -> Finding:
    """Start a party whose private key other users of the machine can read."""
    problems = []
    with deployed() as deployment:
        north = deployment["north"]
        (north.folder / "north.key").chmod(0o644)
        north.start()
        wait_for(lambda: north.happened("connect", "waiting"), "That party north waits or ends")
        if north.running.poll() is None:
            problems.append("A party whose key others can read waits for the others.")
        elif (end := north.end()).code != 21 or "can be read by other users" not in end.complaint:
            problems.append(
                f"A party whose key others can read ended with {end.code}: {end.complaint.strip()}"
            )
    return judged(problems, "A party whose private key other users can read ends with 21, and says why.")


def lapsed(subject: Subject) -> Finding:
    """Let certificates expire, at one party's clock, when all have shared their counts and nothing has been
    released."""
    problems = expiry.problems()
    return judged(
        problems,
        f"At a party whose clock leaps by {expiry.YEARS} years when counts are shared no release is put on record; it ends with "
        "21 and says whose certificate it is, and nobody has results.",
    )


def spoilt(deployment: Deployment, name: str) -> None:
    """Put a value that no column takes, marked, into the middle of a party's file."""
    path = deployment[name].folder / f"{name}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[len(lines) // 2].split(",")
    lines[len(lines) // 2] = ",".join([SPOILT, *cells[1:]])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def refused(subject: Subject) -> Finding:
    """Run with a value that does not fit: what is said of it, and what is left, must not hold it."""
    with deployed() as deployment:
        spoilt(deployment, "north")
        for party in deployment.parties:
            party.start()
        ends = {party.name: party.end() for party in deployment.parties}
        texts = deployment.left()
        secrets = [*secrets_of(deployment), SPOILT.encode()]
    problems = [f"{name} holds a private key or a marked value." for name in search(texts, secrets)]
    if ends["north"].code != 30:
        problems.append(
            f"Party north, whose table does not fit, ended with {ends['north'].code} instead of 30: "
            f"{ends['north'].complaint.strip()}"
        )
    problems += [
        f"Party {name} ended with {end.code}: {end.complaint.strip()}"
        for name, end in ends.items()
        if end.code not in (30, 40, 41) or end.unforeseen
    ]
    return judged(
        problems,
        f"A table with a value that does not fit is refused with 30, the others end with "
        f"{sorted({end.code for name, end in ends.items() if name != 'north'})}; none of {len(texts)} files, logs and streams "
        "has the value.",
        {"searched": len(texts), "codes": {name: end.code for name, end in ends.items()}},
    )


def _visible_to_others(party: Party) -> dict[str, bytes]:
    """What anybody on the machine, or the same user, can see of a process, as far as this system shows it."""
    found = {}
    for file in ("cmdline", "environ"):
        try:
            found[f"{party.name}/{file}"] = Path(f"/proc/{party.running.pid}/{file}").read_bytes()
        except OSError:  # not even the same user may read it, or there is no /proc
            continue
    return found


def _leaves_core_files(party: Party) -> bool:
    """Whether a process may leave a core file, as far as this system shows it; it was started with leave to."""
    try:
        limits = Path(f"/proc/{party.running.pid}/limits").read_text()
    except OSError:
        return False
    [allowed] = re.findall(r"Max core file size +(\S+)", limits)
    return str(allowed) != "0"


def forged(subject: Subject) -> Finding:
    """Let a run of parties with certificates end, forge its files in every way, and have them verified."""
    problems, looked = [], 0
    with deployed() as deployment:
        for party in deployment.parties:
            party.start()
        ends = {party.name: party.end() for party in deployment.parties}
        folders = [party.out for party in deployment.parties]
        named = ["--ca", str(deployment.credentials / "ca.crt")]
        if any(end.code for end in ends.values()) or _verified(folders, named):
            raise Stuck("There is no finished run that passes `verify`, so nothing to forge.")
        for number, forgery in enumerate(FORGERIES):
            forger = copies(folders, deployment.root / "forged" / str(number))
            forgery.forge(forger)
            for asked, code in ((named, forgery.code), ([], forgery.alone)):
                if (found := _verified(forger.folders, asked)) != code:
                    who = "who knows the CA" if asked else "who knows nobody"
                    problems.append(f"{forgery.what}: `verify` ends with {found} for {who}, not with {code}.")
                looked += 1
    return judged(
        problems,
        f"{len(FORGERIES)} forgeries, each verified with the parties' CA and without: {looked} right answers.",
    )


def _verified(folders: Sequence[Path], asked: Sequence[str]) -> int:
    """The exit code of `verify`."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return main(["verify", *map(str, folders), *asked])


GROUP = Group(
    "W",
    "Processes",
    "Who is let in, what does a fault leave, and what gets out of a run?",
    (
        Check(
            "identity",
            "A party lets in nobody but the study's parties with certificates of their own, and strangers end nothing.",
            "fault",
            "Eleven guises, such as another party's certificate, another CA's, an expired one, one that cannot be read, none, an "
            "older TLS.",
            identity,
            profile=Profile.DEFAULT,
        ),
        Check(
            "dialled",
            "A party goes on with nobody who waits at another one's address without being that one.",
            "fault",
            "Four guises: another party's certificate, another CA's, an expired one, another party's name.",
            dialled,
        ),
        Check(
            "keys",
            "A party whose private key other users can read does not take part.",
            "fault",
            "A party that goes on with such a key, or ends with another code than 21.",
            keys,
        ),
        Check(
            "lapsed",
            "Nothing is released by a party that sees a certificate expired, also where a run is under way.",
            "fault",
            "An end that is looked at only when parties meet, or by and by.",
            lapsed,
            profile=Profile.DEFAULT,
        ),
        Check(
            "modes",
            "Of all files that a run makes, others on the machine may read the results and what is passed on with them.",
            "exact",
            "A state, journal, ledger or private log that others may read, at any moment at which it is looked at.",
            modes,
            profile=Profile.DEFAULT,
        ),
        Check(
            "forged",
            "`verify` finds what was altered in a finished run of parties with certificates, or says whose word it is.",
            "fault",
            "Two dozen forgeries: tables, signatures, accounts, certificates, a new CA throughout.",
            forged,
            profile=Profile.DEFAULT,
        ),
        Check(
            "killed",
            "After a party is killed the others end with 41, without results, and have on record whatever was opened.",
            "fault",
            "A party that hangs or goes on, results of half a run, a release that is on nobody's record.",
            killed,
            profile=Profile.DEFAULT,
        ),
        Check(
            "refused",
            "What is said of a table that does not fit does not quote it.",
            "fault",
            "A value, or a private key, in a sentence, an event, a log or a traceback of a run that fails.",
            refused,
            profile=Profile.DEFAULT,
        ),
        Check(
            "traces",
            "No private key and no value of a table's other columns is in any file, argument or environment of a run, and no "
            "party may leave an image of its memory.",
            "fault",
            "A key or a marked value as it is, in hexadecimal digits or in base64; a party that may leave a core file.",
            traces,
            profile=Profile.DEFAULT,
        ),
    ),
)
