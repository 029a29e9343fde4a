"""A courier that is not trusted: it brings a study to many contributors and carries sealed bundles back
(`docs/howto/fleet.md`).

Nothing here knows which courier: bytes go out and come back. `examples/fleet` hands them to Flower; the
tests, to nobody.
"""
