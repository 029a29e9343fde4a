"""The events of `events.jsonl`, each declared once: what it tells, its fields, its words on standard output, and
whether a run tells it without `-v`.

The page `docs/reference/outputs.md` has the table that `python -m runner.party.record.event_kinds FILE` makes of
these declarations. An event that is not here, such as one of a plug-in's algorithm, is told by its name and its
fields. Standard library only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Words = str | Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class EventKind:
    """One kind of event.

    tells: for the reference page. fields: beside those of every event, with ? behind one that may be absent.
    words: of a line on standard output, with fields in braces; None: its name and fields. brief: whether it
    has a line without `-v`.
    """

    phase: str
    name: str
    tells: str
    fields: str = ""
    words: Words | None = None
    brief: bool = True

    @property
    def required(self) -> frozenset[str]:
        """Fields that are always there."""
        return frozenset(field for field in self.fields.split() if not field.endswith("?"))

    @property
    def known(self) -> frozenset[str]:
        """All fields that it may have."""
        return frozenset(field.rstrip("?") for field in self.fields.split())


def clique_words(clique: Sequence[str], bins: Mapping[str, int] | None = None) -> str:
    """A clique as people read it. bins: of columns that are asked for over bins, their number."""
    sizes = bins or {}
    return " x ".join(f"{name} ({sizes[name]} bins)" if name in sizes else name for name in clique)


def _selected(event: Mapping[str, Any]) -> str:
    if "step" in event:
        return f"step {event['step']}: one of {event['candidates']} candidates chosen, {event['cells']:,} cells compared"
    of = f" of {event['rounds']}" if event.get("rounds") else ""
    clique = clique_words(event["clique"], event.get("bins"))
    return f"round {event['round']}{of}: {clique} (1 of {event['candidates']} candidates)"


def _measured(event: Mapping[str, Any]) -> str:
    if "cliques" in event:
        total = f", about {event['noisy_total']:,.0f} rows" if "noisy_total" in event else ""
        what = "single columns" if max(map(len, event["cliques"])) == 1 else "marginals"
        return f"round {event['round']}: {len(event['cliques'])} {what}, noise sd {event['sigma']:.3g}{total}"
    clique = clique_words(event["clique"], event.get("bins"))
    text = f"round {event['round']}: {clique}, {event['cells']:,} cells, noise sd {event['sigma']:.3g}"
    if "noisy_l1_to_model" in event:
        text += (
            f", {event['noisy_l1_to_model']:,.0f} from the model (noise alone: {event['l1_of_noise']:,.0f})"
        )
    return text


def _batch(event: Mapping[str, Any]) -> str:
    first, last = event["rounds"]
    named = "; ".join(clique_words(clique, bins) for clique, bins in event["marginals"])
    more = f" and {event['more']} more" if event["more"] else ""
    return f"round {first}{f' to {last}' if last != first else ''}: {named}{more}"


_FITTED = "round {round}: model of {model_mb:.2f} MiB, {iterations} iterations, {seconds:.2f} s"


def _summed(event: Mapping[str, Any]) -> str:
    return (
        f"round {event['round']}: {event['marginals']} marginal{'s' * (event['marginals'] != 1)} of {event['clients']} clients, "
        f"{event['cells']:,} cells, noise sd {event['sigma']:.3g}"
    )


def _raised(event: Mapping[str, Any]) -> str:
    chosen = (
        "; ".join(clique_words(clique) for clique in event["chosen"]) or "nothing that enough clients chose"
    )
    return f"round {event['round']} of {event['rounds']}, {event['cohort']} clients: {chosen}"


def _waiting(event: Mapping[str, Any]) -> str:
    return f"{event['party']} is waiting for {', '.join(event['for'])}"


def _connected(event: Mapping[str, Any]) -> str:
    return " and ".join(sorted((event["party"], event["peer"]))) + " are connected"


def _agreed(event: Mapping[str, Any]) -> str:
    return f"{len(event['parties'])} parties hold the same study (session {event['session'][:12]})"


def _resumed(event: Mapping[str, Any]) -> str:
    return f"run {event['run'][:12]}, which was interrupted, goes on: {event['opened']} steps are known"


def _closed(event: Mapping[str, Any]) -> str:
    what = f"round {event['round']} of arrivals" if "round" in event else "the collection"
    return f"{what} is closed with {event['bundles']} bundles"


def _left_out(event: Mapping[str, Any]) -> str:
    clique = clique_words(event["clique"], event["bins"])
    return f"round {event['round']}: {clique} does not fit beside the others: not measured"


def _estimates(event: Mapping[str, Any]) -> str:
    told = f"{len(event['joined'])} told from independence"
    return f"{event['pairs']} pairs across owners, noise sd {event['sd']:.3g} a count: {told}"


def _trained(event: Mapping[str, Any]) -> str:
    if "round" in event:
        return f"{event['round']:,} of {event['rounds']:,} rounds of training"
    return f"{' and '.join(event['owners'])} have trained their halves of the model"


SPENT = "rho_spent? rho?"
"""What has been spent of the cap on rho."""
KINDS = (
    EventKind(
        "connect",
        "begun",
        "what the run is of",
        "study algorithm backend epsilon delta rounds leader parties columns",
    ),
    EventKind("connect", "waiting", "who is waited for", "for", _waiting, False),
    EventKind("connect", "connected", "who has come", "peer", _connected, False),
    EventKind(
        "connect",
        "refused",
        "who came and was not who it said",
        "source claimed why",
        "who came to {party} from {source} and said to be {claimed} was refused: {why}",
    ),
    EventKind("agree", "agreed", "all hold the same study", "session parties", _agreed),
    EventKind("agree", "resumed", "an interrupted run goes on", "run opened", _resumed),
    EventKind(
        "agree",
        "paced",
        "how long messages between computing parties take",
        "delay_us round_bytes",
        lambda event: f"a message between computing parties takes {event['delay_us'] / 1000:.3g} ms",
        False,
    ),
    EventKind(
        "agree",
        "arriving",
        "a round of arrivals is waited for",
        "round",
        "waiting for round {round} of arrivals to close",
    ),
    EventKind(
        "agree", "closed", "a collection, or a round of arrivals, is closed", "round? bundles", _closed
    ),
    EventKind(
        "input",
        "counted",
        "a party has read its table",
        "custodians",
        "{party} is ready; {custodians} custodians",
        False,
    ),
    EventKind(
        "input",
        "assembled",
        "all are ready: the clock of the run starts",
        "parties",
        "all {parties} parties are ready; none has sent anything of its data yet",
    ),
    EventKind(
        "input",
        "left_out",
        "a contributor's counts are those of no table",
        "contributor",
        "{contributor} sent counts that are those of no table: they are left out",
    ),
    EventKind(
        "input",
        "shared",
        "marginals are shared among the computing parties",
        "marginals cells contributors",
        "{marginals} marginals are shared, {cells:,} cells",
    ),
    EventKind(
        "align",
        "started",
        "records of the owners are being joined",
        "owners via",
        "the records of {owners} owners are being joined ({via})",
    ),
    EventKind(
        "align", "aligned", "they are joined", "owners via", "the records of {owners} owners are joined"
    ),
    EventKind(
        "select",
        "selected",
        "a candidate was picked; with `step`, as a party that obeys sees it",
        f"round? rounds? clique? bins? candidates epsilon? {SPENT} step? position? kept? cells? signs? scores? noise?",
        _selected,
    ),
    EventKind(
        "select",
        "exhausted",
        "no candidate was left for picks that were paid",
        f"charged found {SPENT}",
        "{charged} selections were paid and {found} made: no candidate was left for more",
    ),
    EventKind(
        "select",
        "left_out",
        "a pick does not fit beside the others of its batch",
        "round clique bins",
        _left_out,
        False,
    ),
    EventKind(
        "select",
        "fallback",
        "columns are taken as independent of each other",
        "cells limit reason",
        "{reason}",
    ),
    EventKind("select", "foreseen", "how many batches are to come", "batches like"),
    EventKind("select", "opened", "distances were opened", "step marginals cells noise"),
    EventKind(
        "select",
        "voted",
        "clients have chosen",
        "round candidates cohort",
        "round {round}: {cohort} clients chose, each one of {candidates} candidates",
    ),
    EventKind(
        "measure",
        "measured",
        "a marginal, or several at once, with noise",
        f"round clique? cliques? bins? sigma cells? noisy_total? noisy_l1_to_model? l1_of_noise? {SPENT}",
        _measured,
    ),
    EventKind(
        "measure", "reserved", "measured later, of a budget that is set apart", f"cliques sigma {SPENT}"
    ),
    EventKind(
        "measure",
        "total",
        "the number of rows with noise",
        f"noisy_total sigma {SPENT}",
        "about {noisy_total:,.0f} rows, noise sd {sigma:.3g}",
    ),
    EventKind("measure", "dependences", "which pairs depend on each other", f"pairs sigma joined {SPENT}"),
    EventKind(
        "measure", "estimates", "pairs of columns of two owners were estimated", "pairs joined sd", _estimates
    ),
    EventKind(
        "measure", "summed", "clients' marginals were added", "round clients marginals cells sigma", _summed
    ),
    EventKind(
        "measure",
        "opened",
        "as a party that obeys sees it",
        "step marginals cells noise",
        "step {step}: {cells:,} noisy counts opened",
    ),
    EventKind("fit", "fitted", "the model was fitted", "round iterations loss? model_mb seconds", _FITTED),
    EventKind(
        "fit", "raised", "which marginals clients are asked for next", "round rounds cohort chosen", _raised
    ),
    EventKind("fit", "raked", "registered marginals were fitted", "rows"),
    EventKind("fit", "structured", "the model's marginals are known", "pairs model_mb"),
    EventKind("fit", "added", "a later wave's people were added to the model", "rows model_mb"),
    EventKind("fit", "trained", "training goes on, or has ended", "round? rounds? owners?", _trained),
    EventKind(
        "fit",
        "epoch",
        "an owner has been through its rows once more",
        "number of",
        "{party} has been through the rows {number} of {of} times",
    ),
    EventKind("sample", "sampled", "rows were drawn", "rows", "{rows:,} synthetic rows"),
    EventKind("report", "not_deleted", "files that could not be deleted", "files"),
    EventKind("report", "written", "a party has its results", "rows", "{party} has its results"),
)
EVENTS: Mapping[tuple[str, str], EventKind] = {(kind.phase, kind.name): kind for kind in KINDS}
BATCH = EventKind("measure", "batch", "what one fit follows", "rounds marginals more", _batch)
"""Made for a display, of several events (`brief.py`); never written."""


def words_of(phase: str, name: str, event: Mapping[str, Any]) -> str | None:
    """Of an event, if it has any of its own. Raises `KeyError` or another error for fields that are not what
    they should be."""
    kind = BATCH if (phase, name) == (BATCH.phase, BATCH.name) else EVENTS.get((phase, name))
    words = None if kind is None else kind.words
    return words.format_map(event) if isinstance(words, str) else None if words is None else words(event)


_ROWS = re.compile(r"^\| phase \| event .*\n(?:\|.*\n)+", re.MULTILINE)


def page(text: str) -> str:
    """The reference page with its table of events made anew. Raises `ValueError` if it has none."""
    lines = ["| phase | event | tells | fields |", "|---|---|---|---|"]
    lines += [f"| {one.phase} | `{one.name}` | {one.tells} | {one.fields} |" for one in KINDS]
    made, count = _ROWS.subn(lambda _: "\n".join(lines) + "\n", text)
    if count != 1:
        raise ValueError("The page needs one table of events.")
    return made


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(page(place.read_text(encoding="utf-8")), encoding="utf-8")
