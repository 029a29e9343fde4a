"""Marginals of any columns of a calibrated junction tree: a few by elimination along it (`elimination.py`), many
pairs of columns side by side (`stacks.py`)."""
