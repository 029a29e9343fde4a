"""Cohorts of clients that come by (`functionality.Cohorts`): what all versions share (`ideal.cohorts`,
`replicated.cohorts`).

public    checks, events and the transcript        steps    what the leading party tells the others
"""
