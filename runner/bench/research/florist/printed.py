"""Figures of FLORIST's paper (Sun et al. 2021), to stand beside ours. Its data, Criteo and Avazu, are
advertisements: 14 and 0 numbers, 27 and 22 categories with very many values, 17 to 25 % of labels 1, millions
of rows.

CHANGE      tables 3 and 8: change of the AUC against training on common rows alone, in per cent, by the share of rows each lacks
BY_LABELS   tables 1 and 6: AUC of the spectral attack by strategy, half of the labels invented; BY_FEATURES: 2 and 7, features
DRAWN       table 5: labels by the model's probability on Avazu, beta = 0.5, by draws a visit: AUC, and AUC of the spectral attack
"""

from __future__ import annotations

from typing import Final

CHANGE: Final = {
    "Criteo": {
        0.05: -0.076,
        0.1: -0.165,
        0.25: -0.408,
        0.5: -1.259,
        0.6: -1.707,
        0.75: -3.081,
        0.8: -3.566,
        0.9: -4.924,
        0.95: -5.119,
    },
    "Avazu": {
        0.05: -0.066,
        0.1: -0.17,
        0.25: -0.41,
        0.5: -1.14,
        0.6: -1.75,
        0.75: -3.78,
        0.8: -4.71,
        0.9: -11.55,
        0.95: -11.71,
    },
}
_AUC: Final = (0.7465, 0.7482, 0.7482, 0.7486, 0.7490, 0.7491, 0.7489, 0.7492, 0.7492, 0.7493)
_ATTACK: Final = (0.5001, 0.5227, 0.5812, 0.6249, 0.6512, 0.6753, 0.7041, 0.7175, 0.7299, 0.7438)
DRAWN: Final = {number: pair for number, pair in enumerate(zip(_AUC, _ATTACK, strict=True), start=1)}
DRAWN_SHARE: Final = 0.5
BY_LABELS: Final = {
    "majority": (0.5761, 0.5583),
    "minority": (0.6511, 0.5846),
    "random-pos": (0.5342, 0.5574),
    "random-pred": (0.5074, 0.5006),
    "neighbors": (0.5445, 0.5369),
}
"""Criteo, Avazu; .4426 of `random-pos` on Avazu is folded."""
BY_FEATURES: Final = {"gaussian": (0.9766, 0.8961), "random": (0.982, 0.8975), "sampling": (0.5059, 0.5402)}
