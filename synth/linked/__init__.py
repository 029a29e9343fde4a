"""Tables that belong together, as one table of a row a person and back (`docs/design/linked.md`). Public;
sees no record."""
