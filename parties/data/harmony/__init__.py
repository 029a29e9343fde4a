"""A custodian's table as the study writes it, without a change to the table: what its private file says, row
by row.

    rules.py         what the private file says: dialect of a CSV, renames, maps, markers, expressions, a filter
    recipe.py        the rules fitted to one study: what becomes of each column; its digest
    expressions.py   which SQL may stand there: what looks at one row only
    functions.py     the functions that it may call
    values.py        markers, maps and decimal commas on whole arrays
    source.py        the table, harmonised, for all that reads a `Source`

**One row in, one row or none out, by that row alone.** A marginal's sensitivity is the change that one
person's row can make to it; an expression that looked at other rows (an average, a rank) would let one row
change all others, and the study's epsilon would bound nothing (`docs/design/privacy.md` 2). So expressions
hold no subquery, aggregate, window, clock or anything else that does not give the same twice:
`expressions.py` and `functions.py` admit what they list, nothing else.
"""
