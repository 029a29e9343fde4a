"""Cohorts of clients that come by: `functionality.Cohorts` in the clear (`ideal`), and what all versions share.

public    checks, events and the transcript        steps    what the leading party tells the others
"""
