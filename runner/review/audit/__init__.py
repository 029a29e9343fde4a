"""`python -m runner audit`: attacks on this build, each of which says what it found and what it would have
found.

A pass is no proof (`docs/design/audit.md` 1). A group of checks is a file in `runner/review/audit/groups`,
found by being there.
"""
