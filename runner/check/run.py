"""Every problem of a run in one go, before the appointed hour: what `check` looks at
(`docs/reference/command-line.md`).

Each look is a function that yields findings: fine, worth knowing, or a problem with the error that a run
would end with. Nothing is sent, released or charged. Names and places of this party's own data may appear:
they are shown to its owner.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mpc_protocols.errors import (
    CosynthError,
    DataRefused,
    PeerIdentity,
    PeerUnreachable,
    StudyInvalid,
    UsageError,
)
from mpc_protocols.process.installation import program
from mpc_protocols.process.later import Later
from mpc_protocols.psu.row_order.protocol import UNEQUAL
from parties.data.counting.local_marginals import validate
from parties.data.counting.scan import inspect
from parties.data.files.absent import absent
from parties.data.linked.opening import open_source
from runner.check import linked, parts, vertical
from runner.check.begins import begins
from runner.check.budget import budget
from runner.check.finding import Finding, fine, note, problem
from runner.check.own_table import own_table
from runner.failures import reason
from runner.party.session import session_config, study_digest
from runner.results.table.formulas import formulas
from runner.starting.files import UNCONFIRMED
from runner.study import DataLocation, Party, Study, VerticalStudy, load, private_file, problems
from runner.study.declared.table import nearest
from runner.study.method import algorithm_of
from runner.study.private_file import CertificateFiles, Private
from runner.study.study_warnings import warned_of
from synth.algorithm import ALGORITHMS
from synth.config import CELL_BYTES

if TYPE_CHECKING:
    from parties import certificates
    from parties.session.admission import identity, preflight
    from runner.check import contributors
    from runner.party import second_proposal
    from synth.plan import Plan
else:  # without --party and [contributors] nobody needs TLS
    certificates = Later("parties.certificates")
    contributors = Later("runner.check.contributors")
    second_proposal = Later("runner.party.second_proposal")
    identity = Later("parties.session.admission.identity")
    preflight = Later("parties.session.admission.preflight")

SOON_DAYS = 30


def _unconfirmed(path: Path) -> Iterator[Finding]:
    """What `init --from` read off rows and nobody has confirmed yet."""
    left = sum(UNCONFIRMED in line for line in path.read_text("utf-8").splitlines() if "=" in line)
    if left:
        yield note(
            f"{left} lines of the study are marked {UNCONFIRMED}: they were read off rows, and the study is public; take them "
            "from a code book or what everybody knows, and remove the marks"
        )


def findings(
    path: Path,
    party: str | None,
    private: Path | None,
    connect: bool,
    here: Mapping[str, Path] = MappingProxyType({}),
    *,
    without_certificates: bool = False,
) -> Iterator[Finding]:
    """All findings about a study, and about one party of it if named.

    private: that party's private file. here: where no party is named, the private files of parties on this
    machine. without_certificates: those that a party's private file does not name yet are no problem.
    """
    wrong = [StudyInvalid(sentence) for sentence in problems(path)]
    for name in () if wrong else here:
        if name not in (names := [member.name for member in load(path).parties]):
            yield problem(
                UsageError(
                    f"--private {name}={here[name]}: {path} has no party {name}{nearest(name, names)}; its parties: "
                    f"{', '.join(names)}."
                )
            )
            return
    for file in (*filter(None, [private]), *here.values()):
        wrong += [StudyInvalid(sentence) for sentence in private_file.problems(file)]
    yield from map(problem, wrong)
    if wrong:
        yield note("the rest is looked at once these are corrected")
        return
    study, own = load(path), private_file.load(private)
    listed = () if study.contributors is None else tuple(study.contributors.keys)
    if party is not None and party not in (names := [*(member.name for member in study.parties), *listed]):
        yield problem(
            UsageError(
                f"--party {party} is not in {path}{nearest(party, names)}; its parties: {', '.join(names)}."
            )
        )
        return
    yield fine(f"{path}: {study.name}, {study.algorithm} on {study.backend}, {len(study.parties)} parties")
    yield from (note(f"WARNING: {one.text}") for one in warned_of(study))
    yield from _unconfirmed(path)
    yield from _formulas(study)
    if private is not None:
        yield fine(f"{private}: this party's private file")
    plan = None
    try:
        from runner.party.synthesis import plan_of

        plan = plan_of(study)
        yield from _planned(study, plan)
        if study.contributors is not None:
            yield from contributors.collection(study, plan)
        if study.prior is not None:
            yield from begins(study, study.prior, plan)
    except StudyInvalid as error:
        yield problem(error)
    if isinstance(study, VerticalStudy):
        yield from vertical.alignment(study)
    if party is None:
        yield from _everybody(study, plan, {name: private_file.load(file) for name, file in here.items()})
        return
    if party in listed:
        yield from _contributor(study, party, own, plan)
        return
    known = False
    if (
        without_certificates
        and own.cert is None
        and own.key is None
        and study.session.tls != "insecure-loopback"
    ):
        yield _digest(study, None)
        yield note(
            "no certificate is named, so these were not looked at: certificate, key, CA, and who the others are; a "
            f"deployment needs them (`{program()} certs`)"
        )
    else:
        known = yield from _certificates(study, study.party(party), own)
    yield from _second_proposal(study, party, own)
    yield from _own_data(study, party, own, owner=True)
    if plan is not None:
        with contextlib.suppress(StudyInvalid):  # a party that should not be there: named already
            yield from budget(study, party, own, plan, private_file.location(study, party, own))
        if study.contributors is not None:
            yield from contributors.inbox(study, party, own, plan)
    free = yield from _port(study.party(party), own)
    if connect and free:
        yield from _peers(study, party, own, known)
    elif connect:
        yield note("the others are met once this party has its port")


def _formulas(study: Study) -> Iterator[Finding]:
    """Whether a spreadsheet would run what the study calls its columns or values."""
    found = [
        f"the column {name}" if value is None else f"{value} of {name}"
        for name, value in formulas(study.domain)
    ]
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        yield note(
            f"WARNING: a spreadsheet that opens synthetic.csv runs as formulas: {', '.join(found[:3])}{more}; "
            "`sample --csv-safe` writes a table with an apostrophe before them"
        )


def _planned(study: Study, plan: Plan) -> Iterator[Finding]:
    yield fine(
        f"budget: rho {float(plan.budget.rho_cap):.4g} for epsilon {float(study.privacy.epsilon):g}, delta "
        f"{float(study.privacy.delta):g}; asked is {algorithm_of(study).asks(plan)}"
    )
    if study.to_check or study.contributors is not None:
        yield _inputs(study)
    if study.descriptor.malicious:
        yield fine(
            f'security = "{study.security}": the promise holds against one computing party that does whatever it likes, together '
            "with contributors and recipients; it may end the run, which tells it nothing"
        )
        yield note("a run of this study that is interrupted cannot be resumed")
    for clique in plan.oversized:
        size = study.domain.cells(clique) * CELL_BYTES / 2**20
        yield note(
            f"{' x '.join(clique)} ({size:.1f} MiB) is too large for max_model_mb = {study.config.model_mb:g}: "
            + ALGORITHMS[study.algorithm].left_out
        )


def _inputs(study: Study) -> Finding:
    """What becomes of a contributor whose counts are impossible."""
    if study.descriptor.ideal:
        return note(f"{study.backend} sees all counts and checks none")
    if study.descriptor.malicious and isinstance(study, VerticalStudy):
        return fine(
            "owners' columns are checked on shares: each names one value in each row that its owner has; a run in which one does "
            "not ends"
        )
    if why := study.inputs_unchecked:
        return note(f"whether contributors' counts are possible is not checked: {why}")
    then = "ends the run" if study.session.bad_input == "end" else "is left out of it"
    if study.descriptor.malicious:
        left_out = f"; a contributor that does {then}" if study.session.bad_input == "exclude" else ""
        return fine(
            f"everybody's counts are checked on shares; who sends impossible ones ends the run{left_out}"
        )
    return fine(f"contributors' counts are checked on shares; who sends impossible ones {then}")


def _everybody(study: Study, plan: Plan | None, private: Mapping[str, Private]) -> Iterator[Finding]:
    """Without --party: the tables that happen to be on this machine, as a run on one machine would read them.

    private: of the parties that have a private file here.
    """
    here: list[int | None] = []
    tables = {party.name: party.data for party in study.parties if party.data is not None}
    placed = {name: data.path for name, data in tables.items() if data.path is not None}
    # what a run refuses before it reads a table; a private file may hold what the study does not say
    idle = {name: why for name, why in private_file.idle_here(study).items() if name not in private}
    yield from map(problem, idle.values())
    for party in study.parties:
        if party.name in idle:
            continue
        if party.name in private:
            own = private[party.name]
            data, rows = yield from _own_data(study, party.name, own, owner=False)
            if data is not None:
                tables[party.name] = data
                here.append(rows)
                if plan is not None:
                    with contextlib.suppress(DataRefused):  # a place that cannot be: named already
                        yield from budget(study, party.name, own, plan, data)
        elif party.data is None:
            words = "only computes" if party.compute else "has its data in its private file, or none"
            yield note(f"{party.name} {words}, as far as the study says")
        elif party.data.path is not None and not party.data.path.exists():
            if others := [name for name, place in placed.items() if name != party.name and place.exists()]:
                yield problem(
                    DataRefused(
                        f"{party.name}: {absent(party.data.path)}, and the data of {others[0]} is here; correct the path, "
                        f"or, in a deployment, leave `data` to {party.name}'s private file."
                    )
                )
                continue
            yield note(
                f"{party.name}: {party.data.path} is not on this machine; `check --party {party.name}` looks at it "
                "where it is"
            )
        else:
            here.append((yield from _table(study, party.name, party.data, False, owner=False)))
    if private_file.only_table(study, tuple(tables)) is not None:
        yield note(
            f"WARNING: only {', '.join(tables)} has a table here; a run of all parties here would spend its budget on that "
            "table alone, and asks for --alone"
        )
    if not here:
        who = (
            "only a deployment can run this study"
            if study.contributors is None
            else "a run here has bundles only"
        )
        yield note(f"no custodian's data is on this machine: {who}")
    elif isinstance(study, VerticalStudy):
        yield from vertical.ownership(study, plan, tables)
        if not study.alignment.psu and len({rows for rows in here if rows is not None}) > 1:
            yield problem(DataRefused(UNEQUAL))


def _second_proposal(study: Study, party: str, own: Private) -> Iterator[Finding]:
    """What the same peers have asked of this data before."""
    with contextlib.suppress(CosynthError):  # of the certificates: named already
        files = private_file.certificates(study, party, own)
        yield from map(note, second_proposal.warnings(study, party, own, files))


def _own_data(
    study: Study, party: str, own: Private, *, owner: bool
) -> Generator[Finding, None, tuple[DataLocation | None, int | None]]:
    """By the party's private file. Returns where its table is, if it has one, and what `_table` does."""
    try:
        data = private_file.location(study, party, own)
    except StudyInvalid as error:
        yield problem(error)
        return None, None
    if data is None:
        yield fine(f"{party} has no data of its own: it computes")
        return None, None
    yield from parts.processes(party, own.workers)
    yield from parts.memory(study, party)
    return data, (yield from _table(study, party, data, own.allow_empty, owner=owner))


