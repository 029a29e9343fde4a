"""How large the junction tree of a set of cliques is, and would be with a candidate beside them: in Python
(`estimator.py`), and the same in machine code (`code.py`, `compiled.py`) where there is much to count."""

from synth.mrf.tree_size.estimator import SizeEstimator, model_size_mb

__all__ = ["SizeEstimator", "model_size_mb"]
