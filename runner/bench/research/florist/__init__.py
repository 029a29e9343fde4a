"""FLORIST's own tables, on public data: what `bench utility --florist` measures.

runs.py       one training in memory by a deployment's code, and what its model is worth
printed.py    what the paper prints
command.py    tables 3 and 8, and table 5, at a terminal, as JSON lines and on a page
"""