def _table(
    study: Study, party: str, data: DataLocation, allow_empty: bool, *, owner: bool
) -> Generator[Finding, None, int | None]:
    """Returns the number of rows of a vertical study's table, if it could be read. owner: whether its owner
    asks."""
    if owner and data.linked is not None:
        yield from linked.own_children(party, data)
    if isinstance(study, VerticalStudy):
        return (yield from vertical.records(study, party, data, allow_empty, owner=owner))
    if data.parts is not None:
        yield from parts.added(study, party, data, allow_empty)
        return None
    unit = study.privacy.unit
    own_unit = None if unit.id is None else (unit.id, unit.max_rows)
    try:
        with open_source(data.locate()) as source:
            found = validate(
                source, study.domain, max_rows=study.privacy.max_rows, unit=own_unit, allow_empty=allow_empty
            )
            ignored = inspect(source, study.domain, own_unit).ignored
    except CosynthError as error:
        yield problem(type(error)(f"{party}: {error.sentence}"))
        return None
    for sentence in found.problems:
        yield problem(DataRefused(f"{party}: {sentence}"))
    if not found.problems:
        yield fine(f"{party}: its table fits the study")
    if ignored := tuple(name for name in ignored if data.linked is None or name != data.linked.key):
        listed = ", ".join(each or "one without a name" for each in ignored)
        yield note(f"{party}: columns that the study does not use are ignored: {listed}")
    if owner:
        yield from own_table(party, data, found)
    return None


