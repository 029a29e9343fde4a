"""Figures that the papers print, to stand beside ours; none of them rests on an accounting that holds as
printed, but VertiGAN's for one party (`docs/design/algorithms.md`).

    fm, fo, vertigan    Zhao et al., VertiMRF, KDD 2024: 3-way TVD of NLTCS, two owners, the least and the most over its splits by
                        importance and correlation (epsilon is not stated)
    vertigan            the same; Adult and BR2000 are curves without figures
    dplt                DPLT, DPLT+ (Tang et al.) as VertiGAN's paper prints them (Jiang et al., PoPETs 2023, table 4): accuracy
                        of a network, on other tables; their rules are not reproducible, so they are not run
"""

from __future__ import annotations

from typing import Final

NLTCS_3: Final = (
    ("vertimrf:encoder=fm", (0.052, 0.074)),
    ("vertimrf:encoder=fo", (0.234, 0.296)),
    ("vertigan", (0.401, 0.465)),
)

DPLT_EPSILONS: Final = (0.5, 2, 8)
DPLT: Final = {
    "Web": ((0.7114, 0.7251, 0.7385), (0.7124, 0.7238, 0.7484), (0.6970, 0.7776, 0.7900)),
    "Vehicle": ((0.7385, 0.7596, 0.7690), (0.7208, 0.7373, 0.7729), (0.7498, 0.7627, 0.7840)),
    "Census": ((0.8822, 0.9027, 0.9465), (0.8870, 0.9092, 0.9487), (0.9088, 0.9432, 0.9655)),
    "Twitter": ((0.7277, 0.7371, 0.7520), (0.7274, 0.7397, 0.7580), (0.7445, 0.7701, 0.7822)),
    "HAR": ((0.4228, 0.5519, 0.6038), (0.4570, 0.5702, 0.6284), (0.5368, 0.7022, 0.7746)),
    "Dilbert": ((0.2722, 0.4331, 0.5434), (0.2988, 0.4353, 0.5672), (0.5525, 0.6241, 0.7134)),
}
"""MLP accuracy of DPLT, DPLT+ and VertiGAN, by table."""


def cited() -> list[str]:
    """Lines of what is not run: DPLT, DPLT+ and, beside them, what the same paper prints for VertiGAN."""
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in DPLT_EPSILONS)
    head = f"printed only, not run: accuracy of a network trained on the table, epsilon {epsilons} (Jiang et al. 2023)"
    names = "".join(f"{name:>28}" for name in ("DPLT", "DPLT+", "VertiGAN"))
    rows = [
        f"{table:10}" + "".join(f"{' '.join(f'{value:.4f}' for value in of):>28}" for of in systems)
        for table, systems in DPLT.items()
    ]
    return [head, " " * 10 + names, *rows]


def printed(row: str, table: str, metric: str) -> tuple[float, float] | None:
    """The least and the most that a paper prints for a cell; None if it prints nothing."""
    if table != "nltcs" or metric != "tvd3":
        return None
    found = [range_ for name, range_ in NLTCS_3 if row.startswith(name)]
    return found[0] if found else None
