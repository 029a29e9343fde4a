"""Rounds and bytes of the protocols on replicated shares, as functions of public sizes; `step_costs` puts them together.

The tests assert them against the wire's counters, exactly. Each function replays the message pattern of its protocol on a
`engine.tally.Tally`. Nothing here is secret: every argument is a size that the protocol's messages show anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.argmax import PAIRS
from mpc_protocols.engine.bitwise.bitslice import piece_lengths, words_for
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import AliasTable, alias_table, schedule
from mpc_protocols.engine.noise.sampling import NOISE_BATCH, batches, joint_tables, noise_adder
from mpc_protocols.engine.tally import Tally
from mpc_protocols.mechanisms import gaussian, gumbel
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.replicated.gates import GROUP, PickSizes, in_groups, picks_form
from mpc_protocols.replicated.scores import masked_sign
from mpc_protocols.replicated.scores.masked_sign import bit_rows
from mpc_protocols.replicated.scores.shared_sign import parts_of
from mpc_protocols.replicated.sharing.bit_gates import TEST_WORDS
from mpc_protocols.replicated.sharing.copies import DIGEST_BYTES

WORD = 8
"""Bytes of a word of 64 bits."""


def sharing(tally: Tally, cells: int, element: int = 4) -> None:
    """Input of all three parties at once (`ring.share_own`)."""
    tally.step([(i, (i + 1) % 3, cells * element) for i in range(3)])


def opening(tally: Tally, cells: int, element: int = 4) -> None:
    """`ring.open_ring`, and `boolean.open_bits` with element = WORD: a component to the right, the other's hash to the left."""
    tally.step(
        [
            transfer
            for i in range(3)
            for transfer in ((i, (i + 1) % 3, cells * element), (i, (i - 1) % 3, DIGEST_BYTES * (cells > 0)))
        ]
    )


def products(tally: Tally, results: int, element: int = 4) -> None:
    """`ring.multiply`, `ring.dot`, `ring.reshare`; `boolean.and_bits` with element = WORD."""
    tally.step([(i, (i - 1) % 3, results * element) for i in range(3)])


