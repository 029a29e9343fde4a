"""`bench peers`: the same steps by MP-SPDZ's virtual machines (Keller, CCS 2020), one run of theirs, one of ours, in turns.

    protocols.py     which of MP-SPDZ's protocols stands beside which backend of ours, and how it is compiled for
    steps.py         the steps that both take: programme, inputs, and what NumPy says must come out
    programme.py     the text of that programme, in MP-SPDZ's language
    tree.py          a compiled tree of MP-SPDZ: what is there, and what its compiler says
    machines.py      the processes of one run of theirs, held at gates so that CPU time is read while all of them wait
    comparison.py    the alternation, and figures of both sides
    page.py          one page of it, as Markdown and as HTML

Nothing of MP-SPDZ is part of this project, and nothing is written into its tree.
"""
