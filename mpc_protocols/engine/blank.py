"""Arrays that have a shape and a type and no content: what a protocol computes on when only its messages are
of interest.

A blank array is one zero seen everywhere (all strides are 0), so that none takes memory, however large.
Whatever is computed from one, together with other arrays or not, is blank again; what is written into one is
forgotten. So a protocol's own code, run over a wire that counts (`memory_wire`), sends messages of the right
sizes in the right rounds and computes next to nothing.

    mask = blank((18, 4000), np.uint64)
    (mask ^ words).nbytes            what it would take
    mask[:, places].shape            as of any array

Blank arrays of one shape and type are one object: what comes of two of them is looked up by their shapes.

Values that decide what is sent next, such as the place of an arg max, are blank as well: whoever runs the
protocol says what they are (`engine_dry_run`). Functions of NumPy that this module does not know raise
`NotImplementedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NOTHING = bytes(16)
"""The element of all blank arrays."""
Shape = tuple[int, ...]
_ARRAYS, _NUMBERS = (np.ndarray, np.generic), (bool, int, float)
_BASIC = (slice, int, EllipsisType, np.integer, type(None))
"""Whose result is a view, as indices. Tuples: a union of types is made anew where it is written, which takes longer."""
_WHOLE = slice(None)
_OF_ITS_OWN_KIND = {
    np.bitwise_xor,
    np.bitwise_and,
    np.bitwise_or,
    np.invert,
    np.add,
    np.subtract,
    np.multiply,
}
"""Whose result is of the kind of like operands."""


class BlankBytes(bytes):
    """A message, or a key, of so many bytes of which nothing else is known."""

    size: int

    def __new__(cls, size: int) -> BlankBytes:
        made = super().__new__(cls)
        made.size = size
        return made

    def __len__(self) -> int:
        return self.size


_SHAPES = 1 << 16
"""Most arrays and results that are remembered."""


def blank(shape: int | Sequence[int], dtype: Any) -> NDArray[Any]:
    """A blank array; of a shape and a type there is one."""
    return _of_shape((shape,) if isinstance(shape, int) else tuple(shape), np.dtype(dtype))


@lru_cache(_SHAPES)
def _of_shape(shape: Shape, dtype: Any) -> NDArray[Any]:
    return np.ndarray.__new__(Blank, shape, dtype, _NOTHING, 0, (0,) * len(shape))


class Blank(np.ndarray[Any, Any]):
    """See the module."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **given: Any) -> Any:
        if (out := given.get("out")) is not None:
            return out[0] if len(out) == 1 else out
        if method == "at":
            return None
        if method == "__call__" and not given and ufunc in _OF_ITS_OWN_KIND:
            first, last = inputs[0], inputs[-1]
            blanks = isinstance(first, Blank) and isinstance(last, Blank)
            if blanks and first.shape == last.shape and first.dtype == last.dtype:
                return first
        if method == "reduceat":
            return _reduced_at(ufunc, *inputs, **given)
        return _result(ufunc, method, tuple(map(_sort, inputs)), tuple(given.items()))

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[Any], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        known = _FUNCTIONS.get(func)
        if known is not None:
            return known(*args, **kwargs)
        if func in _OF_VIEWS:
            return super().__array_function__(func, types, args, kwargs)
        names = sorted(of.__name__ for of in (*_FUNCTIONS, *_OF_VIEWS))
        raise NotImplementedError(
            f"A dry run knows no shape of numpy.{func.__name__}; use ufuncs, indices, or one of {', '.join(names)}."
        )

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and self.ndim > 1:
            return _row(self.shape, self.dtype, index)
        if isinstance(index, slice) and index == _WHOLE:
            return self
        if _is_basic(index):
            view = super().__getitem__(index)
            return _of_shape(view.shape, view.dtype) if isinstance(view, Blank) else view
        return blank(_indexed_shape(self.shape, index), self.dtype)

    def __iter__(self) -> Iterator[Any]:
        return repeat(self[0], len(self)) if len(self) else iter(())

    def __setitem__(self, index: Any, value: Any) -> None:
        """Forgotten."""

    def astype(self, dtype: Any, *_: Any, **__: Any) -> NDArray[Any]:
        """See `numpy.ndarray`."""
        return blank(self.shape, dtype)

    def copy(self, *_: Any, **__: Any) -> NDArray[Any]:  # type: ignore[override]
        """See `numpy.ndarray`."""
        return self

    def view(self, dtype: Any = None, *_: Any) -> NDArray[Any]:  # type: ignore[override]
        """See `numpy.ndarray`."""
        if dtype is None or not self.ndim:
            return self
        last = self.shape[-1] * self.itemsize // np.dtype(dtype).itemsize
        return blank((*self.shape[:-1], last), dtype)

    def take(self, indices: Any, axis: Any = None, *_: Any, **__: Any) -> Any:
        """See `numpy.ndarray`."""
        return _take(self, indices, axis)

    def flatten(self, *_: Any) -> NDArray[Any]:
        """See `numpy.ndarray`."""
        return blank(self.size, self.dtype)

    @property
    def data(self) -> Any:
        """See `numpy.ndarray`."""
        return BlankBytes(self.nbytes)

    def tobytes(self, *_: Any) -> bytes:
        """See `numpy.ndarray`."""
        return BlankBytes(self.nbytes)


