"""Cohorts of clients that come by: what `functionality.Cohorts` promises, in the clear (`ideal`), and what all versions share (`public`)."""
