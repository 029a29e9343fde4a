"""The generator: a trunk for all owners and a branch for each, on flat vectors of float32.

    trunk    z of LATENT normal numbers -> WIDTH -> WIDTH units
    branch   -> WIDTH -> the one-hot cells of an owner's columns, made soft by Gumbel noise (Jang, Gu, Poole 2017)

Two layers each, as in VertiGAN (Jiang et al. 2023); a party sees the trunk and one branch. Everything here is
post-processing of noisy critics and public seeds, but for the fakes that an owner compares with its rows:
those are made by NumPy, in blocks of one shape (`seats`); all else by PyTorch and its autograd. The one file
that imports torch, when it is first used: an optional part of the installation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

LATENT: Final = 32
WIDTH: Final = 64
TEMPERATURE: Final = 0.5
RATE: Final = 1e-3
TRUNK: Final = ((LATENT, WIDTH), (WIDTH, WIDTH))


def branch(cells: int) -> tuple[tuple[int, int], ...]:
    """The layers of an owner whose columns have so many one-hot cells."""
    return ((WIDTH, WIDTH), (WIDTH, cells))


def size(layers: Sequence[tuple[int, int]]) -> int:
    """Numbers in them."""
    return sum((inputs + 1) * outputs for inputs, outputs in layers)


def fresh(layers: Sequence[tuple[int, int]], rng: np.random.Generator) -> Vector:
    """First weights: uniform within one over the root of a layer's inputs."""
    return np.concatenate(
        [(2 * rng.random((inputs + 1) * outputs) - 1) / np.sqrt(inputs) for inputs, outputs in layers]
    ).astype(np.float32)


def torch() -> Any:
    """PyTorch, with one thread: parties share their machines."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    return torch


class Branch:
    """The generator as one owner sees it. widths: number of values of each of its columns."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)
        self.cells = sum(widths)
        self.trunk, self.size = size(TRUNK), size(TRUNK) + size(branch(self.cells))
        self._starts = np.cumsum([0, *self.widths[:-1]])
        self._spread = np.repeat(np.eye(len(self.widths), dtype=np.float32), self.widths, axis=1)

    def fakes(self, parameters: Vector, z: Vector, gumbel: Vector) -> NDArray[np.float64]:
        """Soft rows, (blocks, LANES, cells). z: (blocks, LANES, LATENT); gumbel: (blocks, LANES, cells)."""
        at, values, layers = 0, z, (*TRUNK, *branch(self.cells))
        with np.errstate(all="ignore"):
            for inputs, outputs in layers:
                weight = parameters[at : at + inputs * outputs].reshape(outputs, inputs)
                bias = parameters[at + weight.size : at + weight.size + outputs]
                values = (values if at == 0 else np.maximum(values, 0)) @ weight.T + bias
                at += weight.size + outputs
            noisy = (values + gumbel) / np.float32(TEMPERATURE)
            noisy -= np.maximum.reduceat(noisy, self._starts, axis=-1) @ self._spread
            for block in noisy:
                np.exp(block, out=block)
            noisy /= (noisy @ self._spread.T) @ self._spread
        return np.asarray(noisy, np.float64)

    def gradient(
        self,
        parameters: Vector,
        z: Vector,
        gumbel: Vector,
        pulls: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> Vector:
        """Of a loss of the soft rows in the parameters. pulls: the gradient of the loss in the rows."""
        library = torch()
        given = self._tensor(library, parameters).requires_grad_()
        made = self._soft(library, given, z, gumbel)
        made.backward(library.from_numpy(pulls(made.detach().numpy().astype(np.float64)).astype(np.float32)))
        return np.asarray(given.grad.numpy(), np.float32)

    def rows(self, parameters: Vector, z: Vector, gumbel: Vector) -> NDArray[np.int64]:
        """Codes, (n, columns): each column drawn by its logits."""
        library = torch()
        with library.no_grad():
            noisy = self._logits(library, self._tensor(library, parameters), z).numpy() + gumbel
        edges = np.cumsum(self.widths)[:-1]
        return np.stack([block.argmax(axis=1) for block in np.split(noisy, edges, axis=1)], axis=1)

    def _tensor(self, library: Any, parameters: Vector) -> Any:
        return library.from_numpy(np.array(parameters, np.float32))

    def _logits(self, library: Any, parameters: Any, z: Vector) -> Any:
        layers = (*TRUNK, *branch(self.cells))
        at, values = 0, library.from_numpy(np.ascontiguousarray(z))
        for number, (inputs, outputs) in enumerate(layers):
            weight = parameters[at : at + inputs * outputs].view(outputs, inputs)
            at += inputs * outputs
            values = library.nn.functional.linear(values, weight, parameters[at : at + outputs])
            at += outputs
            if number < len(layers) - 1:
                values = values.relu()
        return values

    def _soft(self, library: Any, parameters: Any, z: Vector, gumbel: Vector) -> Any:
        noisy = (
            self._logits(library, parameters, z) + library.from_numpy(np.ascontiguousarray(gumbel))
        ) / TEMPERATURE
        return library.cat([block.softmax(dim=1) for block in noisy.split(self.widths, dim=1)], dim=1)


class Generator:
    """The server's: trunk and all branches, and their optimiser."""

    def __init__(self, widths: Mapping[str, Sequence[int]], rng: np.random.Generator) -> None:
        """widths: by owner."""
        library = torch()
        self.branches = {owner: Branch(found) for owner, found in widths.items()}
        self._trunk = library.from_numpy(fresh(TRUNK, rng))
        self._own = {
            owner: library.from_numpy(fresh(branch(of.cells), rng)) for owner, of in self.branches.items()
        }
        self._steps = library.optim.RMSprop([self._trunk, *self._own.values()], lr=RATE)

    def parameters(self) -> dict[str, Vector]:
        """What each owner is sent: the trunk and its branch."""
        return {owner: np.concatenate([self._trunk.numpy(), own.numpy()]) for owner, own in self._own.items()}

    def descend(self, gradients: Mapping[str, Vector]) -> None:
        """One step by the owners' gradients: of the trunk their sum."""
        library, trunk = torch(), len(self._trunk)
        self._trunk.grad = library.from_numpy(
            np.sum([gradient[:trunk] for gradient in gradients.values()], axis=0, dtype=np.float32)
        )
        for owner, own in self._own.items():
            own.grad = library.from_numpy(np.array(gradients[owner][trunk:], np.float32))
        self._steps.step()
