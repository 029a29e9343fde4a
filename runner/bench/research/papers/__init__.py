"""Tables and figures of the papers that Cosynth builds on: what of them can be rerun, what came of it, what
cannot and why?

`paper` says what an item is and when a figure agrees; a file for each paper has its items; `show` prints
them.
"""
