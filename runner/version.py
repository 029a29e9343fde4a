"""The software's version, and the protocol version that decides who computes with whom
(`docs/reference/versions.md`).

Parties compare the protocol version and not the software's: it is part of what they greet each other with and
of every study's digest, so that those of different protocol versions refuse each other (exit 22), and patch
releases of one run together.
"""

VERSION = "0.9.0"
"""Of the release; the packages' own. run.json says which each party has."""

PROTOCOL = 9
"""Raised with whatever another party, or its signature, would notice; `tests/test_protocol_version.py` pins
what that is."""
