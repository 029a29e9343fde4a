"""VertiMRF with encoded columns instead of marginals on shares: research (`docs/design/algorithms.md` 11).

`plan`: the budget; `own_model`: what an owner learns of its own columns; `bins`: what is encoded of a column;
`responses`, `sketches`: the two encoders; `reports`: an owner's message; `joint`: the model of all columns
from all reports.
"""
