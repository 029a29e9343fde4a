"""Exchanges of rows judged by compiled code: the rows are those of the NumPy form, to the bit."""
