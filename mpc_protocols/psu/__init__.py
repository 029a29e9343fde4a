"""Private set union: owners of different columns line up their records without learning who is known to whom
(`docs/design/psu.md`).

`align.align` runs one party's part, whatever its role and the study's method; `functionality` says what
everybody learns and holds the ideal functionality; `normalise` turns a table's key columns into canonical
identifiers; `dummies` hides set sizes. Nothing is imported here: the elliptic-curve library is loaded by the
protocols that need it.
"""