def carries(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.carry` out of the low `planes` planes."""
    words = words_for(cells)
    gates = [1] * planes if adder == "ripple" else [planes, *merge_schedule(planes)]
    for gate in gates:
        products(tally, gate * words, WORD)


def signs(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.signs`."""
    tally.step([(0, 1, planes * words_for(cells) * WORD)])
    carries(tally, cells, planes - 1, adder)


def share_bits(tally: Tally, parts: Sequence[int], planes: int) -> None:
    """`masked_sign.share_bits` of so many cells of each dealer."""
    tally.step(
        [(t, (t + 1) % 3, bit_rows(planes) * words_for(cells) * WORD) for t, cells in enumerate(parts)]
    )


def l1_distances(tally: Tally, parts: Sequence[int], planes: int, adder: Adder, element: int = 4) -> None:
    """`l1_distance.add_l1_sums` of so many cells of each dealer; the sums are `products` when they are reshared."""
    if not any(parts):
        return
    columns = [(t, (t + 1) % 3, 2 * length * element) for t in range(3) for length in piece_lengths(parts[t])]
    masked_signs(tally, [words_for(cells) for cells in parts], planes, adder, columns)


def masked_signs(
    tally: Tally, words: Sequence[int], planes: int, adder: Adder, last: Sequence[tuple[int, int, int]]
) -> None:
    """`masked_sign.signs` of so many words of each dealer. last: what else is sent in its last step."""
    sizes = [length * WORD for length in words]
    schedule = masked_sign.steps(planes, adder)
    for number, (exchanged, dealt) in enumerate(schedule):
        tally.step(
            [(t, (t + 1) % 3, dealt * sizes[t] + exchanged * sizes[t - 1]) for t in range(3)]
            + [(t, (t - 1) % 3, exchanged * sizes[(t + 1) % 3]) for t in range(3)]
            + (list(last) if number == len(schedule) - 1 else [])
        )


def shared_signs(tally: Tally, cells: int, planes: int) -> None:
    """`shared_sign.shared_signs`."""
    words = parts_of(cells)
    tally.step([(t, (t + 1) % 3, bit_rows(planes) * words[t] * WORD) for t in range(3)])
    masked_signs(tally, words, planes, "tree", [(t, (t + 1) % 3, words[t] * WORD) for t in range(3)])


def weighted_sum(tally: Tally, bits: int, cells: int, element: int = 4) -> None:
    """`conversion.weighted_sum`."""
    tally.step([(0, 1, bits * cells * element)])
    products(tally, cells, element)


def chosen_sums(tally: Tally, rows: int, width: int, element: int = 4) -> None:
    """`conversion.chosen_sums`."""
    tally.step([(0, 1, 2 * rows * width * element)])
    products(tally, rows, element)


def lift(tally: Tally, cells: int, narrow: int = 4, wide: int = 8) -> None:
    """`conversion.lift` from elements of `narrow` bytes to `wide` ones."""
    tally.step([(0, 1, 8 * narrow * words_for(cells) * WORD)])
    carries(tally, cells, 8 * narrow, "tree")
    tally.step([(0, 1, cells * wide)])
    weighted_sum(tally, 1, cells, wide)


def draws(tally: Tally, table: AliasTable, words: int, adder: Adder) -> None:
    """`alias.draw`."""
    for gates in schedule(table, adder):
        products(tally, gates * words, WORD)


def gumbel_noise(
    tally: Tally, candidates: int, a: int, element: int = 4, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`sampling.gumbel_noise`."""
    table = alias_table(gumbel.THRESHOLDS, gumbel.BITS)
    adder = noise_adder(table, candidates, latency_bytes)
    for cells in batches(candidates):
        draws(tally, table, words_for(cells), adder)
        weighted_sum(tally, table.index_bits + a, cells, element)


def gaussian_noise(
    tally: Tally, sampler: Sampler, cells: int, element: int = 4, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`sampling.gaussian_noise`."""
    for _, half in sampler.parts:
        table = alias_table(half.thresholds, gaussian.BITS)
        adder = noise_adder(table, cells, latency_bytes)
        for size in batches(cells):
            draws(tally, table, words_for(size), adder)
            weighted_sum(tally, table.index_bits + 1, size, element)


def gaussian_noises(
    tally: Tally,
    samplers: Sequence[tuple[Sampler, int]],
    element: int = 4,
    latency_bytes: int = LATENCY_BYTES,
) -> None:
    """`sampling.gaussian_noises`: each sampler so many cells."""
    if len(samplers) == 1 or sum(cells for _, cells in samplers) > NOISE_BATCH:
        for sampler, cells in samplers:
            gaussian_noise(tally, sampler, cells, element, latency_bytes)
        return
    for part in range(max(len(sampler.parts) for sampler, _ in samplers)):
        runs = [(of.parts[part][1], cells) for of, cells in samplers if part < len(of.parts)]
        table, words = joint_tables([half for half, _ in runs])[0], sum(words_for(n) for _, n in runs)
        draws(tally, table, words, noise_adder(table, 64 * words, latency_bytes))
        weighted_sum(tally, table.index_bits + 1, 64 * words, element)


def argmax(tally: Tally, candidates: int, element: int = 4, latency_bytes: int = LATENCY_BYTES) -> None:
    """`argmax.argmax`, the opening included."""
    if not in_groups(candidates, element, latency_bytes):
        argmax_rows(tally, 1, candidates, element)
        return
    groups = -(-candidates // GROUP)
    _comparisons(tally, groups * GROUP * (GROUP - 1) // 2, element)
    opponents = GROUP - 1
    while opponents > 1:
        products(tally, opponents // 2 * words_for(groups * GROUP), WORD)
        opponents -= opponents // 2
    weighted_sum(tally, 1, groups * GROUP, element)
    products(tally, groups, element)
    argmax_rows(tally, 1, groups, element)
    opening(tally, 1, element)


def argmax_rows(tally: Tally, rows: int, candidates: int, element: int = 4) -> None:
    """`argmax.argmax_rows`, the opening included."""
    if candidates == 1:
        return
    _comparisons(tally, rows * candidates * (candidates - 1) // 2, element)
    zero_rows(tally, rows * candidates)


def peel(tally: Tally, picks: int, candidates: int, lists: Sequence[int], element: int = 4) -> None:
    """`argmax.peel`: of `picks` rows of keys of `candidates`; lists: on how many candidates each pick was made."""
    if candidates > 1:
        _comparisons(tally, picks * candidates * (candidates - 1) // 2, element)
    for several in lists:
        if several > 1:
            zero_rows(tally, several)


def pick_several(
    tally: Tally,
    candidates: int,
    sizes: PickSizes,
    element: int = 4,
    latency_bytes: int = LATENCY_BYTES,
) -> None:
    """`gates.pick_several`."""
    picks = len(sizes.lists)
    form = picks_form(picks, candidates, sizes.families, element, latency_bytes)
    if form == "at once":
        peel(tally, picks, candidates, sizes.lists, element)
    elif form == "families":
        pick_by_families(tally, sizes, element)
    else:
        for several in sizes.lists:
            if several > 1:
                argmax(tally, several, element, latency_bytes)


def pick_by_families(tally: Tally, sizes: PickSizes, element: int = 4) -> None:
    """`gates.pick_by_families`."""
    picks, families, width = len(sizes.lists), len(sizes.families), max(sizes.families)
    members = picks * families * width
    _comparisons(tally, members * (width - 1) // 2, element)
    opponents = width - 1
    while opponents > 1:
        products(tally, opponents // 2 * words_for(members), WORD)
        opponents -= opponents // 2
    chosen_sums(tally, picks * families, width, element)
    peel(tally, picks, families, sizes.lists_of_families, element)
    zero_rows(tally, width * sum(map(bool, sizes.lists)))


def zero_rows(tally: Tally, rows: int) -> None:
    """`bit_gates.zero_rows`: the masked parts go straight to both others."""
    size = rows * TEST_WORDS * WORD
    tally.step([(i, j, size) for i in range(3) for j in ((i - 1) % 3, (i + 1) % 3)])


def _comparisons(tally: Tally, pairs: int, element: int) -> None:
    for start in range(0, pairs, PAIRS):
        shared_signs(tally, min(PAIRS, pairs - start), 8 * element)
