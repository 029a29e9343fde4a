"""What measurements.json holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runner.results.release import Release

if TYPE_CHECKING:
    from synth.domain import Domain


def measurements_json(release: Release, domain: Domain) -> str:
    """The content of measurements.json."""
    return (
        json.dumps(
            {
                "columns": dict(domain.sizes),
                "noisy_total": release.noisy_total,
                **(
                    {
                        "levels": {
                            level.name: {"column": level.column, "bins": level.bins}
                            for level in release.levels
                        }
                    }
                    if release.levels
                    else {}
                ),
                "measurements": [
                    {
                        "clique": list(m.columns),
                        **({"resolution": list(m.clique)} if m.levels else {}),
                        "sigma2": f"{m.sigma2.numerator}/{m.sigma2.denominator}",
                        "round": m.round,
                        **({} if m.rows is None else {"rows": m.rows}),
                        "values": m.values.tolist(),
                    }
                    for m in release.measurements
                ],
                **(
                    {
                        "inherited": [
                            {"clique": list(known.columns), "cells": known.cells, "error": known.error}
                            for known in release.prior.known
                        ]
                    }
                    if release.prior is not None
                    else {}
                ),
            }
        )
        + "\n"
    )
