"""AIM: an adaptive, iterative mechanism for synthetic data (`plan`: before a run; `loop`: the run;
`algorithm`: in words)."""
