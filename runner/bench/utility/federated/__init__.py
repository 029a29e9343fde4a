"""Federated tables of `bench utility`: many clients, each with its own part of a public table, some of which arrive.

    splits      which client holds which row        arrivals   who comes when
    methods     what is made of who came            runs       one run and its scores
    printed     what the papers print               show       tables and the page

Everything is simulated in one process with seeded noise, on public tables; the distribution of every answer is that of the secure backends.
"""
