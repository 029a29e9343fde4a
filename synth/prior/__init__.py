"""What an earlier release, or a public table, tells a run before it asks: `docs/design/prior.md`.

Everything in this package reads released or public values only. It charges nothing.
"""

from __future__ import annotations

from synth.prior.inheritance import Inheritance, Inherited, Verdict
from synth.prior.sources import Known, Prior, PublicTable, Release, known_of

__all__ = ["Inheritance", "Inherited", "Known", "Prior", "PublicTable", "Release", "Verdict", "known_of"]
