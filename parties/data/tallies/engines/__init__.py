"""Engines that a custodian may have, and that count its table with our code on their own machines.

    task.py           what a worker runs: some files in, counts out, and never an exception
    dask_cluster.py   `data = { dask = ... }`: the files of a table, dealt to the workers of a Dask cluster
    linked_task.py, dask_linked.py     linked tables: sorted by persons by the workers, unfolded and counted there
    spark.py, spark_linked.py     Spark DataFrames, counted by its executors; linked ones likewise

Neither engine is imported before it is asked for. Both are as trusted as the machine that has the table.
"""
