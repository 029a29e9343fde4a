"""Tables in databases: read through one library's dialects, and counted where they are where rows must not
travel.

    addresses.py     which databases an address may name, without any library
    products.py      what differs from database to database
    kinds.py         what a column of a database holds
    thresholds.py    where the bins of doubles begin among whole and decimal numbers
    cases.py         one column's codes as a CASE: what it is made of, and why it is right
    probe.py         single values, coded as the stream codes them
    texts.py         the CASE of a column of texts
    numbers.py       that of numbers, days and times
    statements.py    the statements: a GROUP BY per union of cliques, what does not fit, rows of a person
    translation.py   a study and a private file's rules fitted to a table; what cannot be said in SQL
    grouping.py      who runs them: a server through SQLAlchemy, PostgreSQL and DuckDB over their own connections
    server.py        a table read through SQLAlchemy
    unfolding.py     linked tables as one SELECT with a row a person, to be counted like a table
    counting.py      a custodian's counts and its survey, of which only counts have travelled

SQLAlchemy is an extra (warehouse, and a driver, `docs/howto/databases.md`): nothing imports it before a
database asks for it.

Names and values of a study come from another organisation. Names of columns and tables are quoted by the
library; texts, doubles and days are bound values, which the driver sends beside the statement, or (MySQL's)
escapes into it; what is written into a statement as a number was made here from an integer.
"""
