"""A custodian's linked tables, unfolded to one row a person where they lie (`docs/design/linked.md` 1, 2)."""
