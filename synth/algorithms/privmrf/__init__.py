"""PrivMRF: a graph from noisy dependences first, then marginals inside its junction tree (`plan`: before a
run; `graph`: which marginals; `loop`: the run; `algorithm`: in words)."""
