"""Federated tables of `bench utility`: many clients, each with its own part of a public table, some of which
arrive.

    splits      which client holds which row        world      who comes when
    family      the FLAIM family                    arriving   DistAIM's schedule        collected   AIM on the union
    methods     the rows of a table                 runs       one run and its scores
    printed     what the papers print               show       tables and the page       command     of the terminal

Everything is simulated in one process with seeded noise, on public tables; the distribution of every answer
is that of the secure backends.
"""