def _contributor(study: Study, name: str, own: Private, plan: Plan | None) -> Iterator[Finding]:
    """Somebody who leaves a bundle and meets nobody."""
    yield from contributors.key(study, name, own)
    if own.data is None:
        yield problem(StudyInvalid(f"Contributor {name} has no data: name it as `data` in its private file."))
        return
    try:
        data = private_file.read_by_rules(study, own.data, own.rules)
    except StudyInvalid as error:
        yield problem(error)
        return
    yield from _table(study, name, data, own.allow_empty, owner=True)
    try:
        known = list(contributors.account(study, name, own))
    except CosynthError as error:
        yield problem(error)
        return
    yield from known
    if plan is not None and not known:
        yield from budget(study, name, own, plan, own.data)


def _certificates(study: Study, party: Party, own: Private) -> Generator[Finding, None, bool]:
    """Returns whether the party can prove who it is."""
    if study.session.tls == "insecure-loopback":
        yield _digest(study, None)
        yield note('tls = "insecure-loopback": nothing is encrypted, and nobody is asked who they are')
        return True
    try:
        files = private_file.certificates(study, party.name, own)
        assert files is not None
        identity.own_identity(session_config(study, party.name, files, study_digest(study, files), None, {}))
        for path in filter(None, (files.cert, files.ca)):
            yield _valid(path)
        yield fine(f"{files.key} is the certificate's key")
        yield _digest(study, files)
    except CosynthError as error:
        yield problem(error)
        return False
    return True


