"""How good a finished run's table is, for somebody who holds real rows (`docs/howto/judge-a-result.md`). NOT
PRIVATE.

    judge   the figures, from the run's public files and the rows
    words   the verdict, as text and as JSON
    page    the same as a page
    linked  the figures of linked tables, made of the same; `linked_rows` reads these, `linked_words` says them

What comes out is a function of real rows, charged to no budget: for whoever holds these already, and for
nobody else. Nothing is written beside the run's files, which are passed on.
"""