# -- what comes out
# -----------------------------------------------------------------------------------------------------------


def _sort(value: Any) -> tuple[Any, Shape]:
    """What of an operand decides the type and the shape of a result."""
    if isinstance(value, _ARRAYS):
        return value.dtype, value.shape
    if isinstance(value, _NUMBERS):
        return type(value), ()
    array = np.asarray(value)
    return array.dtype, array.shape


@lru_cache(_SHAPES)
def _result(
    ufunc: np.ufunc, method: str, sorts: tuple[tuple[Any, Shape], ...], named: tuple[tuple[str, Any], ...]
) -> Any:
    """Of operands of these sorts. named: arguments by name."""
    given, shapes = dict(named), [shape for _, shape in sorts]
    types = _result_types(ufunc, method, tuple(kind for kind, _ in sorts[: ufunc.nin]), given.get("dtype"))
    shape = _product_shape(*shapes) if ufunc == np.matmul else _ufunc_shape(method, shapes, given)
    results = tuple(blank(shape, of) if shape else of.type(0) for of in types)
    return results if len(results) > 1 else results[0]


def _reduced_at(ufunc: np.ufunc, array: Any, indices: Sequence[int], axis: int = 0, dtype: Any = None) -> Any:
    [of] = _result_types(ufunc, "reduceat", (array.dtype, None), dtype)
    shape = list(array.shape)
    shape[axis] = len(indices)
    return blank(shape, of)


@lru_cache(_SHAPES)
def _row(shape: Shape, dtype: Any, index: int) -> NDArray[Any]:
    if not -shape[0] <= index < shape[0]:
        raise IndexError(f"index {index} is out of bounds for axis 0 with size {shape[0]}")
    return _of_shape(shape[1:], dtype)


@cache
def _result_types(ufunc: np.ufunc, method: str, kinds: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    size = (1, 1) if ufunc == np.matmul else 1
    ones = [kind(1) if isinstance(kind, type) else np.ones(size, kind) for kind in kinds if kind is not None]
    how = {} if dtype is None else {"dtype": dtype}
    if method == "__call__":
        results = ufunc(*ones, **how)
    elif method == "reduceat":
        results = ufunc.reduceat(ones[0], [0], **how)
    else:
        results = getattr(ufunc, method)(*ones, **how)
    return tuple(np.asarray(of).dtype for of in (results if isinstance(results, tuple) else (results,)))


def _product_shape(left: Shape, right: Shape) -> Shape:
    """Of a product of matrices, or of a vector and a matrix."""
    if len(right) == 1:
        return left[:-1]
    stacks = np.broadcast_shapes(left[:-2], right[:-2])
    return (*stacks, *left[-2:-1], right[-1])


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    """`numpy.broadcast_shapes`, fast where there is nothing to it."""
    first = shapes[0] or shapes[-1]
    if all(of == first or not of for of in shapes):
        return first
    return np.broadcast_shapes(*shapes)


def _ufunc_shape(method: str, shapes: Sequence[Shape], given: Mapping[str, Any]) -> Shape:
    if method == "__call__":
        return _broadcast(shapes)
    if method == "outer":
        return (*shapes[0], *shapes[1])
    first = list(shapes[0])
    axis = given.get("axis", 0)
    if method == "accumulate":
        return tuple(first)
    axes = range(len(first)) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = {number % len(first) for number in axes} if first else set()
    if given.get("keepdims"):
        return tuple(1 if number in axes else size for number, size in enumerate(first))
    return tuple(size for number, size in enumerate(first) if number not in axes)


def _is_basic(index: Any) -> bool:
    """Whether an index takes a view."""
    if isinstance(index, tuple):
        return all(isinstance(of, _BASIC) for of in index)
    return isinstance(index, _BASIC)


def _indexed_shape(shape: Shape, index: Any) -> Shape:
    """Of an array of that shape, indexed with arrays among others."""
    parts = list(index) if isinstance(index, tuple) else [index]
    arrays = [np.asarray(of) if isinstance(of, np.ndarray | list) else None for of in parts]
    used = sum(
        0
        if of is None or isinstance(of, EllipsisType)
        else array.ndim
        if array is not None and array.dtype == bool
        else 1
        for of, array in zip(parts, arrays, strict=True)
    )
    if not any(isinstance(of, EllipsisType) for of in parts):
        parts.append(Ellipsis)
        arrays.append(None)
    found: list[int] = []
    chosen: list[Shape] = []
    where, apart, place = -1, False, 0
    for of, array in zip(parts, arrays, strict=True):
        if of is None:
            found.append(1)
        elif isinstance(of, EllipsisType):
            found += shape[place : place + len(shape) - used]
            place += len(shape) - used
        elif isinstance(of, slice):
            found.append(len(range(*of.indices(shape[place]))))
            place += 1
        else:
            apart |= 0 <= where < len(found)
            where = len(found) if where < 0 else where
            if array is not None and array.dtype == bool:
                chosen.append((int(np.count_nonzero(array)),))
                place += array.ndim
            else:
                chosen.append(() if array is None else array.shape)
                place += 1
    where = 0 if apart else where
    return (*found[:where], *np.broadcast_shapes(*chosen), *found[where:])


def _concatenate(arrays: Sequence[Any], axis: int = 0, dtype: Any = None, **_: Any) -> Any:
    first = arrays[0]
    shape = list(first.shape)
    shape[axis] = sum(of.shape[axis] for of in arrays)
    return blank(shape, _common_type(arrays) if dtype is None else dtype)


def _common_type(arrays: Sequence[Any]) -> Any:
    return np.result_type(*{of.dtype for of in arrays})


def _stack(arrays: Sequence[Any], axis: int = 0, **_: Any) -> Any:
    shape = list(arrays[0].shape)
    shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, len(arrays))
    return blank(shape, _common_type(arrays))


