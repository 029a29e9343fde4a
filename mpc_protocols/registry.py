"""How the versions of one kind of thing are found: algorithms, backends, alignment methods.

Each kind has ONE descriptor class (`synth.algorithm`, `mpc_protocols.backend`, `mpc_protocols.psu.method`),
and each version is one object of it. A version is found by where its file lies, and nobody else needs to name
it:

    package "synth.algorithms", kind "algorithm"      synth/algorithms/aim/algorithm.py, holding ALGORITHM
    research "synth.research"                         synth/research/florist/algorithm.py, the same

What only research uses lies under a `research` roof, and nothing outside imports it: it is found here, and
loaded when a study names it or all versions are listed (`tests/test_research.py`). Descriptor modules import
the standard library only; what does the work is imported when it is called. A version of another distribution
is an entry point of the kind's group, which every process finds where that is installed:

    [project.entry-points."cosynth.algorithms"]
    kway = "cosynth_kway.algorithm:ALGORITHM"

(`docs/howto/add-an-algorithm.md` 7). A test adds one for a while by `with registry.registered(version):`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.installation import pip_install
from mpc_protocols.process.plug_ins import PlugIn, plug_ins


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

    def __init__(
        self,
        package: str,
        kind: str,
        descriptor: type[Any],
        group: str = "",
        *,
        elsewhere: Sequence[str] = (),
        research: str = "",
    ) -> None:
        """package: where modules NAME/KIND.py and NAME_KIND.py are looked for. descriptor: the class of the
        versions. group: of the entry points of other distributions. elsewhere: further packages, whose own
        protocols some versions are. research: a package that holds modules of such names in any of its
        folders."""
        self._packages, self._kind = (package, *elsewhere), kind
        self._descriptor, self._group, self._research = descriptor, group, research
        self._added: dict[str, D] = {}
        self._loaded: dict[str, D] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order in which users see them."""
        return tuple(version.name for version in self)

    def __iter__(self) -> Iterator[D]:
        """All versions; of other distributions those that can be loaded."""
        versions = {**self._in_package, **self._in_research, **self._added}
        for name in self._installed:
            with suppress(StudyInvalid):
                versions[name] = self._load(name)
        return iter(sorted(versions.values(), key=lambda version: (version.rank, version.name)))

    def __contains__(self, name: object) -> bool:
        return any(name in versions for versions in (self._added, self._in_package, self._installed)) or (
            name in self._in_research
        )

    def __getitem__(self, name: str) -> D:
        """The version of this name. Raises KeyError, and StudyInvalid for one of another distribution that
        cannot be loaded."""
        for versions in (self._added, self._in_package):
            if name in versions:
                return versions[name]
        return self._load(name) if name in self._installed else self._in_research[name]

    def get(self, name: str) -> D | None:
        """The version of this name; None if there is none. Raises as `[]`."""
        if name not in self:
            return None
        return self[name]

    def origin(self, name: str) -> str | None:
        """Name and version of the other distribution that this version is of; None for one of this package."""
        if name in self._added or name in self._in_package or name not in self._installed:
            return None
        return self._installed[name].distribution

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
    def _installed(self) -> Mapping[str, PlugIn]:
        """Those of other distributions, by name. A name of this package's own is never taken over."""
        offered = plug_ins(self._group) if self._group else {}
        own = {*self._in_package, *self._in_research} if offered else ()
        return {name: plug_in for name, plug_in in offered.items() if name not in own}

    def _load(self, name: str) -> D:
        if name not in self._loaded:
            plug_in = self._installed[name]
            version = plug_in.load()
            if not isinstance(version, self._descriptor) or version.name != name:
                raise StudyInvalid(f"{plug_in.label} is no {self._descriptor.__name__} of that name.")
            self._loaded[name] = version
        return self._loaded[name]

    @cached_property
    def _in_package(self) -> Mapping[str, D]:
        return self._versions(self._modules())

    @cached_property
    def _in_research(self) -> Mapping[str, D]:
        versions = self._versions(self._modules_of_research())
        if twice := versions.keys() & self._in_package.keys():
            raise ValueError(f"{self._research} holds another {self._kind} of the name {min(twice)}.")
        return versions

    def _versions(self, modules: Iterator[str]) -> dict[str, D]:
        versions: dict[str, D] = {}
        for module in sorted(modules):
            version = getattr(importlib.import_module(module), self._kind.upper(), None)
            if not isinstance(version, self._descriptor) or version.name in versions:
                raise ValueError(
                    f"{module} does not hold {self._kind.upper()}, an {self._descriptor.__name__} with a name of its own."
                )
            versions[version.name] = version
        return versions

    def _modules(self) -> Iterator[str]:
        """Only folders are looked into: importing a package that is no version could cost much."""
        for package in self._packages:
            for folder in importlib.import_module(package).__path__:
                for module in pkgutil.iter_modules([folder]):
                    if module.ispkg and (Path(folder) / module.name / f"{self._kind}.py").is_file():
                        yield f"{package}.{module.name}.{self._kind}"
                    elif not module.ispkg and module.name.endswith(f"_{self._kind}"):
                        yield f"{package}.{module.name}"

    def _modules_of_research(self) -> Iterator[str]:
        if not self._research:
            return
        for folder in importlib.import_module(self._research).__path__:
            for file in Path(folder).rglob(f"*{self._kind}.py"):
                if file.stem == self._kind or file.stem.endswith(f"_{self._kind}"):
                    yield ".".join((self._research, *file.relative_to(folder).with_suffix("").parts))


def modules_of(package: str, research: str) -> Iterator[str]:
    """The names of all modules of a package and of its counterpart for research, for what is found in files
    of any name."""
    for name in (package, research):
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__):
            yield f"{name}.{module.name}"


_COMMANDS = {"crypten": "make crypten"}
"""How parts of the installation are got that pip cannot resolve: CrypTen's metadata asks for packages that
are gone."""


class Extra(Protocol):
    """A version whose packages are an optional part of the installation."""

    @property
    def extra(self) -> str:
        """Name of the part, as pip calls it in brackets."""

    @property
    def requires(self) -> tuple[str, ...]:
        """The top-level modules it cannot do without."""


def not_installed(version: Extra) -> str | None:
    """The end of a sentence about packages that a version needs and that are not here, with the command that
    gets them."""
    lacking = [module for module in version.requires if importlib.util.find_spec(module) is None]
    if not lacking:
        return None
    command = _COMMANDS.get(version.extra) or pip_install([version.extra])
    remedy = f"run `{command}`" if command else "install what its own pages name"
    return f"needs {' and '.join(lacking)}, which this installation lacks; {remedy} at every party"
