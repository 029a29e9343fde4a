"""Counts of a custodian's table in parts, made by other processes and added in its own.

    partition.py      the counts of one part of a table, and the bytes they travel as; parsed, bounded, never unpickled
    counting.py       a part is counted, by the scan, coder and counters that a whole table meets
    unit_range.py     where a part's identifiers lie, so that no person is in two
    total.py          parts added: each once, of the same study, by the same rules
    files.py          `data = { tallies = "dir/*.tally" }`: parts that `runner tally` counted, by whatever engine
    workers.py, worker_process.py, blocks.py     `workers = n`: parts of one table, on this machine
    engines/          clusters that count parts: Dask, Spark
    places.py         where parts are, as a `data` key says it

All of it happens inside the custodian's own machine room, before anything is shared: counts of parts are
private, and raw. The sum is equal, bit for bit, to what one process counts (`docs/howto/large-tables.md`).
"""
