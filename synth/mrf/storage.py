"""A model as bytes: an .npz archive without pickle, checked throughout when it comes from somebody else.

Problem: the party that fits the model sends it to every other one, and recipients keep it as a file. A reader
must survive any content: nothing is unpickled or evaluated, no size is believed before it is bounded, no
number is used before it is known to be finite. Two stored members: `header.npy` (UTF-8 JSON: format, columns
with sizes, total, cliques) and `potentials.npy` (float64, all cliques one after the other). Equal models give
equal bytes. What a file reveals is the model, a differentially private release; an altered file can make the
tables sampled from it wrong, never run code: authenticity is the session's business.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Level
from synth.mrf.factor import Array, Impossible
from synth.mrf.junction_tree import Clique
from synth.mrf.levels import Chains, Levels
from synth.mrf.tree_size import model_size_mb

FORMAT = "cosynth-mrf-1"
WITH_LEVELS = "cosynth-mrf-2"
WITH_ZEROS = "cosynth-mrf-3"
MAX_BYTES = 2**30
MAX_MB = 1024.0  # of the junction tree that the file asks its reader to build
MAX_COLUMNS = 2000
MAX_CLIQUES = 20_000
MAX_NAME = 500  # characters
MAX_SIZE = 2**31  # values of one column
MAX_POTENTIAL = 1e6  # potential, in absolute value: sums of any number of them stay finite
MAX_ROWS = 1e15
MAX_ZERO_CELLS = 2**20  # of one set of columns with structural zeros

_ARRAY = re.compile(
    rb"\{'descr': '(?P<kind>[|<]\w\d)', 'fortran_order': False, 'shape': \((?P<length>\d{1,19}),\), \} *\n"
)
"""What NumPy writes before a one-dimensional array. Its own reader takes any Python literal, and fails in
many ways."""

Content = tuple[dict[str, int], float, dict[Clique, Array], dict[str, Level], dict[Clique, NDArray[np.bool_]]]


def to_bytes(
    sizes: Mapping[str, int],
    total: float,
    potentials: Mapping[Clique, Array],
    levels: Levels | None = None,
    impossible: Impossible | None = None,
) -> bytes:
    """The archive of a model: column sizes in domain order, number of rows, flat log potentials by clique,
    levels by name, structural zeros."""
    header: dict[str, Any] = {
        "format": WITH_ZEROS if impossible else WITH_LEVELS if levels else FORMAT,
        "columns": [[name, size] for name, size in sizes.items()],
        "total": total,
        "cliques": [list(clique) for clique in potentials],
    }
    if levels or impossible:
        header["levels"] = [[name, level.column, list(level.bins)] for name, level in (levels or {}).items()]
    if impossible:
        header["impossible"] = [
            [list(clique), np.flatnonzero(cells).tolist()] for clique, cells in impossible.items()
        ]
    text = np.frombuffer(
        json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode(), dtype=np.uint8
    )
    flat = np.concatenate([np.zeros(0), *potentials.values()]).astype("<f8")
    stream = BytesIO()
    np.savez(stream, header=text, potentials=flat)
    return stream.getvalue()


def refuse(what: str) -> ProtocolAborted:
    """What to raise for a file that is not a model's."""
    return ProtocolAborted(
        f"The model file is not valid ({what}); ask the party that made it to send it again."
    )


