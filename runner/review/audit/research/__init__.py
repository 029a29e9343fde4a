"""What an audit tries on systems for research: attacks on published schemes, and on two owners who train a
model.

`audit` finds the files of `groups/` and of `faults/`; nothing but research imports what is in here.
"""
