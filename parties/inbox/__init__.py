"""A computing party's inbox: sealed bundles of contributors who drop by, until the collection is closed."""
