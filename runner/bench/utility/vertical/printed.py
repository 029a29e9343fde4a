"""Figures that the papers print, to stand beside ours; none of them rests on an accounting that holds as printed, but VertiGAN's
for one party (`docs/design/algorithms.md`).

    fm, fo, vertigan    Zhao et al., VertiMRF, KDD 2024: 3-way TVD of NLTCS, two owners, the least and the most over its splits by
                        importance and correlation (epsilon is not stated)
    vertigan            the same; Adult and BR2000 are curves without figures
    dplt                Tang et al.: MLP accuracy only, on other tables; its rules are not reproducible, so it is not run
"""

from __future__ import annotations

from typing import Final

NLTCS_3: Final = (
    ("vertimrf:encoder=fm", (0.052, 0.074)),
    ("vertimrf:encoder=fo", (0.234, 0.296)),
    ("vertigan", (0.401, 0.465)),
)


def printed(row: str, table: str, metric: str) -> tuple[float, float] | None:
    """The least and the most that a paper prints for a cell; None if it prints nothing."""
    if table != "nltcs" or metric != "tvd3":
        return None
    found = [range_ for name, range_ in NLTCS_3 if row.startswith(name)]
    return found[0] if found else None
