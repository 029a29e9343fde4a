"""Benchmarks for research: published systems beside ours, and the papers' own tables (`papers/`).

`bench utility` finds the folders with a comparison.py, `bench` the files of `benches/`; nothing else imports
what is in here.
"""
