"""The marginals that a study names, each measured once: an algorithm in a distribution of its own."""
