"""MWEM+PGM: multiplicative weights on a graphical model (`plan`: before a run; `loop`: the run; `algorithm`:
in words)."""
