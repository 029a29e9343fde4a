"""Mosaic: AIM with resolutions (`plan`: before a run; `bins`, `candidates`: once the columns are known;
`loop`: the run; `algorithm`: in words).

A marginal may be asked over bins of its columns: far fewer cells at the same sensitivity, so the budget pays
for many more of them, and the model hangs the fine column off its coarse one. Bins come from the released
one-way marginals.
"""
