"""A study to start from, by one custodian's table: what its columns look like, as proposals that a person
confirms."""
