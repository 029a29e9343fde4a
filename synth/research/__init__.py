"""Algorithms, encodings and variants for research: a study runs one only with `[study] research = true`.

What it asks for has no sound claim, or no utility beside another algorithm's
(`synth.algorithm.Algorithm.alternative`). A registry finds them by the names of their files,
NAME/algorithm.py, NAME_encoding.py and NAME_variant.py; nothing outside imports them
(`tests/test_research.py`).
"""
