"""The graphical model: a Markov random field fitted to noisy marginals, queried and sampled exactly.

Everything in this package is post-processing of values that are already released under differential privacy:
it sees no record and no un-noised count, so floats are allowed and nothing here is charged to a budget. NumPy
only; about a millisecond per iteration at the sizes AIM reaches on Adult.
"""

from __future__ import annotations

from synth.mrf.fit import Measurement, fit
from synth.mrf.levels import Chains
from synth.mrf.model import Model
from synth.mrf.tree_size import SizeEstimator, model_size_mb

__all__ = ["Chains", "Measurement", "Model", "SizeEstimator", "fit", "model_size_mb"]
