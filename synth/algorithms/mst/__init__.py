"""MST: a maximum spanning tree of two-column marginals (`plan`: before a run; `loop`: the run; `algorithm`:
in words)."""
