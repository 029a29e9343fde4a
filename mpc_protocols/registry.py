"""How the versions of one kind of thing are found: algorithms, backends, alignment methods.

Each kind has ONE descriptor class (`synth.algorithm`, `mpc_protocols.backend`, `mpc_protocols.psu.method`), and each version is
one object of it. A version is found by where its file lies, and nobody else needs to name it:

    package "synth", kind "algorithm"      synth/algorithms/aim/algorithm.py, holding ALGORITHM

Descriptor modules import the standard library only; what does the work is imported when it is called. A version that lies
elsewhere is added by `register`, or for a while by `with registry.registered(version):`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class Descriptor(Protocol):
    """What a registry asks of every version."""

    @property
    def name(self) -> str:
        """The word of the study file."""

    @property
    def rank(self) -> int:
        """Its place where versions are listed: smaller first."""


D = TypeVar("D", bound=Descriptor)


class Registry(Generic[D]):
    """The versions of one kind, by name."""

    def __init__(self, package: str, kind: str, descriptor: type[Any]) -> None:
        """package: where modules NAME/KIND.py and NAME_KIND.py are looked for. descriptor: the class of the versions."""
        self._package, self._kind, self._descriptor = package, kind, descriptor
        self._added: dict[str, D] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order in which users see them."""
        return tuple(version.name for version in self)

    def __iter__(self) -> Iterator[D]:
        return iter(
            sorted(
                {**self._in_package, **self._added}.values(),
                key=lambda version: (version.rank, version.name),
            )
        )

    def __contains__(self, name: object) -> bool:
        return name in self._added or name in self._in_package

    def __getitem__(self, name: str) -> D:
        """The version of this name. Raises KeyError."""
        return self._added[name] if name in self._added else self._in_package[name]

    def get(self, name: str) -> D | None:
        """The version of this name; None if there is none."""
        return self._added.get(name) or self._in_package.get(name)

    def register(self, version: D) -> None:
        """Add a version that lies elsewhere. Raises ValueError: of another kind, or of a name that is taken."""
        if not isinstance(version, self._descriptor) or version.name in self:
            raise ValueError(
                f"{version!r} is not an {self._descriptor.__name__} with a name of its own; "
                f"taken: {', '.join(self.names)}."
            )
        self._added[version.name] = version

    @contextmanager
    def registered(self, version: D) -> Iterator[D]:
        """Add a version while the block runs."""
        self.register(version)
        try:
            yield version
        finally:
            del self._added[version.name]

    @cached_property
    def _in_package(self) -> Mapping[str, D]:
        found: dict[str, D] = {}
        for module in sorted(self._modules()):
            version = getattr(importlib.import_module(module), self._kind.upper(), None)
            if not isinstance(version, self._descriptor) or version.name in found:
                raise ValueError(
                    f"{module} does not hold {self._kind.upper()}, an {self._descriptor.__name__} with a name of its own."
                )
            found[version.name] = version
        return found

    def _modules(self) -> Iterator[str]:
        """Only folders are looked into: importing a package that is no version could cost much."""
        for folder in importlib.import_module(self._package).__path__:
            for module in pkgutil.iter_modules([folder]):
                if module.ispkg and (Path(folder) / module.name / f"{self._kind}.py").is_file():
                    yield f"{self._package}.{module.name}.{self._kind}"
                elif not module.ispkg and module.name.endswith(f"_{self._kind}"):
                    yield f"{self._package}.{module.name}"


class Extra(Protocol):
    """A version whose packages are an optional part of the installation."""

    @property
    def extra(self) -> str:
        """Name of the part, as pip calls it in brackets."""

    @property
    def requires(self) -> tuple[str, ...]:
        """The top-level modules it cannot do without."""


def not_installed(version: Extra) -> str | None:
    """The end of a sentence about packages that a version needs and that are not here, with the command that gets them."""
    lacking = [module for module in version.requires if importlib.util.find_spec(module) is None]
    if not lacking:
        return None
    return (
        f"needs {' and '.join(lacking)}, which this installation lacks; "
        f'run `python -m pip install "cosynth[{version.extra}]"` at every party'
    )
