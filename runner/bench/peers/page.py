"""The page of `bench peers`, as Markdown for a terminal and as a self-contained HTML file.

A section a protocol, a table a step: both sides' least, median and most, and how many times theirs is ours. What we lose stands
first.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from runner.bench.output import table
from runner.bench.peers.comparison import QUANTITIES, Compared, Quantity, Spread
from runner.bench.peers.protocols import PeerProtocol
from runner.party.record.software import software
from runner.report.plain_page import rendered

HEADINGS = ("", "MP-SPDZ", "Cosynth", "MP-SPDZ / Cosynth")
UNLIKE = (
    "Least, median and most of the turns; the last column is MP-SPDZ's figure over ours of the same turn, so below 1 MP-SPDZ is "
    "better. Inputs are shared before, start-up, certificates and compiling are not in it, and every result of MP-SPDZ's is "
    "compared with NumPy's. Triples and bits that it makes ahead for the step are in its figures. Bytes and rounds of MP-SPDZ "
    "are what it counts itself, without TLS, as ours are; its rounds are those of all kinds of messages together, ours are the "
    "longest chain."
)


@dataclass(frozen=True)
class Block:
    """The table of one step: what was measured, and its rows under `HEADINGS`."""

    title: str
    rows: tuple[tuple[str, str, str, str], ...]
    unlike: str


@dataclass(frozen=True)
class Section:
    """One protocol."""

    title: str
    compiled: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """All of it. losses: what MP-SPDZ does better, sentences. absent: protocols that are not built."""

    where: str
    losses: tuple[str, ...]
    sections: tuple[Section, ...]
    absent: tuple[str, ...]

    @classmethod
    def of(
        cls, compared: Sequence[Compared], absent: Sequence[PeerProtocol], commit: str, turns: int
    ) -> Page:
        """Of what was measured."""
        protocols = list(dict.fromkeys(each.protocol for each in compared))
        sections = tuple(
            Section(
                f"{protocol.title}: `{protocol.executable}` and {_named(protocol)}",
                " ".join(protocol.compiled_for),
                tuple(_block(each) for each in compared if each.protocol == protocol),
            )
            for protocol in protocols
        )
        losses = tuple(loss for each in compared for loss in _losses(each))
        return cls(
            _where(compared, commit, turns), losses, sections, tuple(each.executable for each in absent)
        )

    def markdown(self) -> str:
        """The text."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"## MP-SPDZ\n\n{self.where}\n\n{UNLIKE}\n"
        yield f"Better than Cosynth: {'; '.join(self.losses) or 'nothing'}."
        for section in self.sections:
            yield f"\n### {section.title}\n\nCompiled for it by `compile.py {section.compiled}`."
            for block in section.blocks:
                yield f"\n**{block.title}**\n"
                yield _row(HEADINGS)
                yield _row(("---",) * len(HEADINGS))
                yield from map(_row, block.rows)
                yield f"\nUnlike: {block.unlike}"
        if self.absent:
            yield f"\nNot built in that tree, and not measured: {', '.join(self.absent)}."

    def html(self) -> str:
        """The whole HTML text."""
        return rendered(
            "peers.html.j2",
            page=self,
            headings=HEADINGS,
            unlike=UNLIKE,
            losses="; ".join(self.losses) or "nothing",
        )


def _named(protocol: PeerProtocol) -> str:
    return f"`{protocol.backend}`{' with proofs' if protocol.proofs else ''}"


def _where(compared: Sequence[Compared], commit: str, turns: int) -> str:
    """Machine, load, versions."""
    loads = [turn.load for each in compared for turn in each.turns]
    between = f"load {min(loads):g} to {max(loads):g}" if loads else "nothing measured"
    told = software()
    ours = f"cosynth {told['cosynth']}{', commit ' + told['commit'][:12] if told['commit'] else ''}"
    libraries = ", ".join(f"{name} {told[name]}" for name in ("python", "numpy", "llvmlite") if name in told)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} processors ({platform.machine()}), {between}; MP-SPDZ"
        f"{' ' + commit if commit else ''}, {ours}, {libraries}; {turns} turns, mutual TLS over loopback."
    )


def _block(each: Compared) -> Block:
    rows = []
    for quantity in QUANTITIES:
        spreads = each.spreads(quantity)
        cells = ("-", "-", "-") if spreads is None else _cells(quantity, *spreads)
        rows.append((quantity.name, *cells))
    return Block(f"`{each.step.name}`, {each.step.title(each.ours)}", tuple(rows), each.step.unlike)


def _cells(quantity: Quantity, theirs: Spread, ours: Spread, ratio: Spread) -> tuple[str, str, str]:
    return (
        _spread(theirs, quantity.unit),
        _spread(ours, quantity.unit),
        table.plain(ratio.median)
        if ratio.least == ratio.most
        else f"{table.plain(ratio.median)} ({table.plain(ratio.least)} - {table.plain(ratio.most)})",
    )


def _spread(spread: Spread, unit: str) -> str:
    if spread.least == spread.most:
        return _figure(spread.median, unit)
    return f"{_figure(spread.median, unit)} ({_figure(spread.least, unit)} - {_figure(spread.most, unit)})"


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        return table.time(value)
    return (
        f"{table.amount(value)}B"
        if unit == "B" and value >= 1e3
        else f"{value:g}{' ' + unit if unit else ''}"
    )


def _losses(each: Compared) -> Iterator[str]:
    for quantity in QUANTITIES:
        spreads = each.spreads(quantity)
        if spreads is not None and spreads[2].median < 1:
            yield (
                f"{quantity.name} of `{each.step.name}` with `{each.protocol.name}`, "
                f"{table.plain(1 / spreads[2].median)} times as good"
            )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
