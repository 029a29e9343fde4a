"""A run while it runs: what its events tell, on a page of this machine and as bars on a terminal. Public
facts only.

story     events of any number of parties become one state: phase, round, budget, bytes, who is waited for, the graph
follow    the events in a run's directory, as they are written
server    a page on the loopback address that asks for the state once a second
bars      the same on a terminal
"""