def _digest(study: Study, files: CertificateFiles | None) -> Finding:
    """What the parties compare first, for people to compare beforehand."""
    return fine(
        f"the study's digest, which must be the same at all parties: {study_digest(study, files).hex()[:12]}"
    )


def _valid(path: Path) -> Finding:
    """Until when a certificate is valid, which the session's own look at it has found in order."""
    until = certificates.read(path).not_after
    left = (until - datetime.now(UTC)).days
    words = f"{path} is valid until {until:%Y-%m-%d} ({left} days)"
    return note(f"{words}: renew it soon") if left < SOON_DAYS else fine(words)


def _port(party: Party, own: Private) -> Generator[Finding, None, bool]:
    """Computing parties listen; contributors only connect. Returns whether nothing is in the way."""
    if not party.compute:
        return True
    host, port = own.listen or (party.host, party.port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
        yield fine(f"{host}:{port} is free to listen on")
    except OSError as error:
        yield problem(
            PeerUnreachable(
                f"Party {party.name} cannot listen on {host}:{port} ({reason(error)}); "
                "free the port, or name an address of this machine with `listen` in the private file."
            )
        )
        return False
    return True


def _peers(study: Study, party: str, own: Private, known: bool) -> Iterator[Finding]:
    """The others, as each comes: who types the same command there within the time that a run would wait.

    known: whether this party can prove who it is. One that cannot tells the others so, and meets nobody.
    """
    try:
        files = private_file.certificates(study, party, own)
    except PeerIdentity:
        yield note("the others are met once this party has its certificate")
        return
    try:
        config = session_config(study, party, files, study_digest(study, files), own.listen, {})
        for news in preflight.meet(config):
            if isinstance(news, preflight.Met):
                proof = "" if config.insecure_loopback else " proves who it is and"
                yield (
                    problem(news.error)
                    if news.error
                    else fine(f"{news.name}{proof} has the same study and protocol version")
                )
            else:
                names = ", ".join(f"{name} ({why})" if why else name for name, why in news.parties)
                yield note(
                    f"waiting for {names} to start the same command: {news.seconds:.0f} of {config.connect_s:g} s"
                )
    except PeerIdentity as error:
        if known:
            yield problem(error)
        else:
            yield note(
                "the others, as far as they are there, have heard that; they are met once it is corrected"
            )
    except CosynthError as error:
        yield problem(error)
