"""Compiled functions in this process, where it can have them; None where not.

It can where llvmlite is installed (`make kernel`, or the extra `kernel`), and where the operating system lets
the process run what it has written to memory. Whoever has functions compiled has a form in NumPy, too, which
computes the same, bit for bit: it is what the compiled one is compared with before its first use, and what
computes where there is none, or where there is too little to compute to be worth compiling.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numpy.typing import NDArray

from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from llvmlite import binding
else:
    binding = Later("llvmlite.binding")

ADDRESS, WORD = ctypes.c_void_p, ctypes.c_uint64
"""Types of arguments: of an array, and of a number."""

Made = TypeVar("Made")


def address(array: NDArray[Any]) -> int:
    """The address of an array, which the caller holds until the call returns."""
    return int(array.ctypes.data)


def functions(module: str, signatures: Mapping[str, Sequence[Any]]) -> dict[str, Callable[..., None]]:
    """The functions of a module, by name. Threads may call them at the same time.

    module: LLVM's intermediate representation, as text. signatures: the types of each function's arguments.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(module), machine)
    engine.finalize_object()
    found: dict[str, Callable[..., None]] = {}
    for name, kinds in signatures.items():
        function: Any = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name))
        function.engine = engine  # whose memory the code lies in
        found[name] = function
    return found


_COMPILING = Lock()
"""One thread at a time compiles, whatever it is."""


class CompiledOnce(Generic[Made]):
    """What is compiled once in a process, when it is first asked for by who has enough to compute."""

    def __init__(self, make: Callable[[], Made | None], agrees: Callable[[Made], bool], worth: int) -> None:
        """make: compiles; None if this processor lacks something. agrees: whether what was made computes what
        NumPy does. worth: the least size of a computation for which compiling is worth its time."""
        self._make, self._agrees, self._worth = make, agrees, worth
        self._made: list[Made | None] = []

    def __call__(self, size: int) -> Made | None:
        """What was made, for a computation of this size; None if NumPy is to compute."""
        with _COMPILING:
            if not self._made and size >= self._worth:
                self._made.append(self.compiled())
            return self._made[0] if self._made else None

    def compiled(self) -> Made | None:
        """Compile, whatever has been compiled before; None if this process cannot, or the two differ."""
        if find_spec("llvmlite") is None:
            return None
        try:
            mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()
            made = self._make()
        except (ImportError, AttributeError, OSError, RuntimeError):
            return None
        return made if made is not None and self._agrees(made) else None