def _member(archive: zipfile.ZipFile, name: str, dtype: str) -> np.ndarray[Any, Any]:
    """One stored one-dimensional array of exactly the given type; its bytes are counted before anything is
    allocated."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise refuse(f"{name} is compressed")
    raw = archive.read(info)
    start = raw.find(b"\n") + 1
    found = _ARRAY.fullmatch(raw[10:start])
    if (
        not start
        or raw[:8] != np.lib.format.magic(1, 0)
        or raw[8:10] != struct.pack("<H", start - 10)
        or not found
    ):
        raise refuse(f"{name} is not an array as NumPy stores it")
    kind, body = np.dtype(dtype), raw[start:]
    if found["kind"] != dtype.encode() or int(found["length"]) * kind.itemsize != len(body):
        raise refuse(f"{name} is not a one-dimensional array of {dtype}")
    return np.frombuffer(body, dtype=kind)


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _check_levels(levels: object, sizes: Mapping[str, int], least: int) -> Chains:
    """The levels of a header with the columns they refine; at least so many."""
    if not isinstance(levels, list) or not least <= len(levels) <= MAX_COLUMNS:
        raise refuse("the number of levels is out of range")
    found: dict[str, Level] = {}
    for level in levels:
        if (
            not isinstance(level, list)
            or len(level) != 3
            or not all(isinstance(name, str) and len(name) <= MAX_NAME for name in level[:2])
            or level[0] in found
            or not isinstance(level[2], list)
            or len(level[2]) != sizes.get(level[1])
            or not all(_whole(bin, 0, len(level[2]) - 1) for bin in level[2])
        ):
            raise refuse("a level is not a name, a column and the bins of its values")
        found[level[0]] = Level(level[0], level[1], tuple(level[2]))
    return Chains(sizes, found)


def _check_header(header: object) -> tuple[Chains, dict[str, int], float, list[Clique]]:
    """Columns with their levels, sizes, total and cliques of a header, every type and range checked."""
    keys = {"format", "columns", "total", "cliques"}
    if not isinstance(header, dict) or (set(header), header.get("format")) not in (
        (keys, FORMAT),
        (keys | {"levels"}, WITH_LEVELS),
        (keys | {"levels", "impossible"}, WITH_ZEROS),
    ):
        raise refuse(f"the header is not that of {FORMAT}, {WITH_LEVELS} or {WITH_ZEROS}")
    columns, total, cliques = header["columns"], header["total"], header["cliques"]
    if not isinstance(columns, list) or not 1 <= len(columns) <= MAX_COLUMNS:
        raise refuse("the number of columns is out of range")
    sizes: dict[str, int] = {}
    for column in columns:
        if (
            not isinstance(column, list)
            or len(column) != 2
            or not isinstance(column[0], str)
            or len(column[0]) > MAX_NAME
        ):
            raise refuse("a column is not a name and a size")
        if column[0] in sizes or not _whole(column[1], 1, MAX_SIZE):
            raise refuse("a column is repeated or its size is out of range")
        sizes[column[0]] = column[1]
    if not isinstance(total, float) or not isfinite(total) or not 1 <= total <= MAX_ROWS:
        raise refuse("the total is out of range")
    if not isinstance(cliques, list) or len(cliques) > MAX_CLIQUES:
        raise refuse("the number of cliques is out of range")
    least = int("impossible" not in header)
    chains = _check_levels(header["levels"], sizes, least) if "levels" in header else Chains(sizes, {})
    order = {name: index for index, name in enumerate(chains.sizes)}
    checked = [_check_clique(clique, order, chains) for clique in cliques]
    if len(set(checked)) != len(checked):
        raise refuse("a clique is repeated")
    return chains, sizes, total, checked


def _check_clique(clique: object, order: Mapping[str, int], chains: Chains) -> Clique:
    if (
        not isinstance(clique, list)
        or not clique
        or not all(isinstance(name, str) and name in order for name in clique)
    ):
        raise refuse("a clique names an unknown column")
    positions = [order[name] for name in clique]
    if positions != sorted(set(positions)) or any(chains.sizes[name] < 2 for name in clique):
        raise refuse("a clique is not a set of columns in domain order")
    return tuple(clique)


def _check_zeros(given: object, sizes: Mapping[str, int], chains: Chains) -> dict[Clique, NDArray[np.bool_]]:
    """The structural zeros of a header."""
    if not isinstance(given, list) or not 0 < len(given) <= MAX_COLUMNS:
        raise refuse("the number of sets of columns with structural zeros is out of range")
    order = {name: index for index, name in enumerate(sizes)}
    found: dict[Clique, NDArray[np.bool_]] = {}
    for entry in given:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
            raise refuse("structural zeros are not a set of columns and their cells")
        clique = _check_clique(entry[0], order, chains)
        cells = prod(sizes[name] for name in clique)
        if (
            clique in found
            or cells > MAX_ZERO_CELLS
            or not all(_whole(one, 0, cells - 1) for one in entry[1])
        ):
            raise refuse("structural zeros are repeated or out of range")
        flat = np.zeros(cells, np.bool_)
        flat[entry[1]] = True
        found[clique] = flat.reshape([sizes[name] for name in clique])
    return found


def from_bytes(data: bytes) -> Content:
    """The model in `data`, fully validated. ProtocolAborted, with one sentence, for anything else than what
    `to_bytes` writes."""
    if len(data) > MAX_BYTES:
        raise refuse(f"it is larger than {MAX_BYTES} bytes")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if sorted(archive.namelist()) != ["header.npy", "potentials.npy"]:
                raise refuse("its members are not header and potentials")
            text, flat = _member(archive, "header.npy", "|u1"), _member(archive, "potentials.npy", "<f8")
        header = json.loads(text.tobytes().decode())
        chains, columns, total, cliques = _check_header(header)
        zeros = _check_zeros(header["impossible"], columns, chains) if "impossible" in header else {}
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        ValueError,
        KeyError,
        EOFError,
        OSError,
        RuntimeError,
    ) as error:
        raise refuse(f"it cannot be read as an archive: {type(error).__name__}") from None
    sizes = chains.sizes
    cells = [prod(sizes[name] for name in clique) for clique in cliques]
    if sum(cells) != len(flat):
        raise refuse(f"it holds {len(flat)} potentials where its cliques have {sum(cells)} cells")
    if not bool(np.isfinite(flat).all()) or float(np.abs(flat).max(initial=0.0)) > MAX_POTENTIAL:
        raise refuse("a potential is not a number of reasonable size")
    if model_size_mb(sizes, [*cliques, *zeros], chains.coarser) > MAX_MB:
        raise refuse(f"its junction tree would need more than {MAX_MB:.0f} MiB")
    potentials: dict[Clique, Array] = {}
    start = 0
    for clique, count in zip(cliques, cells, strict=True):
        potentials[clique] = flat[start : start + count].astype(np.float64)
        start += count
    return columns, total, potentials, chains.levels, zeros