def _blank_where(condition: Any, x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(*map(np.shape, (condition, x, y)))
    return blank(shape, np.result_type(*(np.asarray(of).dtype for of in (x, y))))


def _like(array: Any, dtype: Any = None, *_: Any, shape: Any = None, **__: Any) -> Any:
    return blank(array.shape if shape is None else shape, array.dtype if dtype is None else dtype)


def _take(array: Any, indices: Any, axis: int | None = None, **_: Any) -> Any:
    if axis is None:
        return blank(np.shape(indices), array.dtype)
    axis %= array.ndim
    return blank((*array.shape[:axis], *np.shape(indices), *array.shape[axis + 1 :]), array.dtype)


def _along_axis(array: Any, indices: Any, axis: int = -1) -> Any:
    axis %= array.ndim
    shape = [
        len_i if number == axis else max(len_a, len_i) if 1 in (len_a, len_i) else len_a
        for number, (len_a, len_i) in enumerate(zip(array.shape, indices.shape, strict=True))
    ]
    return blank(shape, array.dtype)


def _packed(array: Any, axis: int | None = None, **_: Any) -> Any:
    if axis is None:
        return blank(-(-array.size // 8), np.uint8)
    shape = list(array.shape)
    shape[axis] = -(-shape[axis] // 8)
    return blank(shape, np.uint8)


def _unpacked(array: Any, axis: int | None = None, count: int | None = None, **_: Any) -> Any:
    if axis is None:
        return blank(8 * array.size if count is None else count, np.uint8)
    shape = list(array.shape)
    shape[axis] = 8 * shape[axis] if count is None else count
    return blank(shape, np.uint8)


def _repeated(array: Any, repeats: Any, axis: int | None = None) -> Any:
    if axis is None:
        times = array.size * repeats if isinstance(repeats, int) else int(np.sum(repeats))
        return blank(times, array.dtype)
    shape = list(array.shape)
    shape[axis] = shape[axis] * repeats if isinstance(repeats, int) else int(np.sum(repeats))
    return blank(shape, array.dtype)


def _broadcast_arrays(*arrays: Any, **_: Any) -> tuple[NDArray[Any], ...]:
    shape = np.broadcast_shapes(*(of.shape for of in arrays))
    return tuple(blank(shape, of.dtype) for of in arrays)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.where: _blank_where,
    np.empty_like: _like,
    np.zeros_like: _like,
    np.ones_like: _like,
    np.full_like: lambda array, _, *given, **more: _like(array, *given, **more),
    np.take: _take,
    np.take_along_axis: _along_axis,
    np.packbits: _packed,
    np.unpackbits: _unpacked,
    np.repeat: _repeated,
    np.broadcast_to: lambda array, shape, **_: blank(shape, array.dtype),
    np.broadcast_arrays: _broadcast_arrays,
    np.copyto: lambda *_, **__: None,
    np.shape: lambda array: array.shape,
    np.ndim: lambda array: array.ndim,
    np.size: lambda array, axis=None: array.size if axis is None else array.shape[axis],
    np.result_type: lambda *of: np.result_type(*(_sort(one)[0] for one in of)),
}
_OF_VIEWS = {
    np.moveaxis,
    np.swapaxes,
    np.transpose,
    np.split,
    np.array_split,
    np.expand_dims,
    np.squeeze,
    np.ravel,
    np.reshape,
    np.sum,
    np.any,
    np.all,
    np.min,
    np.max,
    np.cumsum,
}
